//! The pair in memory behind a bad network, as one instance of the gateway sees it.
//!
//! A request that is on its way arrives although its sender stopped waiting, or died. A send's time on its
//! way is bounded by the enqueue timeout, as TCP_USER_TIMEOUT bounds it. Dead instances never go on.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookgate::backend::{Backend, MemoryPair, Pair};
use hookgate::clock::{SharedClock, Span};
use hookgate::delivery::Message;
use hookgate::queue::{Browse, EventQueue, QueueError, Sent};
use hookgate::store::memory::MemoryStore;
use hookgate::store::{ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token};
use tokio::sync::watch;
use tokio::time::sleep;

use super::world::{CALL_TIMEOUT, Dice};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
    Dead,
}

/// Whether an instance runs.
pub struct Life(watch::Sender<State>);

impl Life {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(watch::channel(State::Running).0))
    }

    pub fn is_over(&self) -> bool {
        *self.0.borrow() == State::Dead
    }

    /// As `kill -9` does.
    pub fn end(&self) {
        self.0.send_replace(State::Dead);
    }

    /// As SIGSTOP does, and SIGCONT after some time.
    pub fn stop_for(self: &Arc<Self>, time: Duration) {
        self.change(State::Running, State::Stopped);
        let life = Arc::clone(self);
        tokio::spawn(async move {
            sleep(time).await;
            life.change(State::Stopped, State::Running);
        });
    }

    fn change(&self, from: State, to: State) {
        self.0.send_if_modified(|state| {
            let changes = *state == from;
            if changes {
                *state = to;
            }
            changes
        });
    }

    pub async fn over(&self) {
        let _ = self
            .0
            .subscribe()
            .wait_for(|state| *state == State::Dead)
            .await;
    }

    /// Goes on only in an instance that runs.
    async fn running(&self) {
        let mut state = self.0.subscribe();
        if state
            .wait_for(|state| *state == State::Running)
            .await
            .is_err()
        {
            pending::<()>().await;
        }
    }
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Fine,
    Refused,
    Busy,
    LostBefore,
    LostAfter,
    Hangs,
}

/// A call's course.
pub struct Course {
    pub fate: Fate,
    pub there: Duration,
    pub back: Duration,
    /// The instance is killed with the request unsent.
    pub dies_before: bool,
    /// The instance is stopped just before it signs the request, for so long.
    pub stops: Option<Duration>,
    /// The instance is killed with the request on its way.
    pub dies_behind: bool,
}

enum Failure {
    Refused,
    Busy,
    Ambiguous,
    LeaseEnded,
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused => Self::Refused("chaos".into()),
            Failure::Busy => Self::Busy("chaos".into()),
            _ => Self::Ambiguous("chaos".into()),
        }
    }
}

impl From<Failure> for QueueError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused => Self::Refused("chaos".into()),
            Failure::Busy => Self::Busy("chaos".into()),
            Failure::Ambiguous => Self::Ambiguous("chaos".into()),
            Failure::LeaseEnded => Self::LeaseEnded,
        }
    }
}

/// One instance's way to the pair.
pub struct Faulty {
    pub pair: Arc<MemoryPair>,
    /// The pair's claims, judged by the pair's clock or by the instance's.
    pub store: Arc<MemoryStore>,
    pub life: Arc<Life>,
    pub dice: Arc<Dice>,
    pub clock: SharedClock,
    pub calls: Arc<AtomicU64>,
}

impl Faulty {
    async fn call<T: Send + 'static>(
        &self,
        longest: Duration,
        lease: Option<&Span>,
        applied: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        self.life.running().await;
        let course = self.dice.course(longest);
        if course.dies_before {
            self.life.end();
        }
        if let Some(time) = course.stops {
            self.life.stop_for(time);
        }
        match course.fate {
            Fate::Refused => {
                self.life.running().await;
                return Err(Failure::Refused);
            }
            Fate::Busy => {
                self.life.running().await;
                return Err(Failure::Busy);
            }
            Fate::Hangs => pending().await,
            Fate::LostBefore => {
                sleep(course.there).await;
                self.life.running().await;
                return Err(Failure::Ambiguous);
            }
            Fate::Fine | Fate::LostAfter => {}
        }
        let (life, lease, there) = (Arc::clone(&self.life), lease.cloned(), course.there);
        let on_its_way = tokio::spawn(async move {
            // A stopped process goes on with this before it finds out that it has waited too long.
            life.running().await;
            // Signed here, and sent at once.
            if lease.is_some_and(|lease| !lease.is_running()) {
                return Err(Failure::LeaseEnded);
            }
            if !there.is_zero() {
                sleep(there).await;
            }
            Ok(applied.await)
        });
        if course.dies_behind {
            self.life.end();
        }
        let answer = on_its_way.await.map_err(|_| Failure::Ambiguous)??;
        if !course.back.is_zero() {
            sleep(course.back).await;
        }
        self.life.running().await;
        match course.fate {
            Fate::LostAfter => Err(Failure::Ambiguous),
            _ => Ok(answer),
        }
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }
}

/// How long a request to the store may be on its way: longer than anybody waits.
const STORE_WAY: Duration = CALL_TIMEOUT.saturating_mul(3);

// Not `async fn`: a call counts once it is made, polled or not.
#[allow(
    clippy::manual_async_fn,
    reason = "calls are counted when they are made"
)]
impl ClaimStore for Faulty {
    fn claim(
        &self,
        request: &ClaimRequest,
    ) -> impl Future<Output = Result<Claimed, StoreError>> + Send {
        self.count();
        let (store, request) = (Arc::clone(&self.store), request.clone());
        async move {
            let claim = async move { store.claim(&request).await };
            self.call(STORE_WAY, None, claim).await?
        }
    }

    fn settle(
        &self,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.count();
        let (store, settlement) = (Arc::clone(&self.store), settlement.clone());
        async move {
            let settle = async move { store.settle(&settlement).await };
            self.call(STORE_WAY, None, settle).await?
        }
    }

    fn release(
        &self,
        key: &str,
        token: Token,
        how: Release,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.count();
        let (store, key) = (Arc::clone(&self.store), key.to_owned());
        async move {
            let release = async move { store.release(&key, token, how).await };
            self.call(STORE_WAY, None, release).await?
        }
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        self.store.forget(key, generation).await
    }

    async fn look(&self, key: &str) -> Result<Option<hookgate::store::Claim>, StoreError> {
        self.store.look(key).await
    }
}

#[allow(
    clippy::manual_async_fn,
    reason = "calls are counted when they are made"
)]
impl EventQueue for Faulty {
    fn send(
        &self,
        message: &Message,
        lease: &Span,
    ) -> impl Future<Output = Result<Sent, QueueError>> + Send {
        self.count();
        let (pair, message, lease) = (Arc::clone(&self.pair), message.clone(), lease.clone());
        // The queue knows no leases: what was signed in time may arrive behind it.
        let always = Span::start(&self.clock, Duration::from_secs(3600));
        async move {
            let send = async move { pair.queue.send(&message, &always).await };
            self.call(CALL_TIMEOUT, Some(&lease), send).await?
        }
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}

impl Backend for Faulty {
    type Store = Self;
    type Queue = Self;
    type Fused = Infallible;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Split(self, self)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        Some(&self.pair.queue)
    }
}

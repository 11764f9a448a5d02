//! Providers that deliver and retry while the gateway dies, and the journal of what they saw.
//!
//! The journal's time is a counter: a whole answer that was read before a request was begun has the smaller
//! number. That is all that the promised order speaks of.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use hookgate_tests::provider::{Answer, Connection, Signed};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::plan::{Plan, Step};

/// The most attempts at one event. A gateway is back after a few hundred.
const ATTEMPTS: usize = 10_000;

/// What providers saw of an event.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// When its first request began.
    pub first_sent: Option<u64>,
    /// When its first 2xx had been read whole.
    pub acknowledged: Option<u64>,
    /// Every 2xx that was read whole.
    pub promises: Vec<Answer>,
}

/// The world as providers see it.
pub struct Providers {
    /// What is delivered.
    pub plan: Plan,
    /// Where the gateway is, or was last.
    pub address: watch::Sender<SocketAddr>,
    /// How many answers were read whole.
    pub answers: watch::Sender<usize>,
    time: AtomicU64,
    seen: Mutex<HashMap<usize, Seen>>,
    wrong: Mutex<Vec<String>>,
}

impl Providers {
    /// Providers that have not begun.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            address: watch::channel(SocketAddr::from(([127, 0, 0, 1], 9))).0,
            answers: watch::channel(0).0,
            time: AtomicU64::new(0),
            seen: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    /// Lets every provider do what it does, at once.
    pub fn begin(self: &Arc<Self>) -> JoinSet<()> {
        let mut all = JoinSet::new();
        for (number, steps) in self.plan.providers.iter().enumerate() {
            let (providers, steps) = (Arc::clone(self), steps.clone());
            let mut line = Line::new(Arc::clone(self), number as u64);
            all.spawn(async move {
                for step in steps {
                    providers.step(step, &mut line).await;
                }
            });
        }
        all
    }

    /// What was seen of an event.
    pub fn seen(&self, event: usize) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&event).cloned().unwrap_or_default()
    }

    /// What no gateway may do, alive or dying.
    pub fn wrong(&self) -> Vec<String> {
        self.wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn step(self: &Arc<Self>, step: Step, line: &mut Line) {
        match step {
            Step::Deliver(event, copies) => self.deliver(event, copies, line).await,
            Step::Again(event) => line.persist(event).await,
            Step::Once(event) => {
                line.attempt(event).await;
            }
            Step::Forged(signed) => {
                if let Some(answer) = line.send(&signed).await
                    && answer.is_promise()
                {
                    self.accuse(format!("a forged delivery was answered {answer:?}"));
                }
            }
        }
    }

    /// Each copy has a connection of its own and retries by itself.
    async fn deliver(self: &Arc<Self>, event: usize, copies: usize, line: &mut Line) {
        let mut others = JoinSet::new();
        for copy in 1..copies {
            let mut line = Line::new(Arc::clone(self), (event * 10 + copy) as u64);
            others.spawn(async move { line.persist(event).await });
        }
        line.persist(event).await;
        while others.join_next().await.is_some() {}
    }

    fn accuse(&self, what: String) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.push(what);
    }

    fn now(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, event: usize, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        change(seen.entry(event).or_default());
    }
}

/// A provider's connection, which follows the gateway from life to life.
pub struct Line {
    providers: Arc<Providers>,
    open: Option<(SocketAddr, Connection)>,
    rng: Rng,
}

impl Line {
    /// A connection that is opened when it is needed.
    pub fn new(providers: Arc<Providers>, seed: u64) -> Self {
        Self {
            providers,
            open: None,
            rng: Rng::with_seed(seed),
        }
    }

    /// Delivers until a 2xx was read whole.
    async fn persist(&mut self, event: usize) {
        for _ in 0..ATTEMPTS {
            if self
                .attempt(event)
                .await
                .is_some_and(|answer| answer.is_promise())
            {
                return;
            }
            // How a provider spaces its retries, only faster.
            tokio::time::sleep(Duration::from_millis(self.rng.u64(1..10))).await;
        }
        self.providers
            .accuse(format!("event {event} was refused {ATTEMPTS} times"));
    }

    /// Delivers an event once; none where no whole answer came.
    pub async fn attempt(&mut self, event: usize) -> Option<Answer> {
        let providers = Arc::clone(&self.providers);
        let sent = providers.now();
        providers.note(event, |seen| {
            seen.first_sent = Some(seen.first_sent.unwrap_or(sent));
        });
        let answer = self.send(&providers.plan.events[event].signed).await?;
        let read = providers.now();
        match answer.status {
            200..300 => providers.note(event, |seen| {
                seen.acknowledged = Some(seen.acknowledged.unwrap_or(read));
                seen.promises.push(answer.clone());
            }),
            // 404: another run's gateway, which got the port of one that died.
            404 | 409 | 503 => {}
            _ => providers.accuse(format!("event {event} was answered {answer:?}")),
        }
        Some(answer)
    }

    async fn send(&mut self, signed: &Signed) -> Option<Answer> {
        let address = *self.providers.address.borrow();
        let open = self.open.take().filter(|(to, _)| *to == address);
        let (_, connection) = self
            .open
            .insert(open.unwrap_or_else(|| (address, Connection::to(address))));
        let answer = connection.deliver(signed).await.ok()?;
        self.providers.answers.send_modify(|answers| *answers += 1);
        Some(answer)
    }
}

//! Providers that deliver, give up after their timeout, come again at another gateway, and go on to the next
//! event of a line once the one before has its 2xx; and the journal of what they saw.
//!
//! The journal's time is a counter: a whole answer that was read before a request was begun has the smaller
//! number. That is all that the promised order speaks of.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use hookgate_tests::provider::{Answer, Connection};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::site::Site;
use super::plan::Plan;

/// The most attempts at one event: a gateway is back, and a lease over, long before.
const ATTEMPTS: usize = 400;

/// What providers saw of an event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// When its first request began.
    pub first_sent: Option<u64>,
    /// When its first 2xx had been read whole.
    pub acknowledged: Option<u64>,
    /// How often it got a 2xx.
    pub promises: usize,
}

/// The world as providers see it.
pub struct Providers {
    /// What is delivered.
    pub plan: Plan,
    site: Arc<Site>,
    /// Where the gateways are, or were last.
    pub gateways: Vec<watch::Sender<Option<SocketAddr>>>,
    /// How many answers were read whole.
    pub answers: watch::Sender<usize>,
    deliveries: AtomicUsize,
    time: AtomicU64,
    journal: Mutex<Journal>,
}

struct Journal {
    seen: Vec<Seen>,
    wrong: Vec<String>,
}

impl Providers {
    /// Providers that have not begun.
    pub fn new(plan: Plan, site: Arc<Site>) -> Self {
        let gateways = plan.deaths.iter().map(|_| watch::channel(None).0);
        Self {
            gateways: gateways.collect(),
            answers: watch::channel(0).0,
            deliveries: AtomicUsize::new(0),
            time: AtomicU64::new(0),
            journal: Mutex::new(Journal {
                seen: vec![Seen::default(); plan.events.len()],
                wrong: Vec::new(),
            }),
            plan,
            site,
        }
    }

    /// What was seen of each event.
    pub fn seen(&self) -> Vec<Seen> {
        self.journal().seen.clone()
    }

    /// How many requests were begun.
    pub fn deliveries(&self) -> usize {
        self.deliveries.load(Ordering::Relaxed)
    }

    /// Delivers every line until each event has its 2xx. What no gateway may do, alive or dying.
    pub async fn deliver_everything(self: &Arc<Self>) -> Vec<String> {
        let mut lines = JoinSet::new();
        for line in self.plan.lines.clone() {
            let providers = Arc::clone(self);
            lines.spawn(async move {
                for event in line {
                    providers.deliver(event).await;
                }
            });
        }
        while lines.join_next().await.is_some() {}
        std::mem::take(&mut self.journal().wrong)
    }

    /// Delivers every event once more, to this gateway.
    pub async fn deliver_again(self: &Arc<Self>, to: SocketAddr) -> Vec<String> {
        let mut connection = Connection::to(to);
        for event in 0..self.plan.events.len() {
            let mut last = None;
            for _ in 0..ATTEMPTS {
                last = self
                    .attempt(event, &mut connection, Duration::from_secs(20))
                    .await;
                if last.as_ref().is_some_and(Answer::is_promise) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if !last.as_ref().is_some_and(Answer::is_promise) {
                self.accuse(format!(
                    "delivered again, event {event} was answered {last:?}"
                ));
            }
        }
        std::mem::take(&mut self.journal().wrong)
    }

    /// Each copy retries by itself.
    async fn deliver(self: &Arc<Self>, event: usize) {
        let mut copies = JoinSet::new();
        for copy in 0..self.plan.events[event].copies {
            let providers = Arc::clone(self);
            let seed = self.plan.seed << 16 | (event as u64) << 4 | copy as u64;
            copies.spawn(async move { providers.persist(event, Rng::with_seed(seed)).await });
        }
        while copies.join_next().await.is_some() {}
    }

    async fn persist(&self, event: usize, mut rng: Rng) {
        for _ in 0..ATTEMPTS {
            let gateway = rng.usize(0..self.gateways.len());
            let patience = Duration::from_millis([400, 1500, 8000][rng.usize(0..3)]);
            let at = *self.gateways[gateway].borrow();
            if let Some(at) = at {
                let answer = self.attempt(event, &mut Connection::to(at), patience).await;
                if answer.is_some_and(|answer| answer.is_promise()) {
                    return;
                }
            }
            // How a provider spaces its retries, only faster.
            tokio::time::sleep(Duration::from_millis(rng.u64(20..250))).await;
        }
        self.accuse(format!("event {event} was refused {ATTEMPTS} times"));
    }

    /// Delivers an event once; none where no whole answer came in time.
    async fn attempt(
        &self,
        event: usize,
        to: &mut Connection,
        patience: Duration,
    ) -> Option<Answer> {
        let signed = self.plan.events[event].signed(&self.site);
        let sent = self.now();
        self.journal().seen[event].first_sent.get_or_insert(sent);
        self.deliveries.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(patience, to.deliver(&signed)).await.ok()?.ok()?;
        let read = self.now();
        self.answers.send_modify(|answers| *answers += 1);
        let fits = match answer.status {
            202 => !answer.duplicate,
            200 => answer.duplicate,
            409 | 429 | 503 => answer.retry_after.is_some(),
            // Another run's gateway, which got the port of one that died.
            404 => true,
            _ => false,
        };
        if !fits {
            self.accuse(format!("event {event} was answered {answer:?}"));
        }
        if answer.is_promise() {
            let seen = &mut self.journal().seen[event];
            seen.acknowledged.get_or_insert(read);
            seen.promises += 1;
        }
        Some(answer)
    }

    fn accuse(&self, what: String) {
        self.journal().wrong.push(what);
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }
}

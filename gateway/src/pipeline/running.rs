//! The events being worked on in this process, so that copies of one event share one outcome.
//!
//! Entered only after authentication, left by a guard, also on panic: a leader that ends without an outcome
//! leaves its followers with a closed channel, never waiting.

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::outcome::Outcome;

/// What a leader has come to.
#[derive(Debug, Clone)]
pub(super) enum Progress {
    /// It works.
    Working,
    /// It waits for an owner in another process.
    Waiting,
    /// It is done.
    Ended(Outcome),
}

/// An outcome to come.
pub(super) struct Awaited(watch::Receiver<Progress>);

impl Awaited {
    /// The outcome, or what the leader has come to at the deadline; none where it ended without an outcome.
    pub(super) async fn by(mut self, deadline: Instant) -> Option<Progress> {
        let ended = self
            .0
            .wait_for(|progress| matches!(progress, Progress::Ended(_)));
        let ended = timeout_at(deadline, ended).await;
        let ended = ended.map(|progress| progress.ok().map(|progress| progress.clone()));
        ended.unwrap_or_else(|_| Some(self.0.borrow().clone()))
    }
}

/// The running events by claim key.
pub(super) struct Running {
    table: Arc<DashMap<String, Leader>>,
    count: Gauge,
}

struct Leader {
    progress: watch::Receiver<Progress>,
    body_sha256: String,
}

/// A delivery's part in its event.
pub(super) enum Entered {
    /// It does the work.
    Leader {
        /// Its place in the table.
        place: Place,
        /// What it will publish.
        outcome: Awaited,
    },
    /// Another one does.
    Follower {
        /// What that one will publish.
        outcome: Awaited,
        /// Whether both have the same body.
        same_body: bool,
    },
}

impl Running {
    /// An empty table that keeps count.
    pub(super) fn new(count: Gauge) -> Self {
        Self {
            table: Arc::default(),
            count,
        }
    }

    /// Enters a delivery of an event.
    pub(super) fn enter(&self, key: &str, body_sha256: &str) -> Entered {
        match self.table.entry(key.to_owned()) {
            Entry::Occupied(leader) => Entered::Follower {
                outcome: Awaited(leader.get().progress.clone()),
                same_body: leader.get().body_sha256 == body_sha256,
            },
            Entry::Vacant(vacant) => {
                let (publish, progress) = watch::channel(Progress::Working);
                vacant.insert(Leader {
                    progress: progress.clone(),
                    body_sha256: body_sha256.to_owned(),
                });
                self.count.inc();
                let (table, count) = (Arc::clone(&self.table), self.count.clone());
                let place = Place {
                    table,
                    count,
                    key: key.to_owned(),
                    publish,
                };
                let outcome = Awaited(progress);
                Entered::Leader { place, outcome }
            }
        }
    }
}

/// A leader's place, left when it is dropped.
pub(super) struct Place {
    table: Arc<DashMap<String, Leader>>,
    count: Gauge,
    key: String,
    publish: watch::Sender<Progress>,
}

impl Place {
    /// Tells everybody who waits. The place is still held.
    pub(super) fn publish(&self, outcome: Outcome) {
        self.publish.send_replace(Progress::Ended(outcome));
    }

    /// Another process's owner is at work on the event.
    pub(super) fn waits(&self) {
        self.publish.send_replace(Progress::Waiting);
    }

    /// The event is this process's now.
    pub(super) fn works(&self) {
        self.publish.send_replace(Progress::Working);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.remove(&self.key);
        self.count.dec();
    }
}

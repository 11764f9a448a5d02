//! The benches: memory, embedded on a directory of its own, and real servers, where time really passes.

use std::sync::Arc;
use std::time::Duration;

use hookgate::backend::MemoryPair;
use hookgate::clock::{Clock as _, ManualClock, SharedClock};
use hookgate::delivery::Message;
use hookgate::embedded::Embedded;
use hookgate::queue::Browse;
use hookgate::queue::memory::MemoryQueue;
use hookgate::store::memory::MemoryStore;

use super::{QueueBench, StoreBench, Time, WINDOW};
pub use crate::aws::bench::{both as aws, dynamodb, sqs};

pub async fn redis() -> impl StoreBench {
    crate::redis::bench::redis()
}

pub async fn redis_cluster() -> impl StoreBench {
    crate::redis::bench::redis_cluster()
}

const NOON: u64 = 1_700_000_000_000;

/// The reference pair, or one whose time stands still until it is moved.
pub struct Bench<B> {
    clock: Arc<ManualClock>,
    pub backend: B,
    _directory: Option<tempfile::TempDir>,
}

pub async fn memory() -> Bench<MemoryPair> {
    let clock = ManualClock::at(NOON);
    let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
    Bench {
        backend: MemoryPair::new(&shared, WINDOW),
        clock,
        _directory: None,
    }
}

pub async fn embedded() -> Bench<Embedded> {
    let clock = ManualClock::at(NOON);
    let directory = tempfile::tempdir().unwrap();
    let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
    Bench {
        backend: Embedded::open(directory.path(), shared, WINDOW).unwrap(),
        clock,
        _directory: Some(directory),
    }
}

impl<B> Time for Bench<B> {
    fn clock(&self) -> SharedClock {
        Arc::<ManualClock>::clone(&self.clock)
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn now(&self) -> u64 {
        self.clock.wall_ms()
    }
}

impl StoreBench for Bench<MemoryPair> {
    type Store = MemoryStore;

    fn store(&self) -> &MemoryStore {
        &self.backend.store
    }
}

impl QueueBench for Bench<MemoryPair> {
    type Queue = MemoryQueue;

    fn queue(&self) -> &MemoryQueue {
        &self.backend.queue
    }

    async fn held(&self, groups: &[&str]) -> Vec<Message> {
        of_groups(&self.backend.queue, groups)
    }
}

impl StoreBench for Bench<Embedded> {
    type Store = Embedded;

    fn store(&self) -> &Embedded {
        &self.backend
    }
}

impl QueueBench for Bench<Embedded> {
    type Queue = Embedded;

    fn queue(&self) -> &Embedded {
        &self.backend
    }

    async fn held(&self, groups: &[&str]) -> Vec<Message> {
        of_groups(&self.backend, groups)
    }
}

fn of_groups(queue: &impl Browse, groups: &[&str]) -> Vec<Message> {
    let held = queue.list(0, usize::MAX).unwrap();
    let messages = held.into_iter().map(|held| held.message);
    messages
        .filter(|message| groups.contains(&message.group_id.as_str()))
        .collect()
}

//! The reference queue: a list in this process. For tests and for measuring; nothing here is durable.
//!
//! It keeps everything, as tests want it, or the newest messages only, so that a gateway that is measured does
//! not grow for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::{Browse, EventQueue, Held, QueueError, Sent};
use crate::clock::{SharedClock, Span};
use crate::delivery::Message;
use crate::store::millis;

/// Messages in memory.
pub struct MemoryQueue {
    clock: SharedClock,
    window: Duration,
    held: Mutex<Messages>,
}

struct Messages {
    all: VecDeque<Held>,
    /// The sequence of the next one.
    next: u64,
    /// How many are kept.
    most: usize,
    /// When each deduplication id was first sent, in ms since 1970.
    sent_at: HashMap<String, u64>,
}

impl MemoryQueue {
    /// An empty queue with this deduplication window.
    pub fn new(clock: SharedClock, window: Duration) -> Self {
        Self {
            clock,
            window,
            held: Mutex::new(Messages {
                all: VecDeque::new(),
                next: 1,
                most: usize::MAX,
                sent_at: HashMap::new(),
            }),
        }
    }

    /// An empty queue that forgets the oldest message, and its deduplication id, where there would be more
    /// than `most`.
    pub fn keeping(clock: SharedClock, window: Duration, most: usize) -> Self {
        let queue = Self::new(clock, window);
        *queue.held() = Messages {
            all: VecDeque::with_capacity(most),
            next: 1,
            most,
            sent_at: HashMap::with_capacity(most + 1),
        };
        queue
    }

    /// All messages in their order.
    pub fn messages(&self) -> Vec<Held> {
        self.held().all.iter().cloned().collect()
    }

    fn held(&self) -> MutexGuard<'_, Messages> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    /// Puts a message behind the others; what is forgotten for it.
    fn add(&mut self, now: u64, message: Message) -> Option<Held> {
        let oldest = (self.all.len() == self.most).then(|| self.all.pop_front());
        let oldest = oldest.flatten();
        if let Some(oldest) = &oldest {
            let id = &oldest.message.deduplication_id;
            if self.sent_at.get(id) == Some(&oldest.sent_at) {
                self.sent_at.remove(id);
            }
        }
        self.sent_at.insert(message.deduplication_id.clone(), now);
        self.all.push_back(Held {
            sequence: self.next,
            sent_at: now,
            receives: 0,
            visible_at: 0,
            message,
        });
        self.next += 1;
        oldest
    }
}

impl EventQueue for MemoryQueue {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        // Copied and dropped outside of the lock, which is everybody's. The body is a part of what its
        // connection reads into, some times as large, which could not be used again.
        let mut copy = message.clone();
        copy.body = Bytes::copy_from_slice(&message.body);
        let mut held = self.held();
        if !lease.is_running() {
            return Err(QueueError::LeaseEnded);
        }
        let now = self.clock.wall_ms();
        let window = millis(self.window);
        let known = held.sent_at.get(&message.deduplication_id);
        if known.is_some_and(|sent_at| now < sent_at + window) {
            return Ok(Sent::Deduplicated);
        }
        let forgotten = held.add(now, copy);
        drop(held);
        drop(forgotten);
        Ok(Sent::New)
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}

impl Browse for MemoryQueue {
    fn list(&self, after: u64, limit: usize) -> Result<Vec<Held>, QueueError> {
        let held = self.held();
        let behind = held.all.iter().filter(|held| held.sequence > after);
        Ok(behind.take(limit).cloned().collect())
    }
}

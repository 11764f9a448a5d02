//! The reference queue: a list in this process. For tests and for measuring; nothing here is durable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

#[derive(Default)]
struct Messages {
    messages: Vec<Held>,
    /// When each deduplication id was first sent, in ms since 1970.
    sent_at: HashMap<String, u64>,
}

impl MemoryQueue {
    /// An empty queue with this deduplication window.
    pub fn new(clock: SharedClock, window: Duration) -> Self {
        Self {
            clock,
            window,
            held: Mutex::default(),
        }
    }

    /// All messages in their order.
    pub fn messages(&self) -> Vec<Held> {
        self.held().messages.clone()
    }

    fn held(&self) -> MutexGuard<'_, Messages> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventQueue for MemoryQueue {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
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
        let sequence = held.messages.len() as u64 + 1;
        held.sent_at.insert(message.deduplication_id.clone(), now);
        held.messages.push(Held {
            sequence,
            sent_at: now,
            receives: 0,
            visible_at: 0,
            message: message.clone(),
        });
        Ok(Sent::New)
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}

impl Browse for MemoryQueue {
    fn list(&self, after: u64, limit: usize) -> Result<Vec<Held>, QueueError> {
        let held = self.held();
        let behind = held.messages.iter().filter(|held| held.sequence > after);
        Ok(behind.take(limit).cloned().collect())
    }
}

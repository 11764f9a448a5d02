//! The event queue seam: what holds messages durably, in order within their groups, and keeps one of the
//! copies that carry the same deduplication id inside its window.

pub mod memory;
pub mod sqs;

use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Span;
use crate::delivery::Message;

/// What a queue says of a message that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It holds this copy.
    New,
    /// It held an equal one already, and keeps that.
    Deduplicated,
    /// It holds one or the other, and does not tell.
    Held,
}

/// Why a queue did not confirm.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// It refused, so nothing has changed.
    #[error("the queue refused: {0}")]
    Refused(String),
    /// It asks to be asked later, and nothing has changed.
    #[error("the queue is busy: {0}")]
    Busy(String),
    /// Nobody knows whether it holds the message.
    #[error("the queue did not confirm: {0}")]
    Ambiguous(String),
    /// The owner's lease ended before the message was sent.
    #[error("the lease ended before the message could be sent")]
    LeaseEnded,
}

impl QueueError {
    /// Whether the message is certainly not in the queue through this call.
    pub fn is_definite(&self) -> bool {
        !matches!(self, Self::Ambiguous(_))
    }
}

/// The queue.
pub trait EventQueue: Send + Sync + 'static {
    /// Holds a message, once, durably. The lease is looked at as each attempt is signed: an owner sends
    /// only while it runs.
    fn send(
        &self,
        message: &Message,
        lease: &Span,
    ) -> impl Future<Output = Result<Sent, QueueError>> + Send;

    /// As [`Self::send`], to the queue that a claim recorded: where that is another one that still exists, an
    /// earlier owner may have sent to it, and only there does the broker know the copy.
    fn send_recorded(
        &self,
        queue: &str,
        message: &Message,
        lease: &Span,
    ) -> impl Future<Output = Result<Sent, QueueError>> + Send {
        let _ = queue;
        self.send(message, lease)
    }

    /// The queue's name, as claims record it.
    fn name(&self) -> &str;
}

/// How many messages a queue holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// To be received.
    pub visible: u64,
    /// Received, and not deleted yet.
    pub in_flight: u64,
    /// Not to be received yet.
    pub delayed: u64,
}

impl Depth {
    /// All of them.
    pub fn total(self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

/// How long a queue keeps a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The queue itself.
    pub queue: Duration,
    /// Its dead-letter queue, where the clock starts anew; none where there is no such queue.
    pub dead_letters: Option<Duration>,
}

impl Retention {
    /// Both together.
    pub fn total(self) -> Duration {
        self.queue + self.dead_letters.unwrap_or_default()
    }
}

/// A message as a queue that can be looked into holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its place in the queue.
    pub sequence: u64,
    /// When it was sent, in ms since 1970.
    pub sent_at: u64,
    /// How often it was received. Reserved: nothing counts it yet.
    #[serde(default)]
    pub receives: u32,
    /// Until when it is hidden from others, in ms since 1970. Reserved: nothing sets it yet.
    #[serde(default)]
    pub visible_at: u64,
    /// The message.
    pub message: Message,
}

/// A queue that can be looked into without receiving from it.
pub trait Browse: Send + Sync {
    /// At most `limit` messages behind the place `after`, in their order.
    fn list(&self, after: u64, limit: usize) -> Result<Vec<Held>, QueueError>;
}

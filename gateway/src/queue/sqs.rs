//! Messages in a FIFO queue of SQS, sent in batches.
//!
//! Many batches are in flight at once: the order promised is that of acknowledgements, and a message is
//! acknowledged only after its batch. Within the time that a request takes, everything that arrives joins the
//! next batch; nothing waits while none is in flight. Leases are looked at when a batch is made and again
//! when it has been signed. What SQS says of one entry is its delivery's alone.

mod batch;
mod entry;
mod facts;

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{EventQueue, QueueError, Sent};
use crate::aws::{AwsSettings, Compared, Connections};
use crate::clock::Span;
use crate::delivery::Message;
use batch::{Sender, Waiting};

pub use facts::QueueFacts;

/// The most entries of a batch (SQS API reference, `SendMessageBatch`).
const MAX_ENTRIES: usize = 10;

/// Entries that may wait for their batch; more wait in their own tasks.
const WAITING: usize = 4096;

/// Where the queue is, and how it is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqsSettings {
    /// Where AWS is.
    pub aws: AwsSettings,
    /// The queue's URL.
    pub url: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long a batch waits to be filled while others are in flight.
    pub linger: Duration,
    /// How many batches may be in flight.
    pub batches: usize,
    /// The most bytes of a batch, which is the most of a message too.
    pub max_bytes: usize,
}

/// A FIFO queue of SQS.
pub struct SqsQueue {
    client: Client,
    url: String,
    waiting: mpsc::Sender<Waiting>,
}

impl SqsQueue {
    /// A sender to this queue, on the runtime that this is called on. Nothing is called yet.
    pub fn new(shared: &SdkConfig, settings: &SqsSettings, compared: Compared) -> Self {
        let config = aws_sdk_sqs::config::Builder::from(shared)
            .http_client(Connections::new(settings.timeout, Some(compared)))
            .build();
        let client = Client::from_conf(config);
        let (waiting, batches) = mpsc::channel(WAITING);
        let sender = Sender {
            client: client.clone(),
            url: settings.url.clone(),
            timeout: settings.timeout,
            linger: settings.linger,
            max_bytes: settings.max_bytes,
            flights: Arc::new(Semaphore::new(settings.batches)),
            batches: settings.batches,
        };
        tokio::spawn(Arc::new(sender).run(batches));
        Self {
            client,
            url: settings.url.clone(),
            waiting,
        }
    }
}

impl EventQueue for SqsQueue {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        let (result, sent) = oneshot::channel();
        let entry = entry::of(message);
        let waiting = Waiting {
            entry,
            lease: lease.clone(),
            result,
        };
        let ended = || QueueError::Ambiguous("the sender has ended".into());
        self.waiting.send(waiting).await.map_err(|_| ended())?;
        sent.await.map_err(|_| ended())?
    }

    fn name(&self) -> &str {
        &self.url
    }
}

//! Messages in a FIFO queue of SQS, sent in batches.
//!
//! Many batches are in flight at once: the order promised is that of acknowledgements, and a message is
//! acknowledged only after its batch. Within the time that a request takes, everything that arrives joins the
//! next batch; nothing waits while none is in flight. Leases are looked at when a batch is made and again
//! when it has been signed. What SQS says of one entry is its delivery's alone.

mod batch;
mod entry;
mod facts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
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

/// The errors of a queue that does not exist (any more), as SQS's two protocols name it.
fn is_missing(error: &str) -> bool {
    error.contains("QueueDoesNotExist") || error.contains("NonExistentQueue")
}

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
    settings: SqsSettings,
    /// Queues that claims recorded under an earlier configuration.
    recorded: Mutex<HashMap<String, mpsc::Sender<Waiting>>>,
}

impl SqsQueue {
    /// A sender to this queue, on the runtime that this is called on. Nothing is called yet.
    pub fn new(shared: &SdkConfig, settings: &SqsSettings, compared: Compared) -> Self {
        let config = aws_sdk_sqs::config::Builder::from(shared)
            .http_client(Connections::client(settings.timeout, Some(compared)))
            .build();
        let client = Client::from_conf(config);
        Self {
            waiting: sender(&client, settings, &settings.url),
            client,
            url: settings.url.clone(),
            settings: settings.clone(),
            recorded: Mutex::default(),
        }
    }

    fn recorded(&self, url: &str) -> mpsc::Sender<Waiting> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = recorded
            .entry(url.to_owned())
            .or_insert_with(|| sender(&self.client, &self.settings, url));
        waiting.clone()
    }
}

/// Starts sending to a queue what is handed in.
fn sender(client: &Client, settings: &SqsSettings, url: &str) -> mpsc::Sender<Waiting> {
    let (waiting, batches) = mpsc::channel(WAITING);
    let sender = Sender {
        client: client.clone(),
        url: url.to_owned(),
        timeout: settings.timeout,
        linger: settings.linger,
        max_bytes: settings.max_bytes,
        flights: Arc::new(Semaphore::new(settings.batches)),
        batches: settings.batches,
    };
    tokio::spawn(Arc::new(sender).run(batches));
    waiting
}

async fn send(
    waiting: &mpsc::Sender<Waiting>,
    message: &Message,
    lease: &Span,
) -> Result<Sent, QueueError> {
    let (result, sent) = oneshot::channel();
    let entry = Waiting {
        entry: entry::of(message),
        lease: lease.clone(),
        result,
    };
    let ended = || QueueError::Ambiguous("the sender has ended".into());
    waiting.send(entry).await.map_err(|_| ended())?;
    sent.await.map_err(|_| ended())?
}

impl EventQueue for SqsQueue {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        send(&self.waiting, message, lease).await
    }

    async fn send_recorded(
        &self,
        queue: &str,
        message: &Message,
        lease: &Span,
    ) -> Result<Sent, QueueError> {
        // A claim of another kind of queue names no queue of SQS.
        if queue == self.url || !queue.starts_with("http") {
            return self.send(message, lease).await;
        }
        match send(&self.recorded(queue), message, lease).await {
            // One that may no longer be sent to is as good as gone: refused for ever, the event would be lost.
            Err(QueueError::Refused(why)) if is_missing(&why) || why.contains("AccessDenied") => {
                self.send(message, lease).await
            }
            sent => sent,
        }
    }

    fn name(&self) -> &str {
        &self.url
    }
}

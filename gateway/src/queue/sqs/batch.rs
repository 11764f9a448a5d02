//! From messages that wait to batches in flight, and from SQS's answer to each message's own.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::BatchResultErrorEntry;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::MAX_ENTRIES;
use super::entry::Entry;
use crate::aws::{self, Failure};
use crate::clock::Span;
use crate::queue::{QueueError, Sent};

/// Refusals of a whole request for what may be one entry's fault: each entry is then tried alone, once.
const OF_ONE_ENTRY: [&str; 6] = [
    "BatchRequestTooLong",
    "InvalidAttributeValue",
    "InvalidMessageContents",
    "InvalidParameterValue",
    "MissingParameter",
    "UnsupportedOperation",
];

/// A message that waits for its batch.
pub(super) struct Waiting {
    pub(super) entry: Entry,
    pub(super) lease: Span,
    pub(super) result: oneshot::Sender<Result<Sent, QueueError>>,
}

pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) timeout: Duration,
    pub(super) linger: Duration,
    pub(super) max_bytes: usize,
    pub(super) flights: Arc<Semaphore>,
    /// How many of those there are.
    pub(super) batches: usize,
}

impl Sender {
    /// Sends what waits, until nobody can send any more.
    pub(super) async fn run(self: Arc<Self>, mut waiting: mpsc::Receiver<Waiting>) {
        let mut next = None;
        loop {
            // Not before there is room: whoever comes meanwhile fills the batch.
            let Ok(flight) = Arc::clone(&self.flights).acquire_owned().await else {
                return;
            };
            let first = match next.take() {
                Some(first) => first,
                None => match waiting.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let batch;
            (batch, next) = self.fill(first, &mut waiting).await;
            let sender = Arc::clone(&self);
            tokio::spawn(async move {
                sender.send(batch).await;
                drop(flight);
            });
        }
    }

    /// A batch that begins with this message, and the message that no longer fitted.
    async fn fill(
        &self,
        first: Waiting,
        waiting: &mut mpsc::Receiver<Waiting>,
    ) -> (Vec<Waiting>, Option<Waiting>) {
        let is_alone = self.flights.available_permits() + 1 >= self.batches;
        let closes = Instant::now() + self.linger;
        let mut size = first.entry.size;
        let mut batch = vec![first];
        while batch.len() < MAX_ENTRIES {
            let more = match waiting.try_recv() {
                Ok(more) => Some(more),
                Err(_) if is_alone => None,
                Err(_) => timeout_at(closes, waiting.recv()).await.ok().flatten(),
            };
            match more {
                Some(more) if size + more.entry.size <= self.max_bytes => {
                    size += more.entry.size;
                    batch.push(more);
                }
                rest => return (batch, rest),
            }
        }
        (batch, None)
    }

    async fn send(&self, batch: Vec<Waiting>) {
        let batch = still_wanted(batch);
        let Some(refusal) = self.attempt(batch).await else {
            return;
        };
        let is_one = refusal.batch.len() == 1;
        if is_one || !OF_ONE_ENTRY.contains(&refusal.code.as_str()) {
            let Refusal { batch, text, .. } = refusal;
            return answer_all(batch, || QueueError::Refused(text.clone()));
        }
        tracing::warn!(
            why = refusal.text,
            "a batch was refused: its messages are sent one by one"
        );
        for alone in refusal.batch {
            let alone = still_wanted(vec![alone]);
            if let Some(Refusal { batch, text, .. }) = self.attempt(alone).await {
                answer_all(batch, || QueueError::Refused(text.clone()));
            }
        }
    }

    /// One request. Everybody is answered, unless all of it was refused.
    async fn attempt(&self, batch: Vec<Waiting>) -> Option<Refusal> {
        let leases = batch.iter().map(|waiting| &waiting.lease);
        let fence = Fence(leases.min_by_key(|lease| lease.left())?.clone());
        let entries = batch.iter().enumerate();
        let entries = entries.filter_map(|(place, waiting)| waiting.entry.request(place));
        let request = self
            .client
            .send_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries.collect()))
            .customize()
            .interceptor(fence);
        let error = match timeout(self.timeout, request.send()).await {
            Ok(Ok(output)) => {
                answer_each(batch, &output);
                return None;
            }
            Ok(Err(error)) => error,
            Err(_) => {
                answer_all(batch, || QueueError::Ambiguous("no answer in time".into()));
                return None;
            }
        };
        match aws::failure(&error) {
            // Nobody's fault but the lease's that ended: the others may go on.
            Failure::Refused(_) if batch.iter().any(|waiting| !waiting.lease.is_running()) => {
                let others = still_wanted(batch);
                answer_all(others, || {
                    QueueError::Busy("the batch was not signed in time".into())
                });
            }
            Failure::Refused(text) => {
                use aws_sdk_sqs::error::ProvideErrorMetadata as _;
                let code = error.code().unwrap_or_default();
                let code = code.rsplit(['#', '.']).next().unwrap_or(code).to_owned();
                return Some(Refusal { batch, code, text });
            }
            Failure::Busy(text) => answer_all(batch, || QueueError::Busy(text.clone())),
            Failure::Ambiguous(text) => answer_all(batch, || QueueError::Ambiguous(text.clone())),
        }
        None
    }
}

/// All of a request was refused.
struct Refusal {
    batch: Vec<Waiting>,
    code: String,
    text: String,
}

/// Those whose delivery still waits and whose lease still runs; the others are told.
fn still_wanted(batch: Vec<Waiting>) -> Vec<Waiting> {
    let (running, ended): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .filter(|waiting| !waiting.result.is_closed())
        .partition(|waiting| waiting.lease.is_running());
    answer_all(ended, || QueueError::LeaseEnded);
    running
}

fn answer_all(batch: Vec<Waiting>, error: impl Fn() -> QueueError) {
    for waiting in batch {
        let _ = waiting.result.send(Err(error()));
    }
}

fn answer_each(batch: Vec<Waiting>, output: &SendMessageBatchOutput) {
    for (place, waiting) in batch.into_iter().enumerate() {
        let id = place.to_string();
        let held = output.successful().iter().find(|entry| entry.id() == id);
        let failed = output.failed().iter().find(|entry| entry.id() == id);
        let sent = match (held, failed) {
            (Some(held), _) if waiting.entry.is_understood(held) => Ok(Sent::Held),
            (Some(_), _) => {
                tracing::error!("SQS holds another message than was sent: its digest differs");
                Err(QueueError::Ambiguous(
                    "it holds other bytes than were sent".into(),
                ))
            }
            (None, Some(failed)) => Err(of_entry(failed)),
            (None, None) => Err(QueueError::Ambiguous(
                "it said nothing of the message".into(),
            )),
        };
        let _ = waiting.result.send(sent);
    }
}

fn of_entry(failed: &BatchResultErrorEntry) -> QueueError {
    let text = format!(
        "{}: {}",
        failed.code(),
        failed.message().unwrap_or("no message")
    );
    if failed.sender_fault() {
        QueueError::Refused(text)
    } else if aws::is_throttle(failed.code()) {
        QueueError::Busy(text)
    } else {
        QueueError::Ambiguous(text)
    }
}

/// Holds a signed request back if a lease in it ended while credentials were fetched.
#[derive(Clone)]
struct Fence(Span);

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence")
    }
}

impl Intercept for Fence {
    fn name(&self) -> &'static str {
        "Fence"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.0.is_running() {
            Ok(())
        } else {
            Err(QueueError::LeaseEnded.into())
        }
    }
}

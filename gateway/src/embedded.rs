//! The embedded store and queue: one database file that holds claims and messages, so that an event is
//! accepted in one durable transaction. It is each of the two seams alone too.
//!
//! One writer thread commits whatever waits as one batch (group commit): acceptances, settlements and sends.
//! "Processing" exists only in this process's memory. The file's lock makes that safe: a second process is
//! refused. Used as a claim store alone, a kill between send and settle therefore loses the claim: a retry
//! inside the window is deduplicated by the queue, one behind it is a second message without a flag.
//!
//! redb was chosen by measurement (32 clients, 2.5 KiB messages, fsync before each answer, interleaved runs
//! on 2 cores). Against redb's 1.0: fjall 2.7, SQLite (WAL, FULL) 1.1, LMDB 1.1 accepted events a second. But
//! with a damaged log fjall and SQLite opened without the last acknowledged events and said nothing, and LMDB
//! has no checksums and lets a second process in. redb reports damage when the check at opening is on, except
//! in the last commit before a kill; that one is found by the sequence noted beside it.

mod batch;
mod file;
mod format;
mod processing;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redb::{Database, ReadableDatabase};
use tokio::sync::{mpsc, oneshot};

use crate::backend::{Accept, Acceptance, Accepted};
use crate::clock::{SharedClock, Span};
use crate::delivery::Message;
use crate::queue::{Browse, EventQueue, Held, QueueError, Sent};
use crate::store::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token,
};
use file::Opened;
use format::{Encoded, RecordError, encode_claim};
use processing::Processing;
use writer::Writer;

pub use file::OpenError;

/// Requests that may wait for the writer; more wait in their own tasks.
const WAITING: usize = 1024;

/// The queue's name, as claims record it.
pub const QUEUE_NAME: &str = "embedded";

/// The database, open as long as it works. The writer closes it after a failed commit and opens it anew.
type Shared = Arc<ArcSwapOption<Database>>;

/// Opens the database, checked.
type Opener = Box<dyn Fn() -> Result<Opened, OpenError> + Send>;

/// The embedded store and queue.
pub struct Embedded {
    database: Shared,
    processing: Arc<Processing>,
    clock: SharedClock,
    writer: mpsc::Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

/// What the writer is asked for, and where its result goes.
struct Request {
    ask: Ask,
    result: oneshot::Sender<Result<Done, StoreError>>,
}

/// What takes a transaction. Records are written by those who ask, many at once, and not by the one writer.
enum Ask {
    Accept(Box<(Acceptance, Vec<u8>, Encoded)>),
    Settle(Box<(Settlement, Vec<u8>)>),
    Forget(String, u32),
    /// By deduplication id.
    Send(String, Encoded, Span),
    /// To open the database again, if it is closed after an error.
    Open,
}

/// What came of it, durably.
enum Done {
    Accepted(Accepted),
    Settled,
    Forgotten(bool),
    Sent(Sent),
    LeaseEnded,
    Opened,
}

impl Embedded {
    /// Opens the database in this directory, or makes it where there has never been one, and checks all of
    /// it: what is damaged is an error, never a smaller database. `window` is how long a deduplication id is
    /// remembered beyond its claim.
    pub fn open(directory: &Path, clock: SharedClock, window: Duration) -> Result<Self, OpenError> {
        let directory = directory.to_owned();
        Self::start(Box::new(move || file::open(&directory)), clock, window)
    }

    fn start(opener: Opener, clock: SharedClock, window: Duration) -> Result<Self, OpenError> {
        let opened = opener()?;
        let database: Shared = Arc::new(ArcSwapOption::from_pointee(opened.database));
        let (writer, requests) = mpsc::channel(WAITING);
        let processing = Arc::<Processing>::default();
        let thread = Writer {
            opener,
            database: Arc::clone(&database),
            processing: Arc::clone(&processing),
            clock: Arc::clone(&clock),
            window,
            next: opened.next,
            mark: opened.mark,
            closed: None,
            swept: None,
        };
        Ok(Self {
            database,
            processing,
            clock,
            writer,
            thread: Some(thread.start(requests)),
        })
    }

    async fn ask(&self, ask: Ask) -> Result<Done, StoreError> {
        let (result, answer) = oneshot::channel();
        let request = Request { ask, result };
        self.writer.send(request).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// The database; where it is closed after an error, the writer is asked to open it again.
    async fn database(&self) -> Result<Arc<Database>, StoreError> {
        if let Some(database) = self.database.load_full() {
            return Ok(database);
        }
        self.ask(Ask::Open).await?;
        self.database.load_full().ok_or_else(ended)
    }
}

fn ended() -> StoreError {
    StoreError::Ambiguous("the writer has ended".into())
}

/// Of reading, and of what was not handed to the writer: a commit that fails is another matter.
impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        Self::Refused(error.to_string())
    }
}

fn read_claim(database: &Database, key: &str) -> Result<Option<Claim>, StoreError> {
    Ok(format::read_claim(database, key)?)
}

/// Waits for the writer, which holds the database too: only the last holder closes it cleanly.
impl Drop for Embedded {
    fn drop(&mut self) {
        let (closed, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.writer, closed));
        // A panic in there ends the process.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Accept for Embedded {
    async fn accept(&self, acceptance: Acceptance) -> Result<Accepted, StoreError> {
        let claim = encode_claim(&acceptance.claim)?;
        let message = Encoded::of(&acceptance.message)?;
        let ask = Ask::Accept(Box::new((acceptance, claim, message)));
        match self.ask(ask).await? {
            Done::Accepted(accepted) => Ok(accepted),
            _ => Err(ended()),
        }
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        ClaimStore::forget(self, key, generation).await
    }

    fn queue_name(&self) -> &str {
        QUEUE_NAME
    }
}

impl ClaimStore for Embedded {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let (database, now) = (self.database().await?, self.clock.wall_ms());
        self.processing
            .claim(request, now, || read_claim(&database, &request.key))
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let claim = encode_claim(&settlement.claim)?;
        let ask = Ask::Settle(Box::new((settlement.clone(), claim)));
        match self.ask(ask).await? {
            Done::Settled => Ok(()),
            _ => Err(ended()),
        }
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        self.processing.release(key, token, how);
        Ok(())
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        match self.ask(Ask::Forget(key.to_owned(), generation)).await? {
            Done::Forgotten(forgotten) => Ok(forgotten),
            _ => Err(ended()),
        }
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        let (database, now) = (self.database().await?, self.clock.wall_ms());
        self.processing
            .look(key, now, || read_claim(&database, key))
    }
}

impl EventQueue for Embedded {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        let encoded = Encoded::of(message);
        let encoded = encoded.map_err(|error| QueueError::Refused(error.to_string()))?;
        let ask = Ask::Send(message.deduplication_id.clone(), encoded, lease.clone());
        match self.ask(ask).await {
            Ok(Done::Sent(sent)) => Ok(sent),
            Ok(Done::LeaseEnded) => Err(QueueError::LeaseEnded),
            Ok(_) => Err(QueueError::Ambiguous(ended().to_string())),
            Err(StoreError::Refused(reason)) => Err(QueueError::Refused(reason)),
            Err(StoreError::Busy(reason)) => Err(QueueError::Busy(reason)),
            Err(StoreError::Ambiguous(reason)) => Err(QueueError::Ambiguous(reason)),
        }
    }

    fn name(&self) -> &str {
        QUEUE_NAME
    }
}

impl Browse for Embedded {
    fn list(&self, after: u64, limit: usize) -> Result<Vec<Held>, QueueError> {
        let closed = || QueueError::Refused("the database is closed after an error".into());
        let database = self.database.load_full().ok_or_else(closed)?;
        let read = || -> Result<Vec<Held>, RecordError> {
            let transaction = database.begin_read()?;
            let messages = transaction.open_table(format::MESSAGES)?;
            let behind = messages.range(after.saturating_add(1)..)?.take(limit);
            behind
                .map(|entry| format::decode_message(entry?.1.value()))
                .collect()
        };
        read().map_err(|error| QueueError::Refused(error.to_string()))
    }
}

#[cfg(test)]
mod tests;

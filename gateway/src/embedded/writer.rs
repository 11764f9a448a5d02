//! The one thread that writes: takes what waits as one batch, commits it with one sync, then answers.
//!
//! After a failed commit nobody knows what the file holds, so the whole batch is told just that, and the
//! database is opened anew before the next. A panic in here ends the process: the next start checks the file.

use std::iter::repeat_with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use redb::{Database, Durability, WriteTransaction};
use tokio::sync::mpsc;

use super::batch::Batch;
use super::file::{Mark, Opened};
use super::format::{RecordError, Tables};
use super::processing::Processing;
use super::{Done, Opener, Request, Shared};
use crate::clock::{SharedClock, Span};
use crate::failpoint;
use crate::store::{StoreError, millis};

/// The most requests that one commit carries.
pub(super) const BATCH: usize = 256;
/// How long an unusable database is left alone before it is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// How long nothing is swept once nothing expired was left.
const SWEEP_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    pub(super) opener: Opener,
    pub(super) database: Shared,
    pub(super) processing: Arc<Processing>,
    pub(super) clock: SharedClock,
    /// How long a deduplication id is remembered.
    pub(super) window: Duration,
    /// The sequence of the next message.
    pub(super) next: u64,
    /// Where that is noted.
    pub(super) mark: Option<Mark>,
    pub(super) closed: Option<Closed>,
    /// Runs while nothing is swept.
    pub(super) swept: Option<Span>,
}

/// Why the database is closed, and for how long it is left alone.
pub(super) struct Closed {
    reason: String,
    rest: Span,
}

/// What a transaction that is not committed yet will have done.
struct Written {
    results: Vec<Done>,
    /// The sequence of the next message.
    next: u64,
    /// Keys of the claims that it records as accepted.
    accepted: Vec<String>,
    /// Whether it removes the last of what has expired.
    is_swept: bool,
}

impl Writer {
    /// Starts the thread. It ends when the last sender is gone and all that waited is written.
    pub(super) fn start(mut self, mut requests: mpsc::Receiver<Request>) -> JoinHandle<()> {
        let run = move || {
            let written = catch_unwind(AssertUnwindSafe(|| {
                while let Some(first) = requests.blocking_recv() {
                    self.batch(first, &mut requests);
                }
            }));
            if written.is_err() {
                tracing::error!(
                    "the embedded store's writer failed; the next start checks the file"
                );
                std::process::abort();
            }
        };
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(run)
            .expect("the system has no thread for the embedded store's writer")
    }

    fn batch(&mut self, first: Request, requests: &mut mpsc::Receiver<Request>) {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(request) = requests.try_recv()
        {
            batch.push(request);
        }
        let database = match self.open() {
            Ok(database) => database,
            Err(reason) => {
                let refused = || Err(StoreError::Refused(reason.clone()));
                return answer(batch, repeat_with(refused));
            }
        };
        match self.commit(&database, &batch) {
            Ok(results) => {
                failpoint::here(failpoint::AFTER_COMMIT);
                answer(batch, results.into_iter().map(Ok));
            }
            Err(error) => {
                drop(database);
                let reason = error.to_string();
                tracing::error!(%error, "a commit failed; nothing of it was acknowledged");
                self.close(reason.clone());
                let lost = || Err(StoreError::Ambiguous(reason.clone()));
                answer(batch, repeat_with(lost));
            }
        }
    }

    /// The database, opened anew where it was closed after an error and has rested.
    fn open(&mut self) -> Result<Arc<Database>, String> {
        if let Some(database) = self.database.load_full() {
            return Ok(database);
        }
        if let Some(closed) = self
            .closed
            .as_ref()
            .filter(|closed| closed.rest.is_running())
        {
            return Err(format!(
                "the database is closed after an error: {}",
                closed.reason
            ));
        }
        match (self.opener)() {
            Ok(Opened {
                database,
                next,
                mark,
            }) => {
                tracing::warn!("the database is open again");
                (self.next, self.mark, self.closed) = (next, mark, None);
                let database = Arc::new(database);
                self.database.store(Some(Arc::clone(&database)));
                Ok(database)
            }
            Err(error) => {
                tracing::error!(%error, "the database cannot be opened again");
                self.close(error.to_string());
                Err(error.to_string())
            }
        }
    }

    fn close(&mut self, reason: String) {
        self.database.store(None);
        self.closed = Some(Closed {
            reason,
            rest: Span::start(&self.clock, REOPEN_AFTER),
        });
    }

    fn commit(
        &mut self,
        database: &Database,
        requests: &[Request],
    ) -> Result<Vec<Done>, RecordError> {
        failpoint::here(failpoint::BEFORE_COMMIT);
        let mut transaction = database.begin_write()?;
        // `set_durability` fails only where a savepoint is in use.
        let _ = transaction.set_durability(Durability::Immediate);
        let Written {
            results,
            next,
            accepted,
            is_swept,
        } = self.write(&transaction, requests)?;
        failpoint::here(failpoint::INSIDE_COMMIT);
        transaction.commit()?;
        // Not before they are durably accepted: a claim reads the database, then what is at work.
        for key in accepted {
            self.processing.remove(&key);
        }
        if is_swept {
            self.swept = Some(Span::start(&self.clock, SWEEP_AFTER));
        }
        if next != self.next {
            self.next = next;
            if let Some(Err(error)) = self.mark.as_ref().map(|mark| mark.set(next)) {
                tracing::warn!(%error, "the last sequence could not be noted");
            }
        }
        Ok(results)
    }

    fn write(
        &self,
        transaction: &WriteTransaction,
        requests: &[Request],
    ) -> Result<Written, RecordError> {
        let mut tables = Tables::open(transaction)?;
        let mut batch = Batch {
            tables: &mut tables,
            processing: &self.processing,
            now: self.clock.wall_ms(),
            window: millis(self.window),
            next: self.next,
            accepted: Vec::new(),
        };
        let results = requests.iter().map(|request| batch.ask(&request.ask));
        let results = results.collect::<Result<_, _>>()?;
        let rests = self.swept.as_ref().is_some_and(Span::is_running);
        let is_swept = !rests && !batch.sweep()?;
        let Batch { next, accepted, .. } = batch;
        if next != self.next {
            tables.set_next_sequence(next)?;
        }
        Ok(Written {
            results,
            next,
            accepted,
            is_swept,
        })
    }
}

/// Answers everybody of a batch. Whoever has gone has its event all the same.
fn answer(batch: Vec<Request>, results: impl IntoIterator<Item = Result<Done, StoreError>>) {
    for (request, result) in batch.into_iter().zip(results) {
        let _ = request.result.send(result);
    }
}

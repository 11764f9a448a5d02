//! The one thread that writes: takes what waits as one batch, commits it with one sync, then answers.
//!
//! After a failed commit nobody knows what the file holds, so the whole batch is told just that, and the
//! database is opened anew before the next. A panic in here ends the process: the next start checks the file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use redb::{Database, Durability, ReadableTable};
use tokio::sync::mpsc;

use super::file::{Mark, Opened};
use super::format::{RecordError, Tables, encode_message};
use super::{Opener, Request, Shared};
use crate::backend::{Acceptance, Accepted};
use crate::clock::{SharedClock, Span};
use crate::failpoint;
use crate::queue::Held;
use crate::store::{State, StoreError, millis};

/// The most acceptances that one commit carries.
const BATCH: usize = 256;
/// The most expired records that one commit takes along: more than it adds, so that none pile up.
const SWEEP: usize = 2 * BATCH;
/// How long an unusable database is left alone before it is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    opener: Opener,
    database: Shared,
    clock: SharedClock,
    window: Duration,
    next: u64,
    mark: Option<Mark>,
    closed: Option<Closed>,
}

/// Why the database is closed, and for how long it is left alone.
struct Closed {
    reason: String,
    rest: Span,
}

impl Writer {
    pub(super) fn new(
        opener: Opener,
        database: Shared,
        clock: SharedClock,
        window: Duration,
        next: u64,
        mark: Option<Mark>,
    ) -> Self {
        Self {
            opener,
            database,
            clock,
            window,
            next,
            mark,
            closed: None,
        }
    }

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
                return answer(batch, |_| Err(StoreError::Refused(reason.clone())));
            }
        };
        match self.commit(&database, &batch) {
            Ok(results) => {
                failpoint::here(failpoint::AFTER_COMMIT);
                let mut results = results.into_iter();
                answer(batch, |_| Ok(results.next().unwrap_or(Accepted::New)));
            }
            Err(error) => {
                drop(database);
                let reason = error.to_string();
                tracing::error!(%error, "a commit failed; nothing of it was acknowledged");
                self.close(reason.clone());
                answer(batch, |_| Err(StoreError::Ambiguous(reason.clone())));
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
        batch: &[Request],
    ) -> Result<Vec<Accepted>, RecordError> {
        failpoint::here(failpoint::BEFORE_COMMIT);
        let now = self.clock.wall_ms();
        let mut next = self.next;
        let mut transaction = database.begin_write()?;
        // `set_durability` fails only where a savepoint is in use.
        let _ = transaction.set_durability(Durability::Immediate);
        let mut results = Vec::with_capacity(batch.len());
        {
            let mut tables = Tables::open(&transaction)?;
            for request in batch {
                results.push(self.accept(&mut tables, &request.acceptance, now, &mut next)?);
            }
            sweep(&mut tables, now, millis(self.window))?;
            if next != self.next {
                tables.set_next_sequence(next)?;
            }
        }
        failpoint::here(failpoint::INSIDE_COMMIT);
        transaction.commit()?;
        if next != self.next {
            self.next = next;
            if let Some(Err(error)) = self.mark.as_ref().map(|mark| mark.set(next)) {
                tracing::warn!(%error, "the last sequence could not be noted");
            }
        }
        Ok(results)
    }

    /// Decides about one event inside the batch's transaction, earlier ones of the batch included.
    fn accept(
        &self,
        tables: &mut Tables<'_>,
        acceptance: &Acceptance,
        now: u64,
        next: &mut u64,
    ) -> Result<Accepted, RecordError> {
        let found = tables
            .claim(&acceptance.key)?
            .filter(|claim| !claim.is_expired(now));
        match found {
            Some(found) if found.state == State::Accepted => {
                return Ok(Accepted::Duplicate(Box::new(found)));
            }
            Some(found) if acceptance.closes != Some(found.token) => {
                return Ok(Accepted::Open(Box::new(found)));
            }
            _ => {}
        }
        let claim = &acceptance.claim;
        let record = serde_json::to_vec(claim)?;
        tables
            .claims
            .insert(acceptance.key.as_str(), record.as_slice())?;
        if !self.is_remembered(tables, acceptance, now)? {
            let held = Held {
                sequence: *next,
                sent_at: now,
                receives: 0,
                visible_at: 0,
                message: acceptance.message.clone(),
            };
            tables
                .messages
                .insert(*next, encode_message(&held)?.as_slice())?;
            tables
                .expiry
                .insert((claim.expires_at, *next), acceptance.key.as_str())?;
            *next += 1;
        }
        Ok(Accepted::New)
    }

    /// Whether the message's deduplication id was sent inside the window; from now on it is. Generation 0's
    /// id is the claim's key: the claim itself remembers it, for longer than any window.
    fn is_remembered(
        &self,
        tables: &mut Tables<'_>,
        acceptance: &Acceptance,
        now: u64,
    ) -> Result<bool, RecordError> {
        let id = acceptance.message.deduplication_id.as_str();
        if id == acceptance.key {
            return Ok(false);
        }
        let sent_at = tables.sent.get(id)?.map(|sent_at| sent_at.value());
        if sent_at.is_some_and(|sent_at| now < sent_at + millis(self.window)) {
            return Ok(true);
        }
        tables.sent.insert(id, now)?;
        Ok(false)
    }
}

/// Removes records whose time is over. Conditions never rely on it: it only keeps the file small.
fn sweep(tables: &mut Tables<'_>, now: u64, window: u64) -> Result<(), RecordError> {
    let ends = (now / 1000, u64::MAX);
    let due: Vec<_> = tables
        .expiry
        .range(..=ends)?
        .take(SWEEP)
        .map(|entry| entry.map(|(key, claim)| (key.value(), claim.value().to_owned())))
        .collect::<Result<_, _>>()?;
    for (key, claim) in due {
        tables.expiry.remove(key)?;
        // A claim of a later generation lives on under the same key.
        if tables
            .claim(&claim)?
            .is_some_and(|claim| claim.is_expired(now))
        {
            tables.claims.remove(claim.as_str())?;
        }
    }
    if tables.sent.first()?.is_some() {
        tables.sent.retain(|_, sent_at| now < sent_at + window)?;
    }
    Ok(())
}

/// Answers everybody of a batch. Whoever has gone has its event all the same.
fn answer(batch: Vec<Request>, mut result: impl FnMut(&Request) -> Result<Accepted, StoreError>) {
    for request in batch {
        let result = result(&request);
        let _ = request.result.send(result);
    }
}

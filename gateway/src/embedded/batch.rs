//! What one transaction does: each request decided inside it, earlier ones of the batch included, and the
//! expired records swept.
//!
//! A deduplication id is remembered by its row in `sent`; generation 0's also by the claim that accepted it,
//! whose key it is, so that an acceptance writes no row for it.

use redb::ReadableTable;

use super::format::{Encoded, RecordError, Tables, encode_claim};
use super::processing::Processing;
use super::{Ask, Done};
use crate::backend::{Acceptance, Accepted};
use crate::clock::Span;
use crate::crypto;
use crate::queue::Sent;
use crate::store::{Claim, Settlement, State, rules};

/// The most expired records that one commit takes along: more than it adds, so that none pile up.
pub(super) const SWEEP: usize = 2 * super::writer::BATCH;

/// A transaction under way.
pub(super) struct Batch<'a, 'tables> {
    pub(super) tables: &'a mut Tables<'tables>,
    pub(super) processing: &'a Processing,
    /// The one moment that everything in it happens at, in ms since 1970.
    pub(super) now: u64,
    /// The deduplication window in ms.
    pub(super) window: u64,
    /// The sequence of the next message.
    pub(super) next: u64,
    /// Keys of the claims that it records as accepted.
    pub(super) accepted: Vec<String>,
}

impl Batch<'_, '_> {
    /// Decides about one request.
    pub(super) fn ask(&mut self, ask: &Ask) -> Result<Done, RecordError> {
        match ask {
            Ask::Accept(ask) => self.accept(&ask.0, &ask.1, &ask.2).map(Done::Accepted),
            Ask::Settle(ask) => self.settle(&ask.0, &ask.1).map(|()| Done::Settled),
            Ask::Forget(key, generation) => self.forget(key, *generation).map(Done::Forgotten),
            Ask::Send(id, message, lease) => self.send(id, message, lease),
            Ask::Open => Ok(Done::Opened),
        }
    }

    fn accept(
        &mut self,
        acceptance: &Acceptance,
        claim: &[u8],
        message: &Encoded,
    ) -> Result<Accepted, RecordError> {
        let recorded = self.tables.claim(&acceptance.key)?;
        let found = self
            .processing
            .find(&acceptance.key, recorded.clone(), self.now);
        match found {
            Some(found) if found.state == State::Accepted => {
                return Ok(Accepted::Duplicate(Box::new(found)));
            }
            Some(found) if acceptance.closes != Some(found.token) => {
                return Ok(Accepted::Open(Box::new(found)));
            }
            _ => {}
        }
        let id = &acceptance.message.deduplication_id;
        let is_first = *id == acceptance.key;
        if self.is_remembered(id, recorded.filter(|_| is_first).as_ref())? {
            self.record(&acceptance.key, &acceptance.claim, claim, None)?;
        } else {
            if !is_first {
                self.tables.remember(id, self.now, self.next)?;
            }
            self.record(&acceptance.key, &acceptance.claim, claim, Some(self.next))?;
            self.hold(message)?;
        }
        Ok(Accepted::New)
    }

    fn settle(&mut self, settlement: &Settlement, claim: &[u8]) -> Result<(), RecordError> {
        let recorded = self.tables.claim(&settlement.key)?;
        let found = self.processing.find(&settlement.key, recorded, self.now);
        if rules::settles(found.as_ref(), &settlement.claim, self.now) {
            self.record(&settlement.key, &settlement.claim, claim, None)?;
        }
        Ok(())
    }

    fn forget(&mut self, key: &str, generation: u32) -> Result<bool, RecordError> {
        let recorded = self.tables.claim(key)?;
        let Some(next) = rules::forget(recorded.as_ref(), generation, self.now) else {
            return Ok(false);
        };
        // What the claim remembered of its message, it no longer does.
        let sent_at = recorded.and_then(|claim| claim.accepted_at);
        if let Some(sent_at) = sent_at.filter(|_| generation == 0) {
            self.tables.remember(key, sent_at, number_of(key))?;
        }
        self.record(key, &next, &encode_claim(&next)?, None)?;
        Ok(true)
    }

    /// The lease is looked at here: what follows is one commit.
    fn send(&mut self, id: &str, message: &Encoded, lease: &Span) -> Result<Done, RecordError> {
        if !lease.is_running() {
            return Ok(Done::LeaseEnded);
        }
        let recorded = self.tables.claim(id)?;
        if self.is_remembered(id, recorded.as_ref())? {
            return Ok(Done::Sent(Sent::Deduplicated));
        }
        self.tables.remember(id, self.now, self.next)?;
        self.hold(message)?;
        Ok(Done::Sent(Sent::New))
    }

    /// Whether a deduplication id was sent inside the window; `first` is the claim whose key it is.
    fn is_remembered(&self, id: &str, first: Option<&Claim>) -> Result<bool, RecordError> {
        let accepted =
            first.filter(|claim| claim.state == State::Accepted && claim.generation == 0);
        let accepted_at = accepted.and_then(|claim| claim.accepted_at);
        let sent_at = self.tables.sent.get(id)?.map(|sent_at| sent_at.value());
        let is_inside = |sent_at: u64| self.now < sent_at + self.window;
        Ok(sent_at.is_some_and(is_inside) || accepted_at.is_some_and(is_inside))
    }

    /// `number` tells apart the claims that expire in the same second: a sequence of its own, if it has one.
    fn record(
        &mut self,
        key: &str,
        claim: &Claim,
        record: &[u8],
        number: Option<u64>,
    ) -> Result<(), RecordError> {
        self.tables.claims.insert(key, record)?;
        let number = number.unwrap_or_else(|| number_of(key));
        self.tables.expiry.insert((claim.expires_at, number), key)?;
        if claim.state == State::Accepted {
            self.accepted.push(key.to_owned());
        }
        Ok(())
    }

    fn hold(&mut self, message: &Encoded) -> Result<(), RecordError> {
        let record = message.record(self.next, self.now);
        self.tables.messages.insert(self.next, record.as_slice())?;
        self.next += 1;
        Ok(())
    }

    /// Removes records whose time is over; says whether any are left. Conditions never rely on it: it only
    /// keeps the file small.
    pub(super) fn sweep(&mut self) -> Result<bool, RecordError> {
        let ends = (self.now / 1000, u64::MAX);
        let expired = Tables::due(&self.tables.expiry, ends, SWEEP)?;
        let mut any_left = expired.len() == SWEEP;
        for (at, key) in expired {
            self.tables.expiry.remove(at)?;
            // A claim of a later generation lives on under the same key.
            let claim = self.tables.claim(&key)?;
            if claim.is_some_and(|claim| claim.is_expired(self.now)) {
                self.tables.claims.remove(key.as_str())?;
            }
        }
        let ends = (self.now.saturating_sub(self.window), u64::MAX);
        let forgotten = Tables::due(&self.tables.sent_order, ends, SWEEP)?;
        any_left |= forgotten.len() == SWEEP;
        for (at, id) in forgotten {
            self.tables.sent_order.remove(at)?;
            let sent_at = self.tables.sent.get(id.as_str())?.map(|sent| sent.value());
            if sent_at.is_some_and(|sent_at| sent_at <= ends.0) {
                self.tables.sent.remove(id.as_str())?;
            }
        }
        Ok(any_left)
    }
}

/// A number of a key that has no message of its own, beyond all sequences.
fn number_of(key: &str) -> u64 {
    let digest = crypto::sha256(key.as_bytes());
    let first = digest.first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(first) | 1 << 63
}

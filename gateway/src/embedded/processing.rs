//! Claims at work: in this process's memory alone. The file's lock makes that safe, and a start begins
//! without any, so claims of an earlier boot are dead.
//!
//! What is durable comes first: once an event is recorded as accepted, a claim that is left here means
//! nothing. Read and decide under one lock, or an owner could be made of an event just settled.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{Claim, ClaimRequest, Claimed, Release, State, Token, rules};

/// Claims that are held before the expired ones are first looked for.
const SWEEP_FROM: usize = 1024;

/// Claims at work, by key.
#[derive(Default)]
pub(super) struct Processing {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    claims: HashMap<String, Claim>,
    /// How many claims there may be before expired ones are removed.
    sweep_at: usize,
}

impl Processing {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an event. `durable` reads what the database says of it.
    pub(super) fn claim<E>(
        &self,
        request: &ClaimRequest,
        now: u64,
        durable: impl FnOnce() -> Result<Option<Claim>, E>,
    ) -> Result<Claimed, E> {
        let mut table = self.table();
        let found = current(durable()?, table.claims.get(&request.key), now);
        let (claimed, write) = rules::claim(found, request, now);
        if let Some(record) = write {
            table.sweep(now);
            table.claims.insert(request.key.clone(), record);
        }
        Ok(claimed)
    }

    /// What is known of an event whose durable record, if any, is `durable`.
    pub(super) fn find(&self, key: &str, durable: Option<Claim>, now: u64) -> Option<Claim> {
        current(durable, self.table().claims.get(key), now)
    }

    /// Like [`Self::find`], where what is durable may just be changing.
    pub(super) fn look<E>(
        &self,
        key: &str,
        now: u64,
        durable: impl FnOnce() -> Result<Option<Claim>, E>,
    ) -> Result<Option<Claim>, E> {
        let table = self.table();
        Ok(current(durable()?, table.claims.get(key), now))
    }

    /// Gives a claim up, if the token holds it.
    pub(super) fn release(&self, key: &str, token: Token, how: Release) {
        let mut table = self.table();
        let claim = table.claims.get_mut(key);
        match (how, claim.filter(|claim| rules::releases(claim, token))) {
            (Release::Delete, Some(_)) => drop(table.claims.remove(key)),
            (Release::EndLease, Some(claim)) => claim.lease_until = 0,
            (_, None) => {}
        }
    }

    /// The event is durably accepted.
    pub(super) fn remove(&self, key: &str) {
        self.table().claims.remove(key);
    }
}

impl Table {
    /// Conditions never rely on it: it bounds the memory, at a constant cost for each claim.
    fn sweep(&mut self, now: u64) {
        if self.claims.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.claims.retain(|_, claim| !claim.is_expired(now));
            self.sweep_at = 2 * self.claims.len();
        }
    }
}

/// An accepted record, else the claim at work, else an open record that an operator left, whose lease is over.
fn current(durable: Option<Claim>, at_work: Option<&Claim>, now: u64) -> Option<Claim> {
    let durable = durable.filter(|claim| !claim.is_expired(now));
    match durable {
        Some(claim) if claim.state == State::Accepted => Some(claim),
        durable => at_work
            .filter(|claim| !claim.is_expired(now))
            .cloned()
            .or_else(|| {
                durable.map(|claim| Claim {
                    lease_until: 0,
                    ..claim
                })
            }),
    }
}

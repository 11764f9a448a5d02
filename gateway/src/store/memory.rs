//! The reference claim store: a map in this process. For tests and for measuring; nothing here is durable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token, rules,
};
use crate::clock::SharedClock;

/// Claims in memory.
pub struct MemoryStore {
    clock: SharedClock,
    claims: Arc<Mutex<HashMap<String, Claim>>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            claims: Arc::default(),
        }
    }

    /// The same claims judged by another clock, as where every gateway judges by its own.
    #[must_use]
    pub fn judged_by(&self, clock: SharedClock) -> Self {
        Self {
            clock,
            claims: Arc::clone(&self.claims),
        }
    }

    fn claims(&self) -> MutexGuard<'_, HashMap<String, Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimStore for MemoryStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let mut claims = self.claims();
        let found = claims.get(&request.key).cloned();
        let (claimed, write) = rules::claim(found, request, self.clock.wall_ms());
        if let Some(record) = write {
            claims.insert(request.key.clone(), record);
        }
        Ok(claimed)
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let mut claims = self.claims();
        let found = claims.get(&settlement.key);
        if rules::settles(found, &settlement.claim, self.clock.wall_ms()) {
            claims.insert(settlement.key.clone(), settlement.claim.clone());
        }
        Ok(())
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        let mut claims = self.claims();
        let Some(found) = claims
            .get_mut(key)
            .filter(|found| rules::releases(found, token))
        else {
            return Ok(());
        };
        match how {
            Release::Delete => drop(claims.remove(key)),
            Release::EndLease => found.lease_until = 0,
        }
        Ok(())
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        let mut claims = self.claims();
        let next = rules::forget(claims.get(key), generation, self.clock.wall_ms());
        let forgotten = next.map(|next| claims.insert(key.to_owned(), next));
        Ok(forgotten.is_some())
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        let now = self.clock.wall_ms();
        Ok(self
            .claims()
            .get(key)
            .filter(|claim| !claim.is_expired(now))
            .cloned())
    }
}

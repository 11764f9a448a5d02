//! The reference claim store: a map in this process. For tests and for measuring; nothing here is durable.
//!
//! It keeps everything, as tests want it, or the newest claims only, so that a gateway that is measured does
//! not grow for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token, rules,
};
use crate::clock::SharedClock;

/// Claims in memory.
pub struct MemoryStore {
    clock: SharedClock,
    claims: Arc<Mutex<Claims>>,
}

struct Claims {
    by_key: HashMap<String, Claim>,
    /// Their keys, the oldest first, where only so many are kept.
    order: Option<(usize, VecDeque<String>)>,
}

impl Claims {
    fn record(&mut self, key: &str, claim: Claim) {
        if self.by_key.insert(key.to_owned(), claim).is_some() {
            return;
        }
        if let Some((most, order)) = &mut self.order {
            if order.len() == *most
                && let Some(oldest) = order.pop_front()
            {
                self.by_key.remove(&oldest);
            }
            order.push_back(key.to_owned());
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: SharedClock) -> Self {
        Self::of(clock, HashMap::new(), None)
    }

    /// An empty store that forgets the oldest claim where there would be more than `most`.
    pub fn keeping(clock: SharedClock, most: usize) -> Self {
        let order = VecDeque::with_capacity(most);
        Self::of(clock, HashMap::with_capacity(most + 1), Some((most, order)))
    }

    fn of(
        clock: SharedClock,
        by_key: HashMap<String, Claim>,
        order: Option<(usize, VecDeque<String>)>,
    ) -> Self {
        Self {
            clock,
            claims: Arc::new(Mutex::new(Claims { by_key, order })),
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

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimStore for MemoryStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let mut claims = self.claims();
        let found = claims.by_key.get(&request.key).cloned();
        let (claimed, write) = rules::claim(found, request, self.clock.wall_ms());
        if let Some(record) = write {
            claims.record(&request.key, record);
        }
        Ok(claimed)
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let mut claims = self.claims();
        let found = claims.by_key.get(&settlement.key);
        if rules::settles(found, &settlement.claim, self.clock.wall_ms()) {
            claims.record(&settlement.key, settlement.claim.clone());
        }
        Ok(())
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        let mut claims = self.claims();
        let Some(found) = claims
            .by_key
            .get_mut(key)
            .filter(|found| rules::releases(found, token))
        else {
            return Ok(());
        };
        match how {
            Release::Delete => drop(claims.by_key.remove(key)),
            Release::EndLease => found.lease_until = 0,
        }
        Ok(())
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        let mut claims = self.claims();
        let found = claims.by_key.get(key);
        let next = rules::forget(found, generation, self.clock.wall_ms());
        let forgotten = next.map(|next| claims.record(key, next));
        Ok(forgotten.is_some())
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        let now = self.clock.wall_ms();
        Ok(self
            .claims()
            .by_key
            .get(key)
            .filter(|claim| !claim.is_expired(now))
            .cloned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    #[tokio::test]
    async fn a_store_that_keeps_so_many_claims_forgets_the_oldest() {
        let store = MemoryStore::keeping(ManualClock::at(1_700_000_000_000), 2);
        for key in ["a", "b", "b", "c"] {
            let request = ClaimRequest {
                key: key.to_owned(),
                token: Token::new(),
                lease: Duration::from_secs(1),
                group: String::new(),
                queue: String::new(),
                body_sha256: String::new(),
                ttl: Duration::from_secs(60),
                take_over: None,
            };
            store.claim(&request).await.unwrap();
        }
        let mut kept = Vec::new();
        for key in ["a", "b", "c"] {
            kept.push(store.look(key).await.unwrap().is_some());
        }
        assert_eq!(kept, [false, true, true]);
    }
}

//! Event ids that are not stable over retries: one body, accepted under another id minutes before.
//!
//! Remembers a few thousand bodies in a fixed table, without a lock, and forgets by being written over: it
//! finds most, and proves nothing. Two events may well have equal bodies.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 8192;

/// Bodies are remembered for one to two of these, in ms.
const EPOCH: u64 = 5 * 60 * 1000;

/// Bodies of late, by the id that they came under.
pub(super) struct Recent {
    /// 24 bits of the body's hash, 32 of the id's, 8 of the epoch.
    slots: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(u64::MAX)).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Recent {
    /// Whether the source's body came under another id within minutes. Remembers it under this one.
    pub(super) fn is_unstable(&self, source: (&str, &str), body: &str, id: &str, now: u64) -> bool {
        let body = self.hasher.hash_one((source, body));
        let epoch = now / EPOCH % 255;
        let id = self.hasher.hash_one(id) & 0xffff_ffff;
        let place = usize::try_from(body).unwrap_or(0) % SLOTS;
        let entry = (body >> 40) << 40 | id << 8 | epoch;
        let found = self.slots[place].swap(entry, Ordering::Relaxed);
        let (same_body, same_id) = (found >> 40 == entry >> 40, (found >> 8) & 0xffff_ffff == id);
        let age = (epoch + 255 - (found & 0xff)) % 255;
        found != u64::MAX && same_body && !same_id && age <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;
    const SOURCE: (&str, &str) = ("acme", "shop");

    #[test]
    fn a_body_under_another_id_is_unstable_for_minutes() {
        let recent = Recent::default();
        assert!(!recent.is_unstable(SOURCE, "body", "id-1", NOW));
        assert!(
            !recent.is_unstable(SOURCE, "body", "id-1", NOW + 1000),
            "a retry"
        );
        assert!(recent.is_unstable(SOURCE, "body", "id-2", NOW + 60_000));
        assert!(recent.is_unstable(SOURCE, "body", "id-3", NOW + 61_000));
        assert!(!recent.is_unstable(SOURCE, "body", "id-4", NOW + 61_000 + 2 * EPOCH));
    }

    #[test]
    fn other_bodies_and_other_sources_are_other_events() {
        let recent = Recent::default();
        assert!(!recent.is_unstable(SOURCE, "body", "id-1", NOW));
        assert!(!recent.is_unstable(SOURCE, "other", "id-2", NOW));
        assert!(!recent.is_unstable(("acme", "pay"), "body", "id-3", NOW));
        assert!(!recent.is_unstable(("else", "shop"), "body", "id-4", NOW));
    }
}

//! The scripts against the rules: random sequences of calls on Redis and on the reference store give the same
//! outcomes and the same records.
//!
//! Leases and lives are such that the moment does not matter: lapsed at once, running for long, impossible.

use std::sync::Arc;
use std::time::Duration;

use hookgate::clock::{Clock as _, SystemClock};
use hookgate::store::memory::MemoryStore;
use hookgate::store::{Claim, ClaimStore, Claimed, Release, Settlement, Token};

use super::bench::shared;
use super::{settings, store};
use crate::contract::{accepted, fresh, open, request};

const SEQUENCES: u64 = 150;
const STEPS: usize = 14;

/// What does not depend on the moment.
#[derive(Debug, PartialEq)]
enum Seen {
    Owner(u32, String, String, bool),
    Duplicate(Box<Claim>),
    InFlight(Token),
    Forgotten(bool),
    Done,
}

struct Run {
    random: fastrand::Rng,
    key: String,
    tokens: Vec<Token>,
    now: u64,
}

/// A call, drawn once and made on both.
enum Call {
    Claim(Box<hookgate::store::ClaimRequest>),
    Settle(Box<Settlement>),
    Release(Token, Release),
    Forget(u32),
}

impl Run {
    fn token(&mut self) -> Token {
        self.tokens[self.random.usize(..self.tokens.len())]
    }

    fn call(&mut self) -> Call {
        let generation = self.random.u32(..3);
        match self.random.u32(..10) {
            0..=3 => Call::Claim(Box::new(self.claim())),
            4..=6 => Call::Settle(Box::new(self.settlement(generation))),
            7 => Call::Release(self.token(), Release::Delete),
            8 => Call::Release(self.token(), Release::EndLease),
            _ => Call::Forget(generation),
        }
    }

    fn claim(&mut self) -> hookgate::store::ClaimRequest {
        let leases = [0, 20, 20, 3600].map(Duration::from_secs);
        let mut claim = request(&self.key);
        claim.token = self.token();
        claim.lease = leases[self.random.usize(..4)];
        claim.group = format!("g{}", self.random.u32(..3));
        claim.take_over = self.random.bool().then(|| self.token());
        claim
    }

    fn settlement(&mut self, generation: u32) -> Settlement {
        let (token, answer) = (self.token(), self.random.u32(..1000).to_string());
        let mut claim = match self.random.u32(..4) {
            0 => open(self.now, token, generation),
            _ => accepted(self.now, token, generation, &answer),
        };
        match self.random.u32(..4) {
            // Expired from the start.
            0 => claim.expires_at = self.now / 1000 - 1,
            _ => claim.lease_until = [0, self.now + 20_000][self.random.usize(..2)],
        }
        Settlement {
            key: self.key.clone(),
            claim,
        }
    }
}

/// What a call came to, and the record behind it.
async fn make(call: &Call, key: &str, on: &impl ClaimStore) -> (Seen, Option<Claim>) {
    let seen = match call {
        Call::Claim(request) => match on.claim(request).await.unwrap() {
            Claimed::Owner(grant) => {
                Seen::Owner(grant.generation, grant.group, grant.queue, grant.taken_over)
            }
            Claimed::Duplicate(claim) => Seen::Duplicate(claim),
            Claimed::InFlight { owner, .. } => Seen::InFlight(owner),
        },
        Call::Settle(settlement) => {
            on.settle(settlement).await.unwrap();
            Seen::Done
        }
        Call::Release(token, how) => {
            on.release(key, *token, *how).await.unwrap();
            Seen::Done
        }
        Call::Forget(generation) => Seen::Forgotten(on.forget(key, *generation).await.unwrap()),
    };
    (seen, on.look(key).await.unwrap())
}

/// The record with what two stores cannot have in common put right, where it is near enough: moments, and the
/// tokens that `forget` draws.
fn near(claim: &Claim, other: &Claim, tokens: &[Token]) -> Claim {
    // Leases end at once, or in 20 s.
    let soon = SystemClock.wall_ms() + 5000;
    let mut near = claim.clone();
    let take = |mine: &mut u64, other: u64, most: u64| {
        if mine.abs_diff(other) <= most {
            *mine = other;
        }
    };
    take(&mut near.first_at, other.first_at, 10_000);
    take(&mut near.expires_at, other.expires_at, 10);
    if claim.lease_left(soon).is_some() == other.lease_left(soon).is_some() {
        take(&mut near.lease_until, other.lease_until, 10_000);
    }
    if !tokens.contains(&claim.token) && !tokens.contains(&other.token) {
        near.token = other.token;
    }
    near
}

#[tokio::test]
async fn random_sequences_have_the_outcomes_of_the_rules() {
    let (redis, memory) = (
        store(settings(shared().url())),
        MemoryStore::new(Arc::new(SystemClock)),
    );
    for seed in 0..SEQUENCES {
        let mut run = Run {
            random: fastrand::Rng::with_seed(seed),
            key: fresh("rules"),
            tokens: (0..3).map(|_| Token::new()).collect(),
            now: SystemClock.wall_ms(),
        };
        for step in 0..STEPS {
            let call = run.call();
            let (seen, found) = make(&call, &run.key, &redis).await;
            let (expected, record) = make(&call, &run.key, &memory).await;
            assert_eq!(seen, expected, "seed {seed}, step {step}");
            let found = match (&found, &record) {
                (Some(found), Some(record)) => Some(near(found, record, &run.tokens)),
                _ => found,
            };
            assert_eq!(found, record, "seed {seed}, step {step}");
        }
    }
}

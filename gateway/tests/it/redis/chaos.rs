//! Claims through a proxy that delays, cuts and refuses: whatever is lost, no two owners hold an event at once
//! unless a lease lapsed or was taken over by force, and what was settled stays settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate::store::redis::RedisStore;
use hookgate::store::{ClaimRequest, ClaimStore as _, Claimed, Release, Settlement, State};
use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};

use tokio::task::JoinSet;

use super::bench::shared;
use super::{hasty, store};
use crate::contract::{LEASE, accepted, fresh, request};

const SEEDS: u64 = 4;
const KEYS: usize = 3;
const OWNERS: u64 = 5;
const TURNS: usize = 6;

/// Servers count leases in whole ms, rounded down.
const GRAIN: Duration = Duration::from_millis(1);

/// Between two tries of a call that failed.
const PAUSE: Duration = Duration::from_millis(5);

/// When an owner knew that it held a claim: from its answer to the end of its lease, counted from before it was
/// sent, or until it gave the claim up.
#[derive(Debug, Clone)]
struct Held {
    /// For the message.
    #[allow(dead_code, reason = "shown where a test fails")]
    owner: u64,
    key: usize,
    from: Instant,
    until: Instant,
}

fn faults() -> [(f64, Fault); 5] {
    [
        (0.1, Fault::CutBefore),
        (0.15, Fault::CutAfter),
        (0.1, Fault::Delay(LEASE / 10)),
        (0.05, Fault::redis("LOADING injected")),
        (0.05, Fault::Refuse),
    ]
}

/// One owner's turn at one event.
struct Owner {
    number: u64,
    store: RedisStore,
    keys: Arc<Vec<String>>,
    random: fastrand::Rng,
    held: Vec<Held>,
    settled: Vec<usize>,
}

impl Owner {
    async fn run(mut self) -> Self {
        for _ in 0..TURNS {
            let key = self.random.usize(..KEYS);
            let claim = request(&self.keys[key]);
            let Some(sent) = self.own(&claim).await else {
                continue;
            };
            let from = Instant::now();
            let until = sent + LEASE.saturating_sub(GRAIN);
            let worked = LEASE / 4 * self.random.u32(..6);
            tokio::time::sleep(worked).await;
            let held = Held {
                owner: self.number,
                key,
                from,
                until: until.min(Instant::now()),
            };
            self.held.push(held);
            self.finish(key, &claim, until).await;
        }
        self
    }

    /// Claims with retries of the same token, as the pipeline does; when the try that got it was sent.
    async fn own(&self, claim: &ClaimRequest) -> Option<Instant> {
        for _ in 0..60 {
            let sent = Instant::now();
            match self.store.claim(claim).await {
                Ok(Claimed::Owner(_)) => return Some(sent),
                Ok(Claimed::Duplicate(_)) => return None,
                Ok(Claimed::InFlight { lease_left, .. }) => {
                    tokio::time::sleep(lease_left / 2).await;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        None
    }

    async fn finish(&mut self, key: usize, claim: &ClaimRequest, until: Instant) {
        let settles = self.random.u32(..10) == 0 && Instant::now() < until;
        if settles {
            let mut record = accepted(1_900_000_000_000, claim.token, 0, "done");
            record.group.clone_from(&claim.group);
            let settlement = Settlement {
                key: claim.key.clone(),
                claim: record,
            };
            while self.store.settle(&settlement).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
            self.settled.push(key);
        } else {
            let how = [Release::Delete, Release::EndLease][self.random.usize(..2)];
            let _ = self.store.release(&claim.key, claim.token, how).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_owners_hold_an_event_at_once_whatever_is_lost() {
    let mut storms: JoinSet<()> = (0..SEEDS).map(storm).collect();
    while let Some(storm) = storms.join_next().await {
        storm.unwrap();
    }
}

async fn storm(seed: u64) {
    let plan = Plan::random(seed, faults());
    let proxy = FaultProxy::start(shared().address(), Protocol::Redis, plan);
    let proxy = proxy.await.unwrap();
    let keys: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| fresh("chaos")).collect());
    // Each is an instance.
    let owners = (0..OWNERS).map(|number| Owner {
        number,
        store: store(hasty(format!("redis://{}", proxy.address()))),
        keys: Arc::clone(&keys),
        random: fastrand::Rng::with_seed(seed << 8 | number),
        held: Vec::new(),
        settled: Vec::new(),
    });
    let owners = owners
        .map(Owner::run)
        .collect::<JoinSet<_>>()
        .join_all()
        .await;
    assert!(!proxy.fired().is_empty());
    let held: Vec<_> = owners.iter().flat_map(|owner| owner.held.clone()).collect();
    assert!(
        held.len() as u64 > OWNERS,
        "seed {seed}: {} were held",
        held.len()
    );
    assert_apart(&held, seed);
    let store = store(hasty(shared().url()));
    for key in owners.iter().flat_map(|owner| &owner.settled) {
        let found = store.look(&keys[*key]).await.unwrap();
        let state = found.map(|claim| claim.state);
        assert_eq!(state, Some(State::Accepted), "seed {seed}");
    }
}

fn assert_apart(held: &[Held], seed: u64) {
    for (index, one) in held.iter().enumerate() {
        for other in held[..index].iter().filter(|other| other.key == one.key) {
            let apart = one.until <= other.from || other.until <= one.from;
            assert!(apart, "seed {seed}: {one:?} and {other:?}");
        }
    }
}

/// The test above can see what it looks for.
#[tokio::test]
#[should_panic(expected = "seed 0")]
async fn owners_that_overlap_are_found() {
    let now = Instant::now();
    let held = |from: u64, until: u64| Held {
        owner: from,
        key: 0,
        from: now + Duration::from_millis(from),
        until: now + Duration::from_millis(until),
    };
    assert_apart(&[held(0, 10), held(9, 20)], 0);
}

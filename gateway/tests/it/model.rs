//! The claim store and the queue against a model small enough to be read: any sequence of claims, takeovers,
//! sends, settlements, releases and crashes of several owners on several instances, time passing, clocks off.
//!
//! After every step the record is what the model says, a stale owner has changed nothing, an acknowledged
//! event is in the queue, and a second copy is there only behind the window and with its flag.
//!
//! `MODEL_CASES` says how many sequences.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate::clock::{ManualClock, SharedClock, Span};
use hookgate::queue::{EventQueue as _, QueueError, Sent};
use hookgate::store::{
    Claim, ClaimRequest, ClaimStore as _, Claimed, Grant, IMPOSSIBLE_LEASE, Release, State, Token,
};
use proptest::prelude::*;

use crate::contract::{
    LEASE, QueueBench, StoreBench, WINDOW, accepted, answer_of, bench, message, open, request,
};

const ENQUEUE_TIMEOUT: Duration = Duration::from_millis(50);
const DAY: Duration = Duration::from_secs(86_400);
const KEYS: [&str; 2] = ["t.s.new", "t.s.forgotten"];
const OWNERS: usize = 4;
const INSTANCES: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Course {
    Fine,
    Refused,
    LostBefore,
    LostBehind,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Claims, or claims again with the same token; `forced`: from the owner last seen.
    Claim {
        owner: usize,
        key: usize,
        forced: bool,
    },
    Send(usize, Course),
    Settle(usize, Course),
    Release(usize),
    Crash(usize),
    Pass(u64),
    /// An instance's wall clock is off by this many ms.
    Skew(usize, i64),
}

fn course() -> impl Strategy<Value = Course> {
    use Course::{Fine, LostBefore, LostBehind, Refused};
    prop::sample::select(vec![Fine, Fine, Refused, LostBefore, LostBehind])
}

fn step() -> impl Strategy<Value = Step> {
    let times = [1, 50, 100, 200, 201, 1000, 2700, 2950, 2999, 3000, 5000];
    prop_oneof![
        6 => (0..OWNERS, 0..KEYS.len(), any::<bool>())
            .prop_map(|(owner, key, forced)| Step::Claim { owner, key, forced }),
        6 => (0..OWNERS, course()).prop_map(|(owner, course)| Step::Send(owner, course)),
        3 => (0..OWNERS, course()).prop_map(|(owner, course)| Step::Settle(owner, course)),
        2 => (0..OWNERS).prop_map(Step::Release),
        1 => (0..OWNERS).prop_map(Step::Crash),
        4 => prop::sample::select(times.to_vec()).prop_map(Step::Pass),
        // Behind by no more than the flag's allowance; ahead as a machine that slept is.
        1 => (0..INSTANCES, -50..10_000i64).prop_map(|(instance, off)| Step::Skew(instance, off)),
    ]
}

/// What the model knows of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Processing {
        token: Token,
        lease_until: u64,
        first_at: u64,
    },
    Accepted {
        answer: String,
    },
}

/// An owner as the protocol wants it.
struct Owner {
    request: ClaimRequest,
    grant: Grant,
    span: Span,
    /// The pair's time at its claim, which no instance's clock can bend.
    claimed_at: u64,
    /// Whether each of its attempts was certainly without effect.
    definite: bool,
    confirmed: bool,
}

struct Run<B> {
    bench: B,
    instances: Vec<Arc<ManualClock>>,
    owners: [Option<Owner>; OWNERS],
    seen: [Option<Token>; KEYS.len()],
    model: HashMap<usize, Known>,
    acknowledged: Vec<String>,
    /// When each copy came, and whether it was flagged, by deduplication id.
    copies: HashMap<String, Vec<(u64, bool)>>,
}

/// The second event was forgotten by an operator: its generation 1 waits for an owner.
fn generation(key: usize) -> u32 {
    u32::from(key == 1)
}

impl<B: StoreBench + QueueBench> Run<B> {
    async fn new(bench: B) -> Self {
        let now = bench.now();
        let token = Token::new();
        bench
            .plant(
                KEYS[1],
                Claim {
                    lease_until: 0,
                    ..open(now, token, 1)
                },
            )
            .await;
        let waits = Known::Processing {
            token,
            lease_until: 0,
            first_at: now,
        };
        Self {
            instances: (0..INSTANCES).map(|_| ManualClock::at(now)).collect(),
            owners: Default::default(),
            seen: Default::default(),
            model: HashMap::from([(1, waits)]),
            acknowledged: Vec::new(),
            copies: HashMap::new(),
            bench,
        }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Claim { owner, key, forced } => self.claim(owner, key, forced).await,
            Step::Send(owner, course) => self.send(owner, course).await,
            Step::Settle(owner, course) => self.settle(owner, course).await,
            Step::Release(owner) => self.release(owner).await,
            Step::Crash(owner) => self.owners[owner] = None,
            Step::Pass(ms) => {
                let time = Duration::from_millis(ms);
                self.bench.pass(time).await;
                self.instances.iter().for_each(|clock| clock.advance(time));
            }
            Step::Skew(instance, off) => {
                let wall = self.bench.now().checked_add_signed(off).unwrap();
                self.instances[instance].set_wall(wall);
            }
        }
        self.holds().await;
    }

    /// An owner's clock is its instance's.
    fn clock(&self, owner: usize) -> SharedClock {
        Arc::<ManualClock>::clone(&self.instances[owner % INSTANCES])
    }

    async fn claim(&mut self, place: usize, key: usize, forced: bool) {
        let mut request = match &self.owners[place] {
            Some(owner) if owner.confirmed => return,
            Some(owner) => owner.request.clone(),
            None => ClaimRequest {
                ttl: DAY,
                ..request(KEYS[key])
            },
        };
        let key = KEYS.iter().position(|known| *known == request.key).unwrap();
        request.take_over = self.seen[key].filter(|_| forced);
        let (span, now) = (Span::start(&self.clock(place), LEASE), self.bench.now());
        let claimed = self.bench.claim(&request).await;
        let definite = self.owners[place].take().is_none_or(|owner| owner.definite);
        match (self.model.get(&key), claimed) {
            (Some(Known::Accepted { answer }), Claimed::Duplicate(claim)) => {
                assert_eq!(answer.as_bytes(), answer_of(&claim));
            }
            (
                Some(Known::Processing {
                    token, lease_until, ..
                }),
                Claimed::InFlight { owner, .. },
            ) => {
                assert!(*lease_until > now && *token == owner && *token != request.token);
                assert_ne!(request.take_over, Some(owner));
                self.seen[key] = Some(owner);
            }
            (known, Claimed::Owner(grant)) => {
                let first_at = match known {
                    Some(Known::Processing {
                        token,
                        lease_until,
                        first_at,
                    }) => {
                        let left = Duration::from_millis(lease_until.saturating_sub(now));
                        let is_free = left.is_zero() || left > IMPOSSIBLE_LEASE;
                        let is_named = *token == request.token || request.take_over == Some(*token);
                        assert!(
                            is_free || is_named,
                            "taken from {token:?} while its lease ran"
                        );
                        assert!(grant.taken_over);
                        *first_at
                    }
                    Some(accepted) => panic!("{accepted:?} has a new owner"),
                    None => now,
                };
                assert_eq!(
                    (grant.first_at, grant.generation),
                    (first_at, generation(key))
                );
                let lease_until = now + 200;
                let token = request.token;
                self.model.insert(
                    key,
                    Known::Processing {
                        token,
                        lease_until,
                        first_at,
                    },
                );
                let (claimed_at, confirmed) = (now, false);
                let owner = Owner {
                    request,
                    grant,
                    span,
                    claimed_at,
                    definite,
                    confirmed,
                };
                self.owners[place] = Some(owner);
            }
            other => panic!("{other:?}"),
        }
    }

    async fn send(&mut self, place: usize, course: Course) {
        let clock = self.clock(place);
        let now = self.bench.now();
        let Some(owner) = self.owners[place].as_mut() else {
            return;
        };
        let reached = match course {
            Course::Refused => return,
            Course::LostBefore => false,
            Course::Fine | Course::LostBehind => true,
        };
        if !reached {
            owner.definite = false;
            return;
        }
        let age = Duration::from_millis(clock.wall_ms().saturating_sub(owner.grant.first_at));
        let is_flagged = age + ENQUEUE_TIMEOUT >= WINDOW;
        let key = &owner.request.key;
        let id = match owner.grant.generation {
            0 => key.clone(),
            later => format!("{key}~{later}"),
        };
        let copy = message(&id, &owner.grant.group, "body");
        match self.bench.queue().send(&copy, &owner.span).await {
            Err(QueueError::LeaseEnded) => return assert!(!owner.span.is_running()),
            Err(other) => panic!("{other}"),
            Ok(Sent::Held) => panic!("it tells copies apart"),
            Ok(Sent::Deduplicated) => {}
            Ok(Sent::New) => self
                .copies
                .entry(id.clone())
                .or_default()
                .push((now, is_flagged)),
        }
        assert!(now - owner.claimed_at <= 200, "sent behind its lease");
        match course {
            Course::Fine => {
                owner.confirmed = true;
                self.acknowledged.push(id);
            }
            _ => owner.definite = false,
        }
    }

    async fn settle(&mut self, place: usize, course: Course) {
        let Some(owner) = self.owners[place].as_ref().filter(|owner| owner.confirmed) else {
            return;
        };
        if matches!(course, Course::Refused | Course::LostBefore) {
            return;
        }
        let key = KEYS
            .iter()
            .position(|key| *key == owner.request.key)
            .unwrap();
        let answer = format!("{:?}", owner.request.token);
        let now = self.bench.now();
        let claim = Claim {
            first_at: owner.grant.first_at,
            expires_at: now / 1000 + DAY.as_secs(),
            ..accepted(now, owner.request.token, owner.grant.generation, &answer)
        };
        self.bench.settle(KEYS[key], &claim).await;
        if !matches!(self.model.get(&key), Some(Known::Accepted { .. })) {
            self.model.insert(key, Known::Accepted { answer });
        }
        if matches!(course, Course::Fine) {
            self.owners[place] = None;
        }
    }

    async fn release(&mut self, place: usize) {
        let Some(owner) = self.owners[place].take_if(|owner| !owner.confirmed) else {
            return;
        };
        let how = match owner.definite && !owner.grant.taken_over {
            true => Release::Delete,
            false => Release::EndLease,
        };
        let token = owner.request.token;
        self.bench
            .store()
            .release(&owner.request.key, token, how)
            .await
            .unwrap();
        let key = KEYS
            .iter()
            .position(|key| *key == owner.request.key)
            .unwrap();
        match (self.model.get_mut(&key), how) {
            (Some(Known::Processing { token: held, .. }), Release::Delete) if *held == token => {
                self.model.remove(&key);
            }
            (
                Some(Known::Processing {
                    token: held,
                    lease_until,
                    ..
                }),
                _,
            ) if *held == token => {
                *lease_until = 0;
            }
            _ => {}
        }
    }

    async fn holds(&self) {
        for (key, name) in KEYS.iter().enumerate() {
            let found = self.bench.look(name).await;
            if let Some(found) = &found {
                assert_eq!(found.generation, generation(key));
            }
            assert_eq!(
                found.as_ref().map(known),
                self.model.get(&key).cloned(),
                "{name}"
            );
        }
        for id in &self.acknowledged {
            assert!(
                self.copies.contains_key(id),
                "{id} was acknowledged and is in no queue"
            );
        }
        for (id, copies) in &self.copies {
            for pair in copies.windows(2) {
                let ((first, _), (second, is_flagged)) = (pair[0], pair[1]);
                assert!(second - first >= 3000, "{id} is doubled inside the window");
                assert!(is_flagged, "{id} is doubled without a flag");
            }
        }
    }
}

fn known(claim: &Claim) -> Known {
    match claim.state {
        State::Accepted => Known::Accepted {
            answer: String::from_utf8(answer_of(claim).to_vec()).unwrap(),
        },
        State::Processing => Known::Processing {
            token: claim.token,
            lease_until: claim.lease_until,
            first_at: claim.first_at,
        },
    }
}

fn run<B: StoreBench + QueueBench>(bench: impl Future<Output = B>, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = Run::new(bench.await).await;
        for step in steps {
            run.step(step).await;
        }
    });
}

fn cases(everyday: u32) -> ProptestConfig {
    let set = std::env::var("MODEL_CASES").ok();
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(set.map_or(everyday, |text| text.parse().unwrap()))
    }
}

proptest! {
    #![proptest_config(cases(512))]
    #[test]
    fn memory_does_what_the_model_says(steps in prop::collection::vec(step(), 1..80)) {
        run(bench::memory(), steps);
    }
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn embedded_does_what_the_model_says(steps in prop::collection::vec(step(), 1..60)) {
        run(bench::embedded(), steps);
    }
}

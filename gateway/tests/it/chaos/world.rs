//! A schedule's world: the pair, the instances on it, paused time, and the dice that everything is rolled with.
//!
//! Leases of 200 ms and a window of 2 s, so that retries come inside and behind both. Faults end at a moment;
//! what remains must then come right by the provider's retries alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::backend::MemoryPair;
use hookgate::clock::{Clock, SharedClock};
use hookgate::delivery::{Delivery, Event, Name, Ordering as Order, Verdict};
use hookgate::pipeline::{Gateway, Timing};
use hookgate::plugin::{Fault, Handled, Manifest, Plugin, Setup};
use hookgate::queue::Held;
use hookgate::telemetry::Telemetry;
use hookgate::tenants::{
    ClaimOutage, InFlightPolicy, NoEventId, Policy, Ready, SameIdOtherBody, Source,
};
use tokio::time::{Instant, sleep};

use super::faulty::{Course, Fate, Faulty, Life};

pub const LEASE: Duration = Duration::from_millis(200);
pub const WINDOW: Duration = Duration::from_secs(2);
pub const CALL_TIMEOUT: Duration = Duration::from_millis(50);
/// How far an instance's clock may be ahead.
const SKEW_MS: u64 = 30;
const NOON: u64 = 1_700_000_000_000;
const FAULTS_END: Duration = Duration::from_secs(15);

/// tokio's time as the gateway's clocks, the wall clock some way ahead.
struct Paused {
    start: Instant,
    ahead_ms: u64,
}

impl Clock for Paused {
    fn wall_ms(&self) -> u64 {
        let ms = u64::try_from(self.monotonic().as_millis()).unwrap();
        NOON + self.ahead_ms + ms
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// What happened, over all schedules.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    pub calls: u64,
    pub refused: u64,
    pub busy: u64,
    pub lost_before: u64,
    pub lost_behind: u64,
    pub hung: u64,
    pub killed: u64,
    pub stopped: u64,
    pub attempts: u64,
    pub second_messages: u64,
}

impl Tally {
    fn numbers(&mut self) -> [&mut u64; 10] {
        [
            &mut self.calls,
            &mut self.refused,
            &mut self.busy,
            &mut self.lost_before,
            &mut self.lost_behind,
            &mut self.hung,
            &mut self.killed,
            &mut self.stopped,
            &mut self.attempts,
            &mut self.second_messages,
        ]
    }

    pub fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        for (sum, more) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *more;
        }
    }

    /// A suite that never met a fault shows nothing.
    pub fn has_seen_everything(&mut self) {
        assert!(self.numbers().iter().all(|number| **number > 0), "{self:?}");
    }
}

/// Where all chance comes from.
pub struct Dice {
    random: Mutex<fastrand::Rng>,
    /// Of 100 calls, how many fail.
    trouble: u64,
    start: Instant,
    pub tally: Mutex<Tally>,
}

impl Dice {
    fn new(seed: u64, trouble: u64) -> Arc<Self> {
        Arc::new(Self {
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            trouble,
            start: Instant::now(),
            tally: Mutex::default(),
        })
    }

    fn roll(&self, below: u64) -> u64 {
        self.random.lock().unwrap().u64(0..below)
    }

    pub fn one_in(&self, n: u64) -> bool {
        self.roll(n) == 0
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }

    pub fn upto(&self, longest: Duration) -> Duration {
        Duration::from_millis(self.roll(u64::try_from(longest.as_millis()).unwrap() + 1))
    }

    pub fn is_trouble(&self, of_100: u64) -> bool {
        self.start.elapsed() < FAULTS_END && self.roll(100) < of_100
    }

    /// What becomes of a call that may be on its way for so long.
    pub fn course(&self, longest: Duration) -> Course {
        let mut course = Course {
            fate: Fate::Fine,
            there: Duration::ZERO,
            back: Duration::ZERO,
            dies_before: self.is_trouble(self.trouble / 10),
            stops: None,
            dies_behind: self.is_trouble(self.trouble / 10),
        };
        if self.is_trouble(self.trouble / 10) {
            course.stops = Some(self.upto(self.pick(&[LEASE, 2 * WINDOW])));
        }
        let mut tally = self.tally.lock().unwrap();
        tally.calls += 1;
        tally.stopped += u64::from(course.stops.is_some());
        tally.killed += u64::from(course.dies_before || course.dies_behind);
        if !self.is_trouble(self.trouble) {
            return course;
        }
        course.there = self.pick(&[Duration::ZERO, self.upto(longest)]);
        course.back = self.pick(&[Duration::ZERO, self.upto(longest)]);
        let fates = [
            Fate::Fine,
            Fate::Refused,
            Fate::Busy,
            Fate::LostBefore,
            Fate::LostAfter,
            Fate::Hangs,
        ];
        course.fate = self.pick(&fates);
        match course.fate {
            Fate::Fine => {}
            Fate::Refused => tally.refused += 1,
            Fate::Busy => tally.busy += 1,
            Fate::LostBefore => tally.lost_before += 1,
            Fate::LostAfter => tally.lost_behind += 1,
            Fate::Hangs => tally.hung += 1,
        }
        course
    }
}

/// One gateway process.
#[derive(Clone)]
pub struct Instance {
    pub gateway: Arc<Gateway<Faulty>>,
    pub source: Arc<Source>,
    pub life: Arc<Life>,
}

/// Everything of one schedule.
pub struct World {
    pub pair: Arc<MemoryPair>,
    pub dice: Arc<Dice>,
    instances: Mutex<Vec<Instance>>,
    in_flight: InFlightPolicy,
    judges: Judge,
    clock: SharedClock,
    start: Instant,
    calls: Arc<AtomicU64>,
}

/// Whose clock leases and expiry are judged by.
#[derive(Clone, Copy)]
enum Judge {
    /// The store's own, as Redis has one.
    Store,
    /// Each gateway's, as DynamoDB needs it.
    Gateways,
}

impl World {
    pub fn new(seed: u64) -> Arc<Self> {
        let trouble = [10, 30, 60][usize::try_from(seed % 3).unwrap()];
        Self::with(seed, trouble)
    }

    /// A world in which nothing fails.
    pub fn calm() -> Arc<Self> {
        Self::with(0, 0)
    }

    fn with(seed: u64, trouble: u64) -> Arc<Self> {
        let start = Instant::now();
        let clock: SharedClock = Arc::new(Paused { start, ahead_ms: 0 });
        let mut world = Self {
            pair: Arc::new(MemoryPair::new(&clock, WINDOW)),
            dice: Dice::new(seed, trouble),
            instances: Mutex::default(),
            in_flight: InFlightPolicy::Wait,
            judges: Judge::Store,
            clock: Arc::clone(&clock),
            start,
            calls: Arc::default(),
        };
        world.in_flight = super::policy(&world);
        world.judges = world.dice.pick(&[Judge::Store, Judge::Gateways]);
        let two = vec![world.instance(), world.instance()];
        *world.instances.lock().unwrap() = two;
        Arc::new(world)
    }

    fn instance(&self) -> Instance {
        let ahead_ms = self.dice.pick(&[0, 0, SKEW_MS]);
        let start = self.start;
        let clock: SharedClock = Arc::new(Paused { start, ahead_ms });
        let life = Life::new();
        let backend = Faulty {
            pair: Arc::clone(&self.pair),
            store: Arc::new(match self.judges {
                Judge::Store => self.pair.store.judged_by(Arc::clone(&self.clock)),
                Judge::Gateways => self.pair.store.judged_by(Arc::clone(&clock)),
            }),
            life: Arc::clone(&life),
            dice: Arc::clone(&self.dice),
            clock: Arc::clone(&clock),
            calls: Arc::clone(&self.calls),
        };
        let timing = Timing {
            claim_timeout: CALL_TIMEOUT,
            enqueue_timeout: CALL_TIMEOUT,
            window: WINDOW,
            skew: Duration::from_millis(SKEW_MS),
            settle_for: Duration::from_secs(2),
            backoff: Duration::from_millis(5),
        };
        let telemetry = Arc::new(Telemetry::default());
        let source = source(&telemetry, self.in_flight);
        let gateway = Arc::new(Gateway::new(backend, clock, telemetry, timing));
        Instance {
            gateway,
            source,
            life,
        }
    }

    /// Either instance; a dead one has been started anew.
    pub fn any(&self) -> Instance {
        let mut instances = self.instances.lock().unwrap();
        let place = usize::try_from(self.dice.roll(instances.len() as u64)).unwrap();
        if instances[place].life.is_over() {
            instances[place] = self.instance();
        }
        instances[place].clone()
    }

    /// Stops and kills instances at any moment, while faults last.
    pub async fn monkey(world: Arc<Self>) {
        while world.start.elapsed() < FAULTS_END {
            sleep(Duration::from_millis(20) + world.dice.upto(Duration::from_secs(1))).await;
            if !world.dice.is_trouble(world.dice.trouble) {
                continue;
            }
            let life = world.any().life;
            if world.dice.one_in(2) {
                world.dice.tally.lock().unwrap().killed += 1;
                life.end();
            } else {
                world.dice.tally.lock().unwrap().stopped += 1;
                let longest = world.dice.pick(&[LEASE, WINDOW, 2 * WINDOW]);
                let time = world.dice.upto(longest);
                life.stop_for(time);
            }
        }
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn held(&self) -> Vec<Held> {
        self.pair.queue.messages()
    }

    pub fn tally(&self) -> Tally {
        self.dice.tally.lock().unwrap().clone()
    }
}

fn source(telemetry: &Telemetry, in_flight: InFlightPolicy) -> Arc<Source> {
    let (tenant, name) = (Name::new("t").unwrap(), Name::new("s").unwrap());
    let manifest = Manifest::parse(r#"{"v":1,"name":"acme","version":"1"}"#).unwrap();
    Arc::new(Source {
        metrics: telemetry.source(&tenant, &name),
        tenant,
        name,
        state: Ok(Ready {
            plugin: Arc::new(ByHeaders(manifest)),
            setup: Arc::default(),
            signature_header: None,
        }),
        policy: Policy {
            ordering: Order::Key,
            max_age: Duration::from_secs(300),
            max_future: Duration::from_secs(300),
            no_event_id: NoEventId::Reject,
            same_id_other_body: SameIdOtherBody::Duplicate,
            claim_ttl: Duration::from_secs(86_400),
            content_ttl: Duration::from_secs(86_400),
            lease: LEASE,
            answer_deadline: LEASE,
            in_flight,
            claim_ttl_follows_queue: false,
            claim_outage: ClaimOutage::Reject,
            redelivery_after: None,
        },
    })
}

/// A plugin that takes event id and ordering key from headers.
struct ByHeaders(Manifest);

impl Plugin for ByHeaders {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn handle(&self, delivery: &Arc<Delivery>, _: &Arc<Setup>) -> Result<Handled, Fault> {
        let header = |name| {
            let value = delivery.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        Ok(Handled {
            verdict: Verdict::Accept(Event {
                id: header("id"),
                ordering_key: header("key"),
                ..Event::default()
            }),
            key: None,
            confirm: None,
            fuel: 0,
        })
    }
}

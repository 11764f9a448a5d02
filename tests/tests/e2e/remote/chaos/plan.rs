//! What one seed chooses: backends, gateways and how they die, what is broken, and what is delivered.
//!
//! A seed repeats the plan, not the machine's timing: a failure may need several runs of its seed.

use std::time::Duration;

use fastrand::Rng;
use hookgate::failpoint;
use hookgate_backends::proxy::{self, Fault};
use hookgate_tests::provider::Signed;

use super::super::site::{Kind, Site};

/// Where a gateway kills itself.
pub const FAIL_POINTS: [&str; 9] = [
    failpoint::BEFORE_CLAIM,
    failpoint::AFTER_CLAIM,
    failpoint::BEFORE_SEND,
    failpoint::AFTER_SEND,
    failpoint::BEFORE_SETTLE,
    failpoint::AFTER_SETTLE,
    failpoint::BEFORE_RELEASE,
    failpoint::BEFORE_ANSWER,
    failpoint::INSIDE_ANSWER,
];

/// How a gateway's life ends.
#[derive(Debug, Clone)]
pub enum Death {
    /// By its own hand, after it has passed the place so many times.
    At(&'static str, usize),
    /// By another's, once providers have read so many more answers.
    AfterAnswers(usize),
}

impl Death {
    /// The environment's `FAILPOINTS`.
    pub fn failpoints(&self) -> String {
        match self {
            Self::At(place, passes) => format!("{place}={passes}*off->return"),
            Self::AfterAnswers(_) => String::new(),
        }
    }
}

/// Something that happened at a provider.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id.
    pub id: String,
    /// What its group is known by.
    pub group: String,
    /// Whether it goes to `letters`, where deliveries in flight wait, or to `orders`, where they take over.
    pub is_letter: bool,
    /// How many copies of it are delivered at once.
    pub copies: usize,
}

impl Event {
    /// The source's name.
    pub fn source(&self) -> &'static str {
        if self.is_letter { "letters" } else { "orders" }
    }

    /// A delivery of it, signed now.
    pub fn signed(&self, site: &Site) -> Signed {
        match self.is_letter {
            true => site.letter(&self.id, &self.group),
            false => site.order(&self.id, &self.group),
        }
    }
}

/// Everything that a seed chooses.
#[derive(Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// What keeps the claims.
    pub kind: Kind,
    /// All events.
    pub events: Vec<Event>,
    /// Which events follow each other: each is delivered once its predecessor has its 2xx.
    pub lines: Vec<Vec<usize>>,
    /// How the gateways of each place die, in order. The last one of a place lives.
    pub deaths: Vec<Vec<Death>>,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut plan = Self {
            seed,
            kind: Kind::PROXIED[usize::from(seed % 2 == 1)],
            events: Vec::new(),
            lines: Vec::new(),
            deaths: Vec::new(),
        };
        for number in 0..rng.usize(5..=7) {
            plan.line(number, &mut rng);
        }
        for gateway in 0..rng.usize(2..=3) {
            let count = rng.usize(1..=2);
            let mut deaths: Vec<_> = (0..count)
                .map(|_| death(rng.usize(0..10), &mut rng))
                .collect();
            // One goes round, so that no place is left out.
            if gateway == 0 {
                let kinds = FAIL_POINTS.len() as u64 + 1;
                deaths[0] = death(usize::try_from(seed % kinds).unwrap_or_default(), &mut rng);
            }
            plan.deaths.push(deaths);
        }
        plan
    }

    fn line(&mut self, number: usize, rng: &mut Rng) {
        let is_letter = number % 2 == 1;
        // Two lines share a group now and then.
        let group = format!("group-{}", if number > 3 { number - 2 } else { number });
        let mut line = Vec::new();
        for place in 0..rng.usize(4..=7) {
            line.push(self.events.len());
            self.events.push(Event {
                id: format!("event-{number}-{place}"),
                group: group.clone(),
                is_letter,
                copies: [1, 1, 1, 2, 3][rng.usize(0..5)],
            });
        }
        self.lines.push(line);
    }
}

fn death(kind: usize, rng: &mut Rng) -> Death {
    match FAIL_POINTS.get(kind) {
        // Only what fails is released.
        Some(&failpoint::BEFORE_RELEASE) => Death::At(failpoint::BEFORE_RELEASE, 0),
        Some(place) => Death::At(place, rng.usize(0..6)),
        None => Death::AfterAnswers(rng.usize(1..10)),
    }
}

fn everywhere(rng: &mut Rng) -> Vec<(f64, Fault)> {
    vec![
        (0.05, Fault::Refuse),
        (0.06, Fault::Delay(Duration::from_millis(rng.u64(20..200)))),
        (
            0.02,
            Fault::Delay(Duration::from_millis(rng.u64(1100..2500))),
        ),
        (0.05, Fault::CutBefore),
        (0.07, Fault::CutAfter),
        (0.02, Fault::Blackhole),
    ]
}

/// What is broken between a gateway and AWS. Refusals come only once it serves: at the start they would be
/// the configuration's fault.
pub fn faults_of_aws(seed: u64, serves: bool) -> proxy::Plan {
    let mut faults = everywhere(&mut Rng::with_seed(seed));
    faults.extend([
        (0.02, Fault::aws(400, "ThrottlingException")),
        (0.02, Fault::aws(500, "InternalServerError")),
    ]);
    if serves {
        faults.push((0.02, Fault::aws(403, "AccessDeniedException")));
    }
    proxy::Plan::random(seed, faults)
}

/// What is broken between a gateway and Redis.
pub fn faults_of_redis(seed: u64) -> proxy::Plan {
    let mut faults = everywhere(&mut Rng::with_seed(!seed));
    faults.push((
        0.03,
        Fault::redis("LOADING Redis is loading the dataset in memory"),
    ));
    proxy::Plan::random(!seed, faults)
}

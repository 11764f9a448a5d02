//! What one seed chooses: the events, who delivers them and how, and how the gateway dies.
//!
//! A seed repeats the plan, not the machine's timing: a failure may need several runs of its seed.

use fastrand::Rng;
use hookgate::failpoint;
use hookgate_tests::provider::Signed;
use hookgate_tests::sign;

use crate::world;

/// Where the gateway kills itself.
pub const FAIL_POINTS: [&str; 5] = [
    failpoint::BEFORE_COMMIT,
    failpoint::INSIDE_COMMIT,
    failpoint::AFTER_COMMIT,
    failpoint::BEFORE_ANSWER,
    failpoint::INSIDE_ANSWER,
];

/// The secret of all sources.
pub const SECRET: &str = "a secret that only this test knows";

/// How a gateway's life ends.
#[derive(Debug, Clone)]
pub enum Death {
    /// By its own hand, after it has passed the place so many times.
    At(&'static str, usize),
    /// By another's, once providers have read so many more answers.
    AfterAnswers(usize),
    /// Twice: as before, and again so many microseconds into the next start, which repairs the database.
    WhileOpening(usize, u64),
}

/// Something that happened at a provider.
#[derive(Debug)]
pub struct Event {
    /// The source's name.
    pub source: &'static str,
    /// Its id; a github event and an order may share one.
    pub id: String,
    /// What its group is known by: the customer or the repository.
    pub group: String,
    /// The delivery.
    pub signed: Signed,
}

/// What a provider does next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Delivers an event so many times at once, each until a 2xx was read whole.
    Deliver(usize, usize),
    /// Delivers an event once, and does not care what comes of it.
    Once(usize),
    /// Delivers an acknowledged event again.
    Again(usize),
    /// Delivers what it could not sign.
    Forged(Signed),
}

/// Everything that a seed chooses.
#[derive(Debug)]
pub struct Plan {
    /// The tenant. Its own: a port may have another run's gateway behind it by the time of a retry.
    pub tenant: String,
    /// All events.
    pub events: Vec<Event>,
    /// What each provider does.
    pub providers: Vec<Vec<Step>>,
    /// How the gateways die, in order. One that lives longer than its providers deliver is stopped.
    pub deaths: Vec<Death>,
    /// Whether the last gateway of the storm is told to stop, or killed.
    pub stops: bool,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut plan = Self {
            tenant: format!("run-{seed}"),
            events: Vec::new(),
            providers: Vec::new(),
            deaths: Vec::new(),
            stops: rng.bool(),
        };
        for _ in 0..rng.usize(2..=6) {
            let steps = plan.provider(&mut rng);
            plan.providers.push(steps);
        }
        // The first death goes round, so that no place is left out.
        let kinds = FAIL_POINTS.len() as u64 + 1;
        let first = usize::try_from(seed % kinds).unwrap_or_default();
        plan.deaths.push(death(first, &mut rng));
        for _ in 0..rng.usize(0..=2) {
            let kind = rng.usize(0..=FAIL_POINTS.len());
            plan.deaths.push(death(kind, &mut rng));
        }
        plan
    }

    /// The environment of a gateway that is to die so.
    pub fn environment(death: Option<&Death>) -> Vec<(&'static str, String)> {
        let mut environment = vec![("SECRET", SECRET.to_owned())];
        if let Some(Death::At(place, passes)) = death {
            environment.push(("FAILPOINTS", format!("{place}={passes}*off->return")));
        }
        environment
    }

    /// The configuration of all its gateways.
    pub fn config(&self) -> String {
        let orders = world::orders(&self.tenant, "orders", "SECRET");
        world::head() + &orders + &world::github(&self.tenant, "SECRET")
    }

    fn provider(&mut self, rng: &mut Rng) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut acknowledged = Vec::new();
        for _ in 0..rng.usize(2..=5) {
            let event = self.event(rng);
            if rng.u8(0..10) == 0 {
                steps.push(Step::Once(event));
            } else {
                let copies = if rng.u8(0..4) == 0 {
                    rng.usize(2..=4)
                } else {
                    1
                };
                steps.push(Step::Deliver(event, copies));
                acknowledged.push(event);
            }
            if let Some(event) = rng.choice(&acknowledged).filter(|_| rng.u8(0..4) == 0) {
                steps.push(Step::Again(*event));
            }
            if rng.u8(0..8) == 0 {
                steps.push(Step::Forged(self.forged(event)));
            }
        }
        steps
    }

    fn event(&mut self, rng: &mut Rng) -> usize {
        // Few groups, so that events of several providers meet in each.
        let group = rng.u8(1..=3);
        let number = self.events.len();
        // Some bodies are larger than a page of the database.
        let note = "n".repeat(if rng.u8(0..6) == 0 {
            rng.usize(5_000..60_000)
        } else {
            10
        });
        let is_order = rng.u8(0..3) > 0;
        let source = if is_order { "orders" } else { "github" };
        let before = self.events.iter().filter(|event| event.source == source);
        let id = format!("event-{}", before.count());
        let path = format!("{}/{source}", self.tenant);
        let (group, signed) = if is_order {
            let customer = format!("customer-{group}");
            let signed = world::order(&path, SECRET, &id, &customer, &note);
            (customer, signed)
        } else {
            let body =
                format!(r#"{{"action":"opened","repository":{{"id":{group}}},"note":"{note}"}}"#);
            (group.to_string(), sign::github(&path, SECRET, &id, &body))
        };
        let event = Event {
            source,
            id,
            group,
            signed,
        };
        self.events.push(event);
        number
    }

    /// A delivery like this event's, of an id that nobody ever signed.
    fn forged(&self, event: usize) -> Signed {
        let path = format!("{}/orders", self.tenant);
        let id = format!("forged-{event}");
        world::order(
            &path,
            "not the secret of the source",
            &id,
            "customer-1",
            "forged",
        )
    }
}

fn death(kind: usize, rng: &mut Rng) -> Death {
    // A batch may hold what all providers wait for: a run has fewer commits than answers.
    match FAIL_POINTS.get(kind) {
        Some(place) if place.ends_with("commit") => Death::At(place, rng.usize(0..6)),
        Some(place) => Death::At(place, rng.usize(0..10)),
        None if rng.u8(0..3) == 0 => Death::WhileOpening(rng.usize(0..6), rng.u64(0..150_000)),
        None => Death::AfterAnswers(rng.usize(0..10)),
    }
}

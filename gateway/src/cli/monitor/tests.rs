use super::*;
use crate::clock::skew::Skew;
use crate::clock::{ManualClock, SharedClock};
use crate::config;
use crate::config::secret::Process;
use crate::pipeline::Timing;
use crate::plugin::registry::Registry;
use crate::queue::sqs::QueueFacts;
use crate::queue::{Depth, Retention};
use crate::telemetry::Telemetry;

const DAY: Duration = Duration::from_hours(24);

struct Rig {
    live: Arc<ArcSwap<Live>>,
    gateway: Arc<Gateway<Backends>>,
    readiness: Arc<Readiness>,
    skew: Arc<Skew>,
}

/// A gateway in memory, beside a backend whose clock is compared.
async fn rig(text: &str) -> Rig {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hookgate.toml");
    let head = "[store]\nkind = \"memory\"\n[queue]\nkind = \"memory\"\n";
    std::fs::write(&file, format!("{head}{text}")).unwrap();
    let loaded = config::load(&file, &Process).unwrap();
    let clock: SharedClock = ManualClock::at(0);
    let timing = Timing::default();
    let backend = &loaded.settings.backend;
    let mut backends = Backends::open(backend, &clock, &timing).await.unwrap();
    let skew = Arc::new(Skew::of("sqs"));
    backends.skews.push(Arc::clone(&skew));
    let gateway = Gateway::new(backends, clock, Arc::new(Telemetry::default()), timing);
    let readiness = Arc::new(Readiness::default());
    readiness.set(true);
    let live = Live {
        loaded,
        registry: Registry::default(),
        keys: None,
    };
    Rig {
        live: Arc::new(ArcSwap::from_pointee(live)),
        gateway: Arc::new(gateway),
        readiness,
        skew,
    }
}

impl Rig {
    fn monitor(&self) -> Monitor {
        Monitor::new(
            Arc::clone(&self.live),
            Arc::default(),
            Arc::clone(&self.gateway),
            Arc::clone(&self.readiness),
        )
    }

    fn metric(&self, line: &str) -> bool {
        let encoded = self.gateway.telemetry.encode();
        encoded.lines().any(|found| found == line)
    }
}

fn fine() -> Look {
    Look {
        findings: Vec::new(),
        queue: None,
    }
}

fn failing() -> Look {
    Look {
        findings: vec![("store", Finding::error("no answer").passing())],
        queue: None,
    }
}

#[tokio::test]
async fn a_gateway_that_never_had_its_backends_is_not_ready() {
    let rig = rig("").await;
    let monitor = rig.monitor();
    assert!(!monitor.take(&failing()));
    assert!(!rig.readiness.get());
    assert_eq!(rig.readiness.troubles().all, ["store: no answer"]);
    assert!(monitor.take(&fine()));
    assert!(rig.readiness.get());
}

#[tokio::test]
async fn a_backend_that_fails_later_is_told_and_the_gateway_stays_ready() {
    let rig = rig("").await;
    let monitor = rig.monitor();
    monitor.take(&fine());
    assert!(!monitor.take(&failing()));
    assert!(rig.readiness.get());
    assert_eq!(rig.readiness.troubles().all, ["store: no answer"]);
}

#[tokio::test]
async fn clocks_too_far_apart_make_the_gateway_unready_until_they_agree() {
    let rig = rig("").await;
    let monitor = rig.monitor();
    for (ahead, ready) in [(9_999, true), (10_000, false), (0, true)] {
        rig.skew.observe(0, 0, ahead, Duration::ZERO);
        monitor.take(&fine());
        assert_eq!(rig.readiness.get(), ready, "{ahead} ms");
    }
    rig.skew.observe(12_500, 12_500, 0, Duration::ZERO);
    monitor.take(&fine());
    assert!(!rig.readiness.get());
    let troubles = rig.readiness.troubles();
    let told = "the clocks of this machine and of sqs are 12.5 s apart";
    assert_eq!(troubles.all, [told]);
    assert!(rig.metric("hookgate_clock_skew_seconds{backend=\"sqs\"} -12.5"));
}

#[tokio::test]
async fn a_ttl_found_too_short_later_is_told_and_the_gateway_stays_ready() {
    let rig = rig("[tenants.a.sources.s]\nplugin = \"github\"\nclaim_ttl = \"10days\"\n").await;
    let monitor = rig.monitor();
    let kept = |queue: u32, dead: u32| Look {
        findings: Vec::new(),
        queue: Some(QueueFacts {
            retention: Retention {
                queue: queue * DAY,
                dead_letters: Some(dead * DAY),
            },
            depth: Depth::default(),
            max_message: 1 << 20,
        }),
    };
    let retained = || Duration::from_millis(rig.gateway.retained.load(Ordering::SeqCst));
    assert_eq!(
        retained(),
        15 * DAY,
        "before a queue says how long it keeps messages"
    );
    monitor.take(&kept(4, 4));
    assert_eq!(retained(), 10 * DAY);
    assert!(rig.metric("hookgate_claim_ttl_missing_seconds 0"));
    monitor.take(&kept(4, 14));
    assert_eq!(retained(), 20 * DAY, "those that follow it do so at once");
    let lacks = 9 * DAY.as_secs();
    assert!(rig.metric(&format!("hookgate_claim_ttl_missing_seconds {lacks}")));
    assert!(rig.readiness.get());
}

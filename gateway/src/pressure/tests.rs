use std::sync::Arc;

use super::*;
use crate::clock::ManualClock;
use crate::telemetry::Telemetry;

struct Rig {
    clock: Arc<ManualClock>,
    pressure: Pressure,
}

fn rig() -> Rig {
    let clock = ManualClock::at(0);
    let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
    let limits = Limits {
        high_water: 100,
        low_water: 60,
        ..Limits::default()
    };
    let telemetry = Arc::new(Telemetry::default());
    let pressure = Pressure::new(limits, shared, telemetry);
    Rig { clock, pressure }
}

impl Rig {
    fn read(&self, visible: u64) -> Level {
        self.pressure.poll(Some(Ok(Depth {
            visible,
            ..Depth::default()
        })));
        self.pressure.level()
    }

    fn takes(&self, tenant: &str) -> bool {
        self.pressure.takes(&Name::new(tenant).unwrap())
    }

    fn taken(&self, tenant: &str, tries: usize) -> usize {
        (0..tries).filter(|_| self.takes(tenant)).count()
    }
}

#[test]
fn the_gate_closes_at_the_high_mark_and_opens_halfway_down() {
    let rig = rig();
    let levels = [0, 59, 60, 99, 100, 99, 80, 79, 99, 60, 59].map(|depth| rig.read(depth).name());
    assert_eq!(
        levels,
        [
            "open", "open", "shared", "shared", "full", "full", "full", "shared", "shared",
            "shared", "open"
        ]
    );
}

#[test]
fn messages_in_flight_and_delayed_count_too() {
    let rig = rig();
    rig.pressure.poll(Some(Ok(Depth {
        visible: 30,
        in_flight: 40,
        delayed: 30,
    })));
    assert_eq!(rig.pressure.level(), Level::Full);
    assert!(!rig.takes("acme"));
}

#[test]
fn between_the_marks_only_tenants_above_their_fair_share_are_refused() {
    let rig = rig();
    assert_eq!(rig.taken("loud", 90), 90, "open: everybody is served");
    assert_eq!(rig.taken("quiet", 10), 10);
    assert_eq!(rig.read(70), Level::Shared);
    assert_eq!(
        rig.taken("loud", 90),
        50,
        "half of the last interval's hundred"
    );
    assert_eq!(rig.taken("quiet", 10), 10);
    assert_eq!(rig.taken("new", 5), 5);
    assert_eq!(rig.read(100), Level::Full);
    assert_eq!(rig.taken("quiet", 10), 0);
}

#[test]
fn a_lone_tenant_is_within_its_fair_share() {
    let rig = rig();
    rig.taken("only", 40);
    rig.read(70);
    assert_eq!(rig.taken("only", 40), 40);
}

#[test]
fn a_stale_reading_counts_for_nothing_and_is_known_as_stale() {
    let rig = rig();
    assert_eq!(rig.read(100), Level::Full);
    rig.clock.advance(Duration::from_secs(30));
    let failed = || Some(Err(QueueError::Ambiguous("no answer".into())));
    rig.pressure.poll(failed());
    assert!(!rig.pressure.is_stale());
    assert_eq!(rig.pressure.level(), Level::Full);
    rig.clock.advance(Duration::from_millis(1));
    rig.pressure.poll(failed());
    assert!(rig.pressure.is_stale());
    assert_eq!(rig.pressure.level(), Level::Open);
    assert_eq!(rig.read(100), Level::Full);
}

#[test]
fn slow_sends_count_as_between_the_marks_until_nothing_is_sent() {
    let rig = rig();
    for _ in 0..200 {
        rig.pressure.sent(Duration::from_secs(2), false);
    }
    assert_eq!(rig.pressure.level(), Level::Shared);
    rig.read(0);
    assert_eq!(
        rig.pressure.level(),
        Level::Shared,
        "of the interval just over"
    );
    assert_eq!(rig.read(0), Level::Open);
}

#[test]
fn a_queue_that_throttles_counts_as_between_the_marks() {
    let rig = rig();
    for n in 0..100 {
        rig.pressure.sent(Duration::from_millis(1), n % 10 == 0);
    }
    assert_eq!(rig.read(0), Level::Shared);
    for n in 0..100 {
        rig.pressure.sent(Duration::from_millis(1), n % 20 == 0);
    }
    assert_eq!(rig.read(0), Level::Open);
}

#[test]
fn too_many_events_at_work_refuse_all_others() {
    let rig = rig();
    let running = rig.pressure.telemetry.running().clone();
    running.set(9_999);
    assert_eq!(rig.pressure.level(), Level::Open);
    running.set(10_000);
    assert_eq!(rig.pressure.level(), Level::Full);
}

#[test]
fn three_quarters_of_the_memory_budget_count_as_between_the_marks() {
    let rig = rig();
    let bytes = rig.pressure.telemetry.bytes_in_flight().clone();
    bytes.set((192 << 20) - 1);
    assert_eq!(rig.pressure.level(), Level::Open);
    bytes.set(192 << 20);
    assert_eq!(rig.pressure.level(), Level::Shared);
}

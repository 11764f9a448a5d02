//! What the fuzz targets share: guests in their world, and a gateway with one source on a plugin of the target's.
//!
//! libFuzzer ends the process at any panic, those inside spawned tasks included.

use std::sync::Arc;
use std::time::Duration;

use hookgate::backend::MemoryPair;
use hookgate::clock::{SharedClock, SystemClock};
use hookgate::delivery::{Name, Ordering};
use hookgate::pipeline::{Gateway, Timing};
use hookgate::plugin::Plugin;
use hookgate::telemetry::Telemetry;
use hookgate::tenants::{
    ClaimOutage, InFlightPolicy, NoEventId, Policy, Ready, SameIdOtherBody, Source, Tenants,
};

const WORLD: &str = include_str!("../../guests/world.wat");

/// A manifest that asks for a secret of either kind and an option, all of them optional but the first.
const MANIFEST: &str = r#"{"v":1,"name":"guest","version":"1.0.0","schemes":["guest"],
    "secrets":[{"name":"secret","kind":"mac","form":"hex"},{"name":"key","kind":"public-key","required":false}],
    "options":[{"name":"o"}],"retry_window_s":3600,"max_attempts":4,"retries_on":["5xx"]}"#;

/// The bytes of a component: a guest of `tests/guests` in its world.
///
/// # Panics
///
/// If the guest is not one.
#[must_use]
pub fn component(guest: &str) -> Vec<u8> {
    let manifest = format!("{MANIFEST:?}");
    let text = WORLD
        .replace("(;GUEST;)", guest)
        .replace("(;MANIFEST;)", &manifest)
        .replace("(;MANIFEST_LENGTH;)", &MANIFEST.len().to_string());
    wat::parse_str(text).expect("the guest is a component")
}

/// The policies under which an event gets its ids in different ways.
#[must_use]
pub fn policy(ordering: Ordering, same_id_other_body: SameIdOtherBody) -> Policy {
    Policy {
        ordering,
        max_age: Duration::MAX,
        max_future: Duration::MAX,
        no_event_id: NoEventId::Hash,
        same_id_other_body,
        claim_ttl: Duration::from_secs(86_400),
        content_ttl: Duration::from_secs(400),
        lease: Duration::from_secs(4),
        answer_deadline: Duration::from_secs(5),
        in_flight: InFlightPolicy::Wait,
        claim_ttl_follows_queue: false,
        claim_outage: ClaimOutage::Reject,
        redelivery_after: None,
    }
}

/// A gateway in memory with the source `t/s`, which asks this plugin.
///
/// # Panics
///
/// Never: `t` and `s` are names.
#[must_use]
pub fn gateway(plugin: Arc<dyn Plugin>, policy: Policy) -> Arc<Gateway<MemoryPair>> {
    let clock: SharedClock = Arc::new(SystemClock);
    let telemetry = Arc::new(Telemetry::default());
    let (tenant, name) = (
        Name::new("t").expect("a name"),
        Name::new("s").expect("a name"),
    );
    let source = Source {
        metrics: telemetry.source(&tenant, &name),
        tenant,
        name,
        state: Ok(Ready {
            plugin,
            setup: Arc::default(),
            signature_header: Some("x-signature".into()),
        }),
        policy,
    };
    let timing = Timing::default();
    let backend = MemoryPair::new(&clock, timing.window);
    let gateway = Gateway::new(backend, clock, telemetry, timing);
    gateway
        .tenants
        .store(Arc::new(Tenants::from_iter([source])));
    Arc::new(gateway)
}

/// A runtime on this thread alone, so that one input's work is over before the next begins.
///
/// # Panics
///
/// If the system has no room for one.
#[must_use]
pub fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

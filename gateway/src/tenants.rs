//! The live snapshot of tenants and their sources: read without a lock, swapped whole.
//!
//! A source that cannot work (no plugin, no secret) is in the snapshot too: it answers 503 and says why to
//! the operator, and stops no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::delivery::{Name, Ordering};
use crate::plugin::{Plugin, Setup};
use crate::telemetry::SourceMetrics;

/// Every source by tenant and name.
#[derive(Default)]
pub struct Tenants {
    by_tenant: HashMap<Name, HashMap<Name, Arc<Source>>>,
}

impl Tenants {
    /// The source at `/in/{tenant}/{source}`.
    pub fn find(&self, tenant: &str, source: &str) -> Option<&Arc<Source>> {
        self.by_tenant.get(tenant)?.get(source)
    }

    /// All sources, in no order.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.by_tenant.values().flat_map(HashMap::values)
    }
}

impl FromIterator<Source> for Tenants {
    fn from_iter<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        let mut tenants = Self::default();
        for source in sources {
            let of_tenant = tenants.by_tenant.entry(source.tenant.clone()).or_default();
            of_tenant.insert(source.name.clone(), Arc::new(source));
        }
        tenants
    }
}

/// One endpoint of one tenant for one provider.
pub struct Source {
    /// The tenant's name.
    pub tenant: Name,
    /// The source's name.
    pub name: Name,
    /// What authenticates, or why nothing can.
    pub state: Result<Ready, Unavailable>,
    /// What holds for its deliveries.
    pub policy: Policy,
    /// Its counters.
    pub metrics: SourceMetrics,
}

/// A source that can work.
pub struct Ready {
    /// The provider's plugin.
    pub plugin: Arc<dyn Plugin>,
    /// What the plugin is told.
    pub setup: Arc<Setup>,
    /// The header that carries the signature, which does not travel in messages.
    pub signature_header: Option<String>,
}

/// Why a source cannot work, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The reason, without any secret's value.
    pub reason: String,
}

/// What holds for the deliveries of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What stays in order.
    pub ordering: Ordering,
    /// How old a signature may be, inclusive.
    pub max_age: Duration,
    /// How far ahead of the gateway's clock a signature may be, inclusive.
    pub max_future: Duration,
    /// What to do with an event that has no id.
    pub no_event_id: NoEventId,
    /// What to do with a known id on another body.
    pub same_id_other_body: SameIdOtherBody,
    /// How long a claim lives at least.
    pub claim_ttl: Duration,
    /// Whether it lives longer where the queue keeps messages for longer.
    pub claim_ttl_follows_queue: bool,
    /// How long the claim of an event that is known by its content lives: equal genuine events within it
    /// count as one.
    pub content_ttl: Duration,
    /// How long an owner may work.
    pub lease: Duration,
    /// When a delivery that still waits is answered.
    pub answer_deadline: Duration,
    /// What a delivery does about an owner that is still at work when it has waited.
    pub in_flight: InFlightPolicy,
    /// What to do while the claim store is out of reach.
    pub claim_outage: ClaimOutage,
    /// How long after its acceptance a delivery of an event asks for one more message; none where never.
    pub redelivery_after: Option<Duration>,
}

/// What to do with an authentic event while the claim store is out of reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimOutage {
    /// The provider is told to come again.
    #[default]
    Reject,
    /// It is sent, flagged, and settled once the store is back.
    Forward,
}

/// What to do with an authenticated event that has no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoEventId {
    /// Its content is its id.
    Hash,
    /// It is not what the provider sends.
    Reject,
}

/// What to do with a known id on another body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameIdOtherBody {
    /// It is another event: the body's digest is part of the key.
    Distinct,
    /// It is the same event, counted and logged.
    Duplicate,
}

/// What a delivery does about an owner that is still at work when it has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlightPolicy {
    /// It tells the provider to come again.
    Wait,
    /// It takes the claim over: the provider would not come again.
    TakeOver,
}

//! Every metric and every event of the log, as typed functions: no metric's name stands anywhere else.
//!
//! What a delivery touches is looked up once, when its source is made, and then costs one atomic addition.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::delivery::Name;
use crate::queue::Depth;

/// What a delivery ended as, in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the variants are the outcomes of `crate::outcome`"
)]
pub enum OutcomeLabel {
    Accepted,
    Duplicate,
    InFlight,
    Handshake,
    Rejected,
    TooLarge,
    TooSlow,
    Unavailable,
    PluginFault,
    Overloaded,
}

impl OutcomeLabel {
    const ALL: [Self; 10] = [
        Self::Accepted,
        Self::Duplicate,
        Self::InFlight,
        Self::Handshake,
        Self::Rejected,
        Self::TooLarge,
        Self::TooSlow,
        Self::Unavailable,
        Self::PluginFault,
        Self::Overloaded,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::InFlight => "in-flight",
            Self::Handshake => "handshake",
            Self::Rejected => "rejected",
            Self::TooLarge => "too-large",
            Self::TooSlow => "too-slow",
            Self::Unavailable => "unavailable",
            Self::PluginFault => "plugin-fault",
            Self::Overloaded => "overloaded",
        }
    }
}

/// A step of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the protocol's steps")]
pub enum Step {
    Read,
    Authenticate,
    Claim,
    Enqueue,
    Settle,
    /// Claim and message in one transaction.
    Accept,
}

impl Step {
    const ALL: [Self; 6] = [
        Self::Read,
        Self::Authenticate,
        Self::Claim,
        Self::Enqueue,
        Self::Settle,
        Self::Accept,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Authenticate => "authenticate",
            Self::Claim => "claim",
            Self::Enqueue => "enqueue",
            Self::Settle => "settle",
            Self::Accept => "accept",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    tenant: String,
    source: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectLabels {
    tenant: String,
    source: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    plugin: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    tenant: String,
    source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    backend: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    tenant: String,
    source: String,
    secret: String,
    /// The matching value's place among the active ones.
    place: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceStepLabels {
    tenant: String,
    source: String,
    step: &'static str,
}

/// How often each step of a source's deliveries was taken, and how long that took in all. Two numbers instead
/// of a histogram: there may be tens of thousands of sources.
#[derive(Clone, Default)]
struct SourceSteps {
    count: Family<SourceStepLabels, Counter>,
    seconds: Family<SourceStepLabels, Counter<f64, AtomicU64>>,
}

/// From when on an answer is a slow one: more than one in a hundred is a 99th percentile above it, which can be
/// alarmed on where histograms cannot.
const SLOW: Duration = Duration::from_secs(1);

/// All metrics.
pub struct Telemetry {
    registry: Registry,
    deliveries: Family<DeliveryLabels, Counter>,
    rejected: Family<RejectLabels, Counter>,
    faults: Family<FaultLabels, Counter>,
    keys: Family<KeyLabels, Counter>,
    fetches: Family<ResultLabels, Counter>,
    reloads: Family<ResultLabels, Counter>,
    reload_refused: Gauge,
    slow_answers: Counter,
    other_body: Family<SourceLabels, Counter>,
    unclaimed: Family<SourceLabels, Counter>,
    redelivered: Family<SourceLabels, Counter>,
    unstable_ids: Family<SourceLabels, Counter>,
    depth: Family<DepthLabels, Gauge>,
    depth_stale: Gauge,
    pressure: Gauge,
    skew: Family<BackendLabels, Gauge<f64, AtomicU64>>,
    ttl_missing: Gauge,
    age: Histogram,
    unroutable: Counter,
    unsettled: Counter,
    running: Gauge,
    bytes: Gauge,
    connections: Gauge,
    sources_unavailable: Gauge,
    steps: [Histogram; Step::ALL.len()],
    source_steps: SourceSteps,
}

impl Default for Telemetry {
    fn default() -> Self {
        // From 10 us, a sandbox's call, to 10 s, more than any answer takes.
        const BUCKETS: [f64; 15] = [
            1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0,
            10.0,
        ];
        let steps: Family<StepLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let mut all = Self {
            registry: Registry::with_prefix("hookgate"),
            deliveries: Family::default(),
            rejected: Family::default(),
            faults: Family::default(),
            keys: Family::default(),
            fetches: Family::default(),
            reloads: Family::default(),
            reload_refused: Gauge::default(),
            slow_answers: Counter::default(),
            other_body: Family::default(),
            unclaimed: Family::default(),
            redelivered: Family::default(),
            unstable_ids: Family::default(),
            depth: Family::default(),
            depth_stale: Gauge::default(),
            pressure: Gauge::default(),
            skew: Family::default(),
            ttl_missing: Gauge::default(),
            age: Histogram::new([
                -300.0, -60.0, -5.0, 0.0, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0, 86_400.0,
            ]),
            unroutable: Counter::default(),
            unsettled: Counter::default(),
            running: Gauge::default(),
            bytes: Gauge::default(),
            connections: Gauge::default(),
            sources_unavailable: Gauge::default(),
            steps: Step::ALL
                .map(|step| steps.get_or_create_owned(&StepLabels { step: step.name() })),
            source_steps: SourceSteps::default(),
        };
        all.registry.register_with_unit(
            "step",
            "Time that each step of a delivery took",
            Unit::Seconds,
            steps,
        );
        let of_sources = all.source_steps.clone();
        all.registry.register(
            "source_steps",
            "Steps that the deliveries of a source took",
            of_sources.count,
        );
        all.registry.register_with_unit(
            "source_step",
            "Time that they took in all",
            Unit::Seconds,
            of_sources.seconds,
        );
        all.register();
        all.register_backends();
        all
    }
}

impl Telemetry {
    fn register(&mut self) {
        let to = &mut self.registry;
        to.register(
            "deliveries",
            "Deliveries by outcome",
            self.deliveries.clone(),
        );
        to.register(
            "rejected",
            "Refused deliveries by reason",
            self.rejected.clone(),
        );
        to.register(
            "plugin_faults",
            "Calls that a plugin did not finish",
            self.faults.clone(),
        );
        to.register(
            "key_matches",
            "Verified deliveries by the key that matched",
            self.keys.clone(),
        );
        to.register(
            "key_fetches",
            "Keys and certificates by URL that were asked for, by result",
            self.fetches.clone(),
        );
        to.register(
            "slow_answers",
            "Answers to deliveries that took longer than a second, from the head of the request on",
            self.slow_answers.clone(),
        );
        to.register(
            "reloads",
            "Changes of the configuration and the plugins, by what became of them",
            self.reloads.clone(),
        );
        to.register(
            "reload_refused",
            "1 while the files have a mistake, and what was before them holds",
            self.reload_refused.clone(),
        );
        to.register(
            "same_id_other_body",
            "Duplicates whose body is not the first one's",
            self.other_body.clone(),
        );
        to.register_with_unit(
            "signed_age",
            "Age of signatures when their delivery arrived; negative from the future",
            Unit::Seconds,
            self.age.clone(),
        );
        to.register(
            "unroutable",
            "Deliveries to unknown sources",
            self.unroutable.clone(),
        );
        to.register(
            "unsettled",
            "Accepted events whose claim could not be settled",
            self.unsettled.clone(),
        );
        to.register(
            "running_deliveries",
            "Events being worked on",
            self.running.clone(),
        );
        to.register_with_unit(
            "in_flight",
            "Memory that deliveries hold",
            Unit::Bytes,
            self.bytes.clone(),
        );
        to.register("connections", "Open connections", self.connections.clone());
        to.register(
            "sources_unavailable",
            "Sources without their plugin or a secret",
            self.sources_unavailable.clone(),
        );
    }

    fn register_backends(&mut self) {
        let to = &mut self.registry;
        to.register(
            "unclaimed",
            "Events sent without a claim while the claim store was out of reach",
            self.unclaimed.clone(),
        );
        to.register(
            "redelivered",
            "Events sent once more because somebody asked the provider for them",
            self.redelivered.clone(),
        );
        to.register(
            "unstable_ids",
            "Accepted events whose body came under another id minutes before: the id may change with each retry",
            self.unstable_ids.clone(),
        );
        to.register(
            "queue_depth",
            "Messages in the queue by state, at the last reading",
            self.depth.clone(),
        );
        to.register(
            "queue_depth_stale",
            "1 where that reading is too old to count",
            self.depth_stale.clone(),
        );
        to.register(
            "pressure",
            "Whose new events are taken: 0 everybody's, 1 of tenants within their fair share, 2 nobody's",
            self.pressure.clone(),
        );
        to.register_with_unit(
            "clock_skew",
            "How far a backend's clock certainly is ahead; negative behind",
            Unit::Seconds,
            self.skew.clone(),
        );
        to.register_with_unit(
            "claim_ttl_missing",
            "What the claim TTL lacks to outlive the queue's and its dead-letter queue's messages",
            Unit::Seconds,
            self.ttl_missing.clone(),
        );
    }

    /// An event was sent without a claim.
    pub fn unclaimed(&self, source: &SourceMetrics) {
        self.unclaimed.get_or_create(&source.labels()).inc();
    }

    /// An event was asked for once more.
    pub fn redelivered(&self, source: &SourceMetrics) {
        self.redelivered.get_or_create(&source.labels()).inc();
    }

    /// A body came under another id shortly before.
    pub fn unstable_id(&self, source: &SourceMetrics) {
        self.unstable_ids.get_or_create(&source.labels()).inc();
    }

    /// The queue holds so many messages.
    pub fn queue_depth(&self, depth: Depth) {
        let states = [
            ("visible", depth.visible),
            ("in-flight", depth.in_flight),
            ("delayed", depth.delayed),
        ];
        for (state, messages) in states {
            let messages = i64::try_from(messages).unwrap_or(i64::MAX);
            self.depth
                .get_or_create(&DepthLabels { state })
                .set(messages);
        }
    }

    /// Whose new events are taken, as a number, and whether the depth that says so is stale.
    pub fn pressure(&self, level: i64, is_stale: bool) {
        self.pressure.set(level);
        self.depth_stale.set(i64::from(is_stale));
    }

    /// A backend's clock is so many seconds ahead.
    pub fn clock_skew(&self, backend: &'static str, ahead: f64) {
        self.skew
            .get_or_create(&BackendLabels { backend })
            .set(ahead);
    }

    /// The claim TTL lacks so much.
    pub fn claim_ttl_missing(&self, lacks: Duration) {
        let seconds = i64::try_from(lacks.as_secs()).unwrap_or(i64::MAX);
        self.ttl_missing.set(seconds);
    }

    /// The counters of a source.
    pub fn source(&self, tenant: &Name, source: &Name) -> SourceMetrics {
        let (tenant, source) = (tenant.to_string(), source.to_string());
        let counter = |outcome: OutcomeLabel| {
            let labels = DeliveryLabels {
                tenant: tenant.clone(),
                source: source.clone(),
                outcome: outcome.name(),
            };
            self.deliveries.get_or_create_owned(&labels)
        };
        SourceMetrics {
            outcomes: OutcomeLabel::ALL.map(counter),
            steps: Default::default(),
            all_steps: self.source_steps.clone(),
            tenant,
            source,
        }
    }

    /// A step of a source's delivery took this long.
    pub fn step(&self, source: &SourceMetrics, step: Step, took: Duration) {
        self.steps[step as usize].observe(took.as_secs_f64());
        source.step(step, took);
    }

    /// A delivery was refused.
    pub fn rejected(&self, source: &SourceMetrics, reason: &'static str) {
        let labels = RejectLabels {
            tenant: source.tenant.clone(),
            source: source.source.clone(),
            reason,
        };
        self.rejected.get_or_create(&labels).inc();
    }

    /// A plugin did not finish a call.
    pub fn plugin_fault(&self, plugin: &str, kind: &'static str) {
        self.faults
            .get_or_create(&FaultLabels {
                plugin: plugin.to_owned(),
                kind,
            })
            .inc();
    }

    /// A key or certificate by URL was asked for.
    pub fn key_fetched(&self, result: &'static str) {
        self.fetches.get_or_create(&ResultLabels { result }).inc();
    }

    /// An answer took this long, from the head of the request on.
    pub fn answered(&self, took: Duration) {
        if took > SLOW {
            self.slow_answers.inc();
        }
    }

    /// The configuration and the plugins changed: whether that took effect.
    pub fn reloaded(&self, taken: bool) {
        let result = if taken { "taken" } else { "refused" };
        self.reloads.get_or_create(&ResultLabels { result }).inc();
        self.reload_refused.set(i64::from(!taken));
    }

    /// A secret's value matched.
    pub fn key_matched(&self, source: &SourceMetrics, secret: &str, place: usize) {
        let labels = KeyLabels {
            tenant: source.tenant.clone(),
            source: source.source.clone(),
            secret: secret.to_owned(),
            place: place as u64,
        };
        self.keys.get_or_create(&labels).inc();
    }

    /// A duplicate's body is not the first one's.
    pub fn other_body(&self, source: &SourceMetrics) {
        self.other_body.get_or_create(&source.labels()).inc();
    }

    /// A signature was this old, in ms; negative from the future.
    pub fn signed_age(&self, ms: i64) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a histogram's buckets are coarser"
        )]
        self.age.observe(ms as f64 / 1000.0);
    }

    /// A delivery named no source.
    pub fn unroutable(&self) {
        self.unroutable.inc();
    }

    /// A claim could not be settled in all the time it had.
    pub fn unsettled(&self) {
        self.unsettled.inc();
    }

    /// Events being worked on.
    pub fn running(&self) -> &Gauge {
        &self.running
    }

    /// Bytes that deliveries hold.
    pub fn bytes_in_flight(&self) -> &Gauge {
        &self.bytes
    }

    /// Open connections.
    pub fn connections(&self) -> &Gauge {
        &self.connections
    }

    /// This many sources cannot work.
    pub fn sources_unavailable(&self, count: usize) {
        self.sources_unavailable
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// All metrics as Prometheus and OpenMetrics read them.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // A string takes whatever is written to it.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// What stands before a source's count of unstable ids in the encoded metrics.
pub fn unstable_ids_of(tenant: &Name, source: &Name) -> String {
    format!("hookgate_unstable_ids_total{{tenant=\"{tenant}\",source=\"{source}\"}} ")
}

/// The counters of one source, looked up once.
pub struct SourceMetrics {
    outcomes: [Counter<u64, AtomicU64>; OutcomeLabel::ALL.len()],
    /// Made when first taken: most sources never take some.
    steps: [OnceLock<(Counter, Counter<f64, AtomicU64>)>; Step::ALL.len()],
    all_steps: SourceSteps,
    tenant: String,
    source: String,
}

impl SourceMetrics {
    fn labels(&self) -> SourceLabels {
        SourceLabels {
            tenant: self.tenant.clone(),
            source: self.source.clone(),
        }
    }

    fn step(&self, step: Step, took: Duration) {
        let (count, seconds) = self.steps[step as usize].get_or_init(|| {
            let labels = SourceStepLabels {
                tenant: self.tenant.clone(),
                source: self.source.clone(),
                step: step.name(),
            };
            let count = self.all_steps.count.get_or_create_owned(&labels);
            (count, self.all_steps.seconds.get_or_create_owned(&labels))
        });
        count.inc();
        seconds.inc_by(took.as_secs_f64());
    }

    /// A delivery ended.
    pub fn ended(&self, outcome: OutcomeLabel) {
        self.outcomes[outcome as usize].inc();
    }
}

/// Telemetry that all parts share.
pub type SharedTelemetry = Arc<Telemetry>;

#[cfg(test)]
mod tests;

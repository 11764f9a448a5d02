//! What holds for a source's deliveries, from what the operator wrote and what the plugin says of its
//! provider.
//!
//! Pure rules, those of the delivery protocol's sections *In flight*, *Identity* and *Addresses*; what a
//! manifest leaves out counts as unknown, never as zero.

use std::time::Duration;

use super::problem::{KeyPath, Problem};
use super::units::{LONGEST, shown};
use super::validate::SourceSettings;
use crate::pipeline::Timing;
use crate::plugin::Manifest;
use crate::plugin::manifest::{Sample, SignedTime};
use crate::tenants::{InFlightPolicy, NoEventId, Policy, SameIdOtherBody};

/// The longest lease that a slow provider gives, and that of one whose retries are unknown.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(30);

/// The longest that a delivery waits for its answer.
const MAX_ANSWER: Duration = Duration::from_secs(5);

/// What the claim TTL `auto` follows until a queue says how long it keeps messages: SQS's longest retention of
/// 14 days (SQS quotas, message retention) and a day, so that a move to SQS forgets no sooner.
pub const AUTO_TTL: Duration = Duration::from_secs(15 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// From when on a delivery is a redelivery, unless the source says otherwise.
const REDELIVERY_AFTER: Duration = Duration::from_mins(10);

const TTL_HINT: &str =
    "use \"auto\", or more, here or in `store.claim_ttl` where that is what holds";

/// What is known of a provider.
#[derive(Debug, Clone, Default)]
pub(super) struct Provider {
    timeout: Option<Duration>,
    first_retry: Option<Duration>,
    retry_window: Option<Duration>,
    max_attempts: Option<u32>,
    every_delivery_has_id: bool,
    body_stable: bool,
    signed_time: Option<SignedTime>,
    /// Whether the signature seems to cover a time at all.
    signs_time: bool,
}

impl Provider {
    pub(super) fn of(manifest: &Manifest) -> Self {
        let retry_window = match manifest.max_attempts {
            Some(1) => Some(Duration::ZERO),
            _ => manifest
                .retry_window_s
                .map(|seconds| LONGEST.min(Duration::from_secs(seconds))),
        };
        Self {
            timeout: manifest.timeout_ms.map(Duration::from_millis),
            first_retry: manifest.first_retry_ms.map(Duration::from_millis),
            retry_window,
            max_attempts: manifest.max_attempts,
            every_delivery_has_id: manifest.every_delivery_has_id,
            body_stable: manifest.body_stable,
            signed_time: manifest.signed_time,
            signs_time: manifest.signed_time.is_some()
                || manifest.sample.as_ref().is_some_and(holds_time),
        }
    }

    /// How long others let an owner work.
    fn lease(&self, floor: Duration) -> Duration {
        floor.max(self.first_retry.unwrap_or(MAX_LEASE).min(MAX_LEASE))
    }

    fn answer_deadline(&self) -> Duration {
        self.timeout
            .map_or(MAX_ANSWER, |timeout| MAX_ANSWER.min(timeout * 7 / 10))
    }

    /// Who retries at most once, or sooner than an owner can finish, would not come again in time.
    fn in_flight(&self, floor: Duration) -> InFlightPolicy {
        let at_most_once = self.max_attempts.is_some_and(|attempts| attempts <= 2);
        let too_soon = self.first_retry.is_some_and(|delay| delay < floor);
        if at_most_once || too_soon {
            InFlightPolicy::TakeOver
        } else {
            InFlightPolicy::Wait
        }
    }

    fn no_event_id(&self) -> NoEventId {
        if self.every_delivery_has_id {
            NoEventId::Reject
        } else {
            NoEventId::Hash
        }
    }

    fn same_id_other_body(&self) -> SameIdOtherBody {
        if self.body_stable {
            SameIdOtherBody::Distinct
        } else {
            SameIdOtherBody::Duplicate
        }
    }

    fn claim_ttl(&self) -> Duration {
        self.retry_window.unwrap_or_default() + Duration::from_secs(DAY)
    }
}

fn holds_time(sample: &Sample) -> bool {
    let mut parts = sample
        .headers
        .iter()
        .map(|(_, value)| value)
        .chain([&sample.target, &sample.body]);
    parts.any(|part| part.contains("{timestamp}"))
}

/// The source's policy.
pub(super) fn policy(source: &SourceSettings, provider: &Provider, timing: &Timing) -> Policy {
    let floor = timing.lease_floor();
    let lease = provider.lease(floor);
    let content_ttl = provider
        .retry_window
        .unwrap_or_default()
        .max(timing.window + lease);
    Policy {
        ordering: source.ordering,
        max_age: source.max_age,
        max_future: source.max_future,
        no_event_id: source.no_event_id.unwrap_or_else(|| provider.no_event_id()),
        same_id_other_body: source
            .same_id_other_body
            .unwrap_or_else(|| provider.same_id_other_body()),
        claim_ttl: source.claim_ttl.unwrap_or_else(|| provider.claim_ttl()),
        claim_ttl_follows_queue: source.claim_ttl.is_none(),
        content_ttl: source.content_ttl.unwrap_or(content_ttl),
        lease,
        answer_deadline: provider.answer_deadline(),
        in_flight: source
            .in_flight
            .unwrap_or_else(|| provider.in_flight(floor)),
        claim_outage: source.claim_outage,
        redelivery_after: source
            .redelivery
            .then(|| source.redelivery_after.unwrap_or(REDELIVERY_AFTER)),
    }
}

/// What the provider's ways have against the policy.
pub(super) fn check(
    policy: &Policy,
    provider: &Provider,
    timing: &Timing,
    source: &KeyPath,
) -> Vec<Problem> {
    let least = timing.window + policy.lease;
    let mut problems = Vec::new();
    problems.extend(check_claim_ttl(policy, provider, least, source));
    problems.extend(check_content_ttl(policy, provider, least, source));
    problems.extend(check_max_age(policy, provider, source));
    problems.extend(check_redelivery(policy, provider, source));
    problems
}

/// The provider's own retries must not count as redeliveries that somebody asked for.
fn check_redelivery(policy: &Policy, provider: &Provider, source: &KeyPath) -> Option<Problem> {
    let (after, window) = (policy.redelivery_after?, provider.retry_window);
    if window.is_some_and(|window| window < after) {
        return None;
    }
    let path = source.then("redelivery");
    let Some(window) = window else {
        let what = "it is not known whether the provider retries by itself: its retries would be sent again";
        return Some(
            Problem::warning(path, what)
                .hint("use \"suppress\" unless you are sure that it does not"),
        );
    };
    let what = format!(
        "the provider retries by itself for {}: its retries after {} would be sent again",
        shown(window),
        shown(after)
    );
    let hint = format!(
        "use \"suppress\", or a `redelivery_after` of more than \"{}\"",
        shown(window)
    );
    Some(Problem::error(path, what).hint(hint))
}

fn check_claim_ttl(
    policy: &Policy,
    provider: &Provider,
    least: Duration,
    source: &KeyPath,
) -> Option<Problem> {
    let path = source.then("claim_ttl");
    let ttl = policy.claim_ttl;
    if let Some(window) = provider.retry_window.filter(|window| *window >= ttl) {
        let what = format!(
            "{} is too short: the provider goes on retrying for {}, and its last retries would count as new \
             events",
            shown(ttl),
            shown(window),
        );
        return Some(Problem::error(path, what).hint(TTL_HINT));
    }
    (ttl < least).then(|| {
        let what = format!(
            "{} is too short: the queue's window and a lease take {}",
            shown(ttl),
            shown(least)
        );
        Problem::error(path, what).hint(TTL_HINT)
    })
}

fn check_content_ttl(
    policy: &Policy,
    provider: &Provider,
    least: Duration,
    source: &KeyPath,
) -> Option<Problem> {
    let path = source.then("content_ttl");
    let ttl = policy.content_ttl;
    if ttl < least {
        let what = format!(
            "{} is too short: the queue's window and a lease take {}",
            shown(ttl),
            shown(least)
        );
        return Some(Problem::error(path, what).hint("leave it out for the default"));
    }
    let window = provider.retry_window.filter(|window| ttl < *window)?;
    let what = format!(
        "{} is shorter than the {} that the provider goes on retrying: later retries of an event without an \
         id count as new events",
        shown(ttl),
        shown(window),
    );
    Some(Problem::warning(path, what))
}

fn check_max_age(policy: &Policy, provider: &Provider, source: &KeyPath) -> Option<Problem> {
    let path = source.then("max_age");
    let age = shown(policy.max_age);
    if !provider.signs_time {
        return None;
    }
    match (provider.signed_time, provider.retry_window) {
        (Some(SignedTime::Attempt), _) | (None, None) => None,
        (_, Some(window)) if policy.max_age >= window => None,
        (Some(SignedTime::Event), None) => Some(Problem::warning(
            path,
            format!(
                "the provider signs the event's time and retries for who knows how long: retries later than \
                 {age} are answered 401"
            ),
        )),
        (Some(SignedTime::Event), Some(window)) => {
            let window = shown(window);
            let what = format!(
                "{age} is too short: the provider signs the event's time and goes on retrying for {window}, \
                 so later retries would be answered 401"
            );
            Some(Problem::error(path, what).hint(format!("set `max_age = \"{window}\"`")))
        }
        (None, Some(window)) => {
            let window = shown(window);
            let what = format!(
                "{age} may be too short: the plugin does not say whose time is signed, and the provider goes \
                 on retrying for {window}"
            );
            Some(Problem::warning(path, what).hint(format!(
                "if retries carry the first attempt's time, set `max_age = \"{window}\"`"
            )))
        }
    }
}

#[cfg(test)]
mod tests;

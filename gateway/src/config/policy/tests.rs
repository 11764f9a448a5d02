//! The protocol's examples of leases, and the other rules at their edges.

use super::*;

const S: Duration = Duration::from_secs(1);

fn provider(says: &str) -> Provider {
    let comma = if says.is_empty() { "" } else { "," };
    let json = format!(r#"{{"v": 1, "name": "p", "version": "1"{comma} {says}}}"#);
    Provider::of(&Manifest::parse(&json).unwrap())
}

fn source() -> SourceSettings {
    use crate::delivery::{Name, Ordering};
    use crate::tenants::ClaimOutage;
    SourceSettings {
        tenant: Name::new("acme").unwrap(),
        name: Name::new("s").unwrap(),
        plugin: "p".into(),
        secrets: std::collections::BTreeMap::new(),
        key_forms: std::collections::BTreeMap::new(),
        public_url: None,
        options: std::collections::BTreeMap::new(),
        ordering: Ordering::Key,
        max_age: 300 * S,
        max_future: 300 * S,
        no_event_id: None,
        same_id_other_body: None,
        in_flight: None,
        claim_outage: ClaimOutage::Reject,
        redelivery: false,
        redelivery_after: None,
        claim_ttl: None,
        content_ttl: None,
        key_hosts: Vec::new(),
        sign_challenges: false,
        allow_weak_key: false,
    }
}

fn resolved(says: &str) -> Policy {
    policy(&source(), &provider(says), &Timing::default())
}

/// Severity and key of each problem.
fn found(source: &SourceSettings, says: &str) -> Vec<String> {
    let (provider, timing) = (provider(says), Timing::default());
    let policy = policy(source, &provider, &timing);
    let problems = check(&policy, &provider, &timing, &KeyPath::default());
    problems
        .iter()
        .map(|problem| format!("{} {}", problem.severity, problem.path))
        .collect()
}

#[test]
fn leases_and_take_over_are_the_protocols_examples() {
    use InFlightPolicy::{TakeOver, Wait};
    assert_eq!(Timing::default().lease_floor(), 4 * S);
    for (who, says, lease, in_flight) in [
        ("GitHub", r#""max_attempts": 1"#, 30, TakeOver),
        (
            "Slack",
            r#""max_attempts": 4, "first_retry_ms": 0"#,
            4,
            TakeOver,
        ),
        (
            "Standard Webhooks",
            r#""max_attempts": 9, "first_retry_ms": 5000"#,
            5,
            Wait,
        ),
        ("unknown", "", 30, Wait),
        ("at the floor", r#""first_retry_ms": 4000"#, 4, Wait),
        (
            "one retry",
            r#""max_attempts": 2, "first_retry_ms": 60000"#,
            30,
            TakeOver,
        ),
        (
            "two retries",
            r#""max_attempts": 3, "first_retry_ms": 60000"#,
            30,
            Wait,
        ),
    ] {
        let policy = resolved(says);
        assert_eq!(
            (policy.lease, policy.in_flight),
            (lease * S, in_flight),
            "{who}"
        );
    }
}

#[test]
fn answers_come_within_seven_tenths_of_the_providers_timeout() {
    let deadline = |says| resolved(says).answer_deadline;
    assert_eq!(deadline(""), 5 * S);
    assert_eq!(deadline(r#""timeout_ms": 10000"#), 5 * S);
    assert_eq!(
        deadline(r#""timeout_ms": 3000"#),
        Duration::from_millis(2100)
    );
}

#[test]
fn identity_follows_what_the_plugin_says() {
    let policy = resolved(r#""every_delivery_has_id": true, "body_stable": true"#);
    assert_eq!(policy.no_event_id, NoEventId::Reject);
    assert_eq!(policy.same_id_other_body, SameIdOtherBody::Distinct);
    let policy = resolved("");
    assert_eq!(policy.no_event_id, NoEventId::Hash);
    assert_eq!(policy.same_id_other_body, SameIdOtherBody::Duplicate);
}

#[test]
fn claims_outlive_the_providers_retries() {
    let day = Duration::from_secs(DAY);
    assert_eq!(resolved("").claim_ttl, day);
    let policy = resolved(r#""retry_window_s": 2592000"#);
    assert_eq!(policy.claim_ttl, 31 * day);
    assert!(policy.claim_ttl_follows_queue);
    let with = |ttl| SourceSettings {
        claim_ttl: Some(ttl),
        ..source()
    };
    let fixed = super::policy(&with(day), &Provider::default(), &Timing::default());
    assert_eq!(
        (fixed.claim_ttl, fixed.claim_ttl_follows_queue),
        (day, false)
    );
    let says = r#""retry_window_s": 3600"#;
    assert_eq!(found(&with(3600 * S), says), ["error claim_ttl"]);
    assert_eq!(found(&with(3601 * S), says), [""; 0]);
    assert_eq!(found(&with(329 * S), ""), ["error claim_ttl"]);
    assert_eq!(found(&with(330 * S), ""), [""; 0]);
}

#[test]
fn redeliveries_are_for_providers_that_no_longer_retry_by_then() {
    let forwards = |after| SourceSettings {
        redelivery: true,
        redelivery_after: after,
        ..source()
    };
    let of = |after| policy(&forwards(after), &Provider::default(), &Timing::default());
    assert_eq!(of(None).redelivery_after, Some(600 * S));
    assert_eq!(of(Some(90 * S)).redelivery_after, Some(90 * S));
    assert_eq!(found(&forwards(None), r#""max_attempts": 1"#), [""; 0]);
    let retries = r#""retry_window_s": 3600"#;
    assert_eq!(found(&forwards(None), retries), ["error redelivery"]);
    assert_eq!(found(&forwards(Some(3601 * S)), retries), [""; 0]);
    assert_eq!(found(&forwards(None), ""), ["warning redelivery"]);
}

#[test]
fn content_is_remembered_for_the_retries_and_never_less_than_window_and_lease() {
    assert_eq!(resolved("").content_ttl, 330 * S);
    assert_eq!(resolved(r#""retry_window_s": 3600"#).content_ttl, 3600 * S);
    let with = |ttl| SourceSettings {
        content_ttl: Some(ttl),
        ..source()
    };
    assert_eq!(found(&with(329 * S), ""), ["error content_ttl"]);
    assert_eq!(
        found(&with(330 * S), r#""retry_window_s": 3600"#),
        ["warning content_ttl"]
    );
}

#[test]
fn signatures_of_the_events_time_must_be_taken_as_long_as_retries_come() {
    let with = |max_age| SourceSettings {
        max_age,
        ..source()
    };
    let ages = |age, says| found(&with(age), says);
    let event = r#""signed_time": "event", "retry_window_s": 3600"#;
    assert_eq!(ages(3599 * S, event), ["error max_age"]);
    assert_eq!(ages(3600 * S, event), [""; 0]);
    assert_eq!(
        ages(300 * S, r#""signed_time": "event""#),
        ["warning max_age"]
    );
    assert_eq!(
        ages(S, r#""signed_time": "event", "max_attempts": 1"#),
        [""; 0]
    );
    assert_eq!(
        ages(S, r#""signed_time": "attempt", "retry_window_s": 3600"#),
        [""; 0]
    );
    // Nothing says that a time is signed at all.
    assert_eq!(ages(S, r#""retry_window_s": 3600"#), [""; 0]);
    let sample = r#""retry_window_s": 3600, "sample": {"method": "POST", "body": "{timestamp}"}"#;
    assert_eq!(ages(300 * S, sample), ["warning max_age"]);
}

#[test]
fn a_retry_window_beyond_all_time_counts_as_the_longest() {
    let policy = resolved(&format!(r#""retry_window_s": {}"#, u64::MAX));
    assert_eq!(policy.claim_ttl, LONGEST + Duration::from_secs(DAY));
    assert_eq!(policy.content_ttl, LONGEST);
}

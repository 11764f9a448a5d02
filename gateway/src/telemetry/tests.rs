use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;

/// A metric as it is encoded: what it is, and the labels that its samples carry.
#[derive(Default)]
struct Metric {
    name: String,
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// Telemetry in which every metric has a sample.
fn used() -> Telemetry {
    let telemetry = Telemetry::default();
    let name = |name| Name::new(name).unwrap();
    let source = telemetry.source(&name("t"), &name("s"));
    source.ended(OutcomeLabel::Accepted);
    telemetry.step(&source, Step::Accept, Duration::from_millis(5));
    telemetry.rejected(&source, "stale");
    telemetry.plugin_fault("p", "fuel");
    telemetry.key_matched(&source, "secret", 0);
    telemetry.other_body(&source);
    telemetry.signed_age(-1500);
    telemetry.unclaimed(&source);
    telemetry.redelivered(&source);
    telemetry.unstable_id(&source);
    telemetry.queue_depth(Depth::default());
    telemetry.clock_skew("sqs", 0.5);
    telemetry
}

fn metrics(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            let (name, help) = (name.to_owned(), help.to_owned());
            metrics.push(Metric {
                name,
                help,
                ..Metric::default()
            });
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            metrics.last_mut().unwrap().kind = kind.split(' ').next_back().unwrap().to_owned();
        } else if let Some((_, labels)) = line.split_once('{') {
            let labels = labels
                .split(',')
                .filter_map(|label| label.split_once("=\""));
            let labels = labels
                .map(|(label, _)| label.to_owned())
                .filter(|label| label != "le");
            metrics.last_mut().unwrap().labels.extend(labels);
        }
    }
    metrics
}

#[test]
fn the_list_of_metrics_in_the_docs_is_the_codes() {
    let mut page = String::from(
        "# Metrics\n\n\
         <!-- Made from gateway/src/telemetry.rs. After changing it:\n     \
         UPDATE=1 cargo test -p hookgate --lib telemetry -->\n\n\
         `/metrics` on the admin listener, as OpenMetrics text. Counters end in `_total`, histograms in \
         `_bucket`, `_sum` and `_count`.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in metrics(&used().encode()) {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let Metric {
            name, kind, help, ..
        } = metric;
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {} | {help} |",
            labels.join(", ")
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        page,
        "UPDATE=1 writes it anew"
    );
}

#[test]
fn a_sample_carries_its_labels_in_lower_case_words() {
    let text = used().encode();
    let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    has(r#"hookgate_deliveries_total{tenant="t",source="s",outcome="accepted"} 1"#);
    has(r#"hookgate_rejected_total{tenant="t",source="s",reason="stale"} 1"#);
    has(r#"hookgate_key_matches_total{tenant="t",source="s",secret="secret",place="0"} 1"#);
    has("hookgate_signed_age_seconds_sum -1.5");
    has(r#"hookgate_source_steps_total{tenant="t",source="s",step="accept"} 1"#);
    has(r#"hookgate_source_step_seconds_total{tenant="t",source="s",step="accept"} 0.005"#);
}

#[test]
fn a_sources_unstable_ids_are_found_again() {
    let name = |name| Name::new(name).unwrap();
    let encoded = used().encode();
    let prefix = unstable_ids_of(&name("t"), &name("s"));
    let count = encoded.lines().find_map(|line| line.strip_prefix(&prefix));
    assert_eq!(count, Some("1"));
}

#[test]
fn an_answer_is_slow_above_a_second() {
    let telemetry = Telemetry::default();
    telemetry.answered(Duration::from_secs(1));
    assert!(telemetry.encode().contains("hookgate_slow_answers_total 0"));
    telemetry.answered(Duration::from_millis(1001));
    assert!(telemetry.encode().contains("hookgate_slow_answers_total 1"));
}

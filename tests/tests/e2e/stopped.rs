//! The process is stopped (SIGSTOP) with a delivery in its hands, as a paused machine is, and continues when
//! the provider has long given up and come again. The event is in the queue once, and its retry is told so.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::{Answer, Connection, Signed};
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::timeout;

use crate::world::{self, DEADLINE};

/// How long the provider waits for an answer; the gateway gives up at seven tenths of it.
const PROVIDER_WAITS: Duration = Duration::from_millis(400);

/// A guest that accepts every delivery by its header `x-id`, of a provider that does not wait long.
fn impatient() -> Vec<u8> {
    let manifest = format!(
        r#"{{"v":1,"name":"impatient","version":"1","timeout_ms":{}}}"#,
        PROVIDER_WAITS.as_millis()
    );
    let text = include_str!("../../guests/world.wat")
        .replace("(;GUEST;)", include_str!("../../guests/accept.wat"))
        .replace("(;MANIFEST;)", &format!("{manifest:?}"))
        .replace("(;MANIFEST_LENGTH;)", &manifest.len().to_string());
    wat::parse_str(text).expect("a component")
}

/// A gateway that stops the first time it comes by a fail point, or never.
async fn gateway(directory: &Path, place: Option<&str>) -> Gateway {
    let failpoints = place.map(|place| format!("{place}=1*return(stop)"));
    let environment = [("FAILPOINTS", failpoints.as_deref().unwrap_or_default())];
    let started = Gateway::start(directory, &environment).await;
    started.unwrap_or_else(|error| panic!("no start: {error}"))
}

async fn deliver(gateway: &Gateway, signed: &Signed) -> Answer {
    let answer = timeout(DEADLINE, Connection::to(gateway.ingress).deliver(signed)).await;
    answer.expect("an answer in time").expect("an answer")
}

/// Stops with the delivery at a fail point for longer than anybody waits, the provider's retry on its way.
/// What the first attempt and the retry were told.
async fn told(gateway: &Gateway, signed: &Signed) -> [Answer; 2] {
    let retried = async {
        world::until("the gateway has stopped", async || {
            gateway.is_stopped().expect("the process is there")
        })
        .await;
        let retry = deliver(gateway, signed);
        let continued = async {
            // No event to wait for: that nothing happens for so long is what is tried.
            tokio::time::sleep(2 * PROVIDER_WAITS).await;
            assert!(gateway.is_stopped().expect("the process is there"));
            gateway.signal(Signal::CONT).expect("the process is there");
        };
        tokio::join!(retry, continued).0
    };
    tokio::join!(deliver(gateway, signed), retried).into()
}

async fn stop_at(place: &str) {
    let directory = world::directory();
    let config = world::head() + "\n[tenants.acme.sources.shop]\nplugin = \"impatient\"\n";
    world::configure(directory.path(), &config).expect("a configuration is written");
    fs::write(directory.path().join("plugins/impatient.wasm"), impatient()).expect("a plugin");
    let stopping = gateway(directory.path(), Some(place)).await;
    let signed = Signed::post("acme/shop", &[("x-id", "e-1")], "{}");
    let [first, retry] = told(&stopping, &signed).await;
    let late = deliver(&stopping, &signed).await;
    assert!(
        [202, 503].contains(&first.status) && !first.duplicate,
        "{place}: at first {first:?}"
    );
    for answer in [&retry, &late] {
        assert!(
            answer.status == 200 && answer.duplicate,
            "{place}: then {answer:?}"
        );
    }
    assert_eq!(retry.body, late.body, "{place}");
    if first.is_promise() {
        assert_eq!(first.body, late.body, "{place}");
    }
    assert!(stopping.terminate().await.expect("an end").success());
    let next = gateway(directory.path(), None).await;
    let events = next.events().await.expect("the queue is readable");
    let ids: Vec<_> = events
        .iter()
        .map(|event| &event["attributes"]["ce-id"])
        .collect();
    assert_eq!(ids, ["e-1"], "{place}");
    let promised: Value = serde_json::from_slice(&late.body).expect("the answer is JSON");
    let context = events[0]["attributes"]["hookgate"].as_str();
    let context: Value = serde_json::from_str(context.unwrap_or_default()).expect("JSON");
    assert_eq!(promised["delivery_id"], context["delivery"], "{place}");
}

#[tokio::test]
async fn an_event_whose_process_was_stopped_is_there_once_and_its_retry_is_a_duplicate() {
    let places = [
        "before-commit",
        "inside-commit",
        "after-commit",
        "before-answer",
        "inside-answer",
    ];
    let stops = places.map(|place| tokio::spawn(stop_at(place)));
    for stop in stops {
        stop.await.expect("nothing lost and nothing doubled");
    }
}

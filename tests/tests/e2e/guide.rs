//! The guide to writing plugins, walked as a newcomer would: every command on its page, in order.

use std::fs;
use std::path::Path;
use std::process::Output;

use hookgate_tests::gateway::{self, Gateway};
use tokio::process::Command;

use crate::world::{self, until};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/plugins.md");

/// The commands of a page, block by block.
fn blocks(page: &str) -> Vec<String> {
    let fenced = page.split("```sh\n").skip(1);
    fenced
        .map(|text| text.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

async fn run(block: &str, directory: &Path) -> Output {
    let binaries = gateway::built("hookgate");
    let binaries = binaries
        .parent()
        .expect("a directory")
        .canonicalize()
        .expect("it is there");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell
        .args(["-eu", "-o", "pipefail", "-c", block])
        .env("PATH", format!("{}:{path}", binaries.display()))
        // What the crate depends on is built once, and not for every run.
        .env(
            "CARGO_TARGET_DIR",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/guide"),
        )
        .current_dir(directory)
        .kill_on_drop(true);
    shell.output().await.expect("bash runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Listeners at these ports, which `send` and the gateway both read.
fn config(ingress: u16, admin: u16) -> String {
    world::head()
        .replacen("127.0.0.1:0", &format!("127.0.0.1:{ingress}"), 1)
        .replacen("127.0.0.1:0", &format!("127.0.0.1:{admin}"), 1)
}

/// A port that nobody has at this moment.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn every_command_of_the_guide_works_and_ends_in_accepted_deliveries() {
    let page = fs::read_to_string(GUIDE).expect("the guide");
    assert!(
        page.lines().count() < 140,
        "the guide is longer than a page"
    );
    let at = world::directory();
    world::configure(at.path(), &config(port(), port())).expect("a configuration");
    let gateway = Gateway::start(at.path(), &[]).await.expect("a gateway");
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 5, "{blocks:?}");
    for block in &blocks {
        if block.contains("hookgate send") {
            // The change is found within seconds.
            until("the gateway has taken what was dropped in", || async {
                run(block, at.path()).await.status.success()
            })
            .await;
            continue;
        }
        let output = run(block, at.path()).await;
        assert!(output.status.success(), "{block}\n{}", said(&output));
    }
    let events = gateway.events().await.expect("the queue");
    for source in ["/shop/acme", "/shop/lighthouse"] {
        let from = |event: &serde_json::Value| event["attributes"]["ce-source"] == source;
        assert!(events.iter().any(from), "{source}: {events:?}");
    }
}

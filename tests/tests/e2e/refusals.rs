//! Every refusal of the real binary is one message that says what to do. The snapshots are whole outputs,
//! without what differs between machines and runs; `INSTA_UPDATE=always cargo test` writes them anew.

mod backends;
mod configuration;
mod database;
mod disk;
mod plugins;
mod running;

use std::fmt::Write as _;
use std::path::Path;

use hookgate::http::client;
use hookgate_tests::gateway::{self, Gateway};
use hookgate_tests::provider::Connection;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::world::{self, DEADLINE};

/// The secret of sources that have one.
const SECRET: &str = "a secret that only this test knows";

/// What a gateway finds in its environment.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("SECRET", SECRET),
    ("SHORT", "0123456789"),
    ("AWS_ACCESS_KEY_ID", "123456789012"),
    ("AWS_SECRET_ACCESS_KEY", "known to no stand-in"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

/// A directory with this configuration.
fn configured(config: &str) -> TempDir {
    let directory = world::directory();
    world::configure(directory.path(), config).expect("a configuration is written");
    directory
}

/// A command line, its exit code, and all that it printed.
async fn said(directory: &Path, arguments: &[&str]) -> String {
    let mut command = gateway::command(directory);
    command.args(arguments);
    let line = format!("$ hookgate {}\n", arguments.join(" "));
    line + &output_of(command, directory).await
}

async fn output_of(mut command: Command, directory: &Path) -> String {
    command.env_remove("RUST_LOG").envs(ENVIRONMENT);
    let output = timeout(DEADLINE, command.output()).await;
    let output = output
        .expect("the command ends by itself")
        .expect("the binary runs; `make build` makes it");
    let code = output
        .status
        .code()
        .map_or("none".into(), |code| code.to_string());
    let mut text = format!("exit code {code}\n");
    for (name, bytes) in [("output", output.stdout), ("error", output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(
                text,
                "--- standard {name}\n{}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
    filtered(&text, directory)
}

/// Without this machine's paths, and without times.
fn filtered(text: &str, directory: &Path) -> String {
    let mut text = text.to_owned();
    let canonical = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    for (path, name) in [(directory, "DIR"), (&canonical, "DIR")] {
        text = text.replace(&path.display().to_string(), name);
    }
    let words = text.split(' ').map(|word| {
        let begin = word.rfind('\n').map_or(0, |end| end + 1);
        let (lines, word) = word.split_at(begin);
        let is_time = word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        lines.to_owned() + if is_time { "TIME" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A running gateway of this directory.
async fn serving(directory: &Path) -> Gateway {
    let gateway = Gateway::start(directory, &ENVIRONMENT).await;
    gateway.unwrap_or_else(|error| panic!("no start: {error}"))
}

/// Stops a gateway and says what it logged.
async fn stopped(gateway: Gateway, directory: &Path) -> String {
    let status = gateway.terminate().await.expect("the gateway ends");
    let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    format!("serve: {status}\n--- log\n{}", filtered(&log, directory))
}

/// What `check` says of a source that cannot be served, and that `serve` serves the other one all the same.
async fn told_of_one_source(directory: &TempDir) -> String {
    let directory = directory.path();
    let mut text = said(directory, &["check"]).await;
    let gateway = serving(directory).await;
    let mut connection = Connection::to(gateway.ingress);
    for (source, status) in [("bad", 503), ("good", 202)] {
        let order = world::order(&format!("acme/{source}"), SECRET, "o-1", "c-1", "");
        let answer = connection.deliver(&order).await.expect("an answer");
        assert_eq!(answer.status, status, "{source}: {answer:?}");
        if status == 503 {
            assert!(answer.retry_after.is_some(), "{answer:?}");
        }
    }
    let (status, ready) = client::get(gateway.admin, "/readyz")
        .await
        .expect("an answer");
    let ready = filtered(&String::from_utf8_lossy(&ready), directory);
    let _ = writeln!(text, "/readyz {status} {ready}");
    text + &stopped(gateway, directory).await
}

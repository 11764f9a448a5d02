//! A full disk: nothing is promised that cannot be kept, nothing promised is lost, and room mends it.
//!
//! The room is a small tmpfs, and the shell's limit on the size of files, which the kernel reports as another
//! error. Where mounting is not permitted that is printed, and the limit stands in for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hookgate_tests::gateway::{self, Gateway, StartError};
use hookgate_tests::provider::{Answer, Connection};
use tempfile::TempDir;
use tokio::process::Command;

use super::{ENVIRONMENT, SECRET, configured, serving};
use crate::world;

/// Room for some hundred orders, in KiB: the fresh database takes most of it.
const ROOM: usize = 4096;

/// The most orders that may fit.
const ORDERS: usize = 2000;

/// What keeps the database small.
enum Room {
    /// A file system of its own, unmounted at the end.
    Mount(PathBuf),
    /// A limit of the process.
    Limit,
}

impl Room {
    async fn mounted_below(directory: &Path) -> Option<Self> {
        let data = directory.join("data");
        std::fs::create_dir(&data).expect("a directory");
        let size = format!("size={ROOM}k");
        if mount(&["-t", "tmpfs", "-o", &size, "hookgate-test"], &data).await {
            return Some(Self::Mount(data));
        }
        None
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Mount(_) => "a small tmpfs",
            Self::Limit => "ulimit -f, since mounting is not permitted",
        }
    }

    /// A gateway that has no more than the room.
    async fn serve(&self, directory: &Path) -> Gateway {
        let started = self.start(directory).await;
        started.unwrap_or_else(|error| panic!("no start: {error}"))
    }

    async fn start(&self, directory: &Path) -> Result<Gateway, StartError> {
        if let Self::Mount(_) = self {
            return Gateway::start(directory, &ENVIRONMENT).await;
        }
        let mut command = Command::new("sh");
        // Its unit is 512 bytes.
        let limit = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" serve", ROOM * 2);
        command.arg("-c").arg(limit).arg(gateway::built("hookgate"));
        command
            .current_dir(directory)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .envs(ENVIRONMENT);
        Gateway::spawn(command, directory).await
    }

    /// Makes room under a running gateway, where that can be done.
    async fn grow(&self) -> bool {
        match self {
            Self::Mount(data) => mount(&["-o", "remount,size=256m"], data).await,
            Self::Limit => false,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Self::Mount(data) = self {
            let _ = std::process::Command::new("umount")
                .arg("-l")
                .arg(data)
                .status();
        }
    }
}

async fn mount(arguments: &[&str], at: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(arguments).arg(at).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// Delivers orders until one is refused, and says which were accepted.
async fn fill(connection: &mut Connection) -> (Vec<String>, Answer) {
    let mut accepted = Vec::new();
    let note = "n".repeat(10_000);
    for number in 0..ORDERS {
        let id = format!("o-{number}");
        let order = world::order("acme/orders", SECRET, &id, "c-1", &note);
        let answer = connection.deliver(&order).await.expect("an answer");
        if !answer.is_promise() {
            return (accepted, answer);
        }
        accepted.push(id);
    }
    panic!("{ORDERS} orders fitted: there was room");
}

async fn status(gateway: &Gateway, id: &str) -> u16 {
    let order = world::order("acme/orders", SECRET, id, "c-1", "");
    let answer = Connection::to(gateway.ingress).deliver(&order).await;
    answer.expect("an answer").status
}

/// How often each order is in the queue.
async fn held(gateway: &Gateway) -> BTreeMap<String, usize> {
    let mut held = BTreeMap::new();
    for event in gateway.events().await.expect("the queue is readable") {
        let id = event["attributes"]["ce-id"].as_str().unwrap_or_default();
        *held.entry(id.to_owned()).or_default() += 1;
    }
    held
}

/// A start without room: all that was acknowledged is there, or the refusal says what to do.
async fn start_again(room: &Room, directory: &Path, accepted: &[String]) {
    match room.start(directory).await {
        Ok(gateway) => {
            let held = held(&gateway).await;
            assert!(
                accepted.iter().all(|id| held.get(id) == Some(&1)),
                "{held:?}"
            );
            gateway.kill().await.expect("it is killed");
        }
        Err(refusal) => {
            let refusal = refusal.to_string();
            assert!(refusal.contains("hint: free some space"), "{refusal}");
        }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_deliveries_and_keeps_what_was_acknowledged() {
    let (directory, room) = with_room().await;
    eprintln!("the disk is full by {}", room.name());
    fills_up(directory.path(), &room, false).await;
}

#[tokio::test]
async fn a_running_gateway_mends_itself_once_there_is_room() {
    let (directory, room) = with_room().await;
    eprintln!("the disk is full by {}", room.name());
    fills_up(directory.path(), &room, true).await;
}

#[tokio::test]
async fn a_file_that_may_not_grow_refuses_deliveries_and_keeps_what_was_acknowledged() {
    let directory = configured(&config());
    fills_up(directory.path(), &Room::Limit, false).await;
}

fn config() -> String {
    world::head() + &world::orders("acme", "orders", "SECRET")
}

async fn with_room() -> (TempDir, Room) {
    let directory = configured(&config());
    let room = Room::mounted_below(directory.path()).await;
    (directory, room.unwrap_or(Room::Limit))
}

/// Fills the room, makes more of it while the gateway runs or behind it, and compares.
async fn fills_up(directory: &Path, room: &Room, mends: bool) {
    let gateway = room.serve(directory).await;
    let (mut accepted, refusal) = fill(&mut Connection::to(gateway.ingress)).await;
    assert!(accepted.len() > 10, "{accepted:?}");
    assert_eq!(
        (refusal.status, refusal.retry_after),
        (503, Some(5)),
        "{refusal:?}"
    );
    if mends && room.grow().await {
        world::until("a delivery is accepted again", async || {
            status(&gateway, "with-room").await != 503
        })
        .await;
        accepted.push("with-room".into());
    }
    gateway.kill().await.expect("it is killed");
    if !mends {
        start_again(room, directory, &accepted).await;
        room.grow().await;
    }
    let gateway = serving(directory).await;
    let held = held(&gateway).await;
    for id in &accepted {
        assert_eq!(held.get(id), Some(&1), "{id} of {accepted:?}");
    }
    assert!(held.values().all(|times| *times == 1), "{held:?}");
    assert_eq!(status(&gateway, "after").await, 202);
    gateway.terminate().await.expect("it ends");
}

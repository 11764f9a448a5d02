//! Configuration, plugins and secrets that change under a running gateway.

#![allow(
    clippy::unwrap_used,
    reason = "what helps a test fails as loudly as the test"
)]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::{Connection, Signed};
use hookgate_tests::sign::hmac_sha256_hex;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::world::{self, head, order, plugin, until};

/// Swaps of the test under load, and how many connections deliver meanwhile.
const SWAPS: usize = 200;
const SENDERS: usize = 4;

const KEYS: [&str; 2] = [
    "the key of the first version",
    "the key of the second version",
];
const HEADERS: [&str; 2] = ["X-First-Signature", "X-Second-Signature"];

/// A source whose signature's header and key both change from one version to the other.
fn version(n: usize, watch: &str) -> String {
    let (header, key) = (HEADERS[n % 2], n % 2);
    format!(
        "{}watch = \"{watch}\"\n\n[tenants.acme.sources.orders]\nplugin = \"hmac\"\n\
         secrets.secret = [\"file:key{key}\"]\noptions.header = \"{header}\"\noptions.id = \"json:/id\"\n",
        head()
    )
}

/// Good under either version, or, with the signatures exchanged, under neither: a gateway that takes a header of
/// one and a key of the other would accept it.
fn signed(id: &str, exchanged: bool) -> Signed {
    let body = format!(r#"{{"id":"{id}"}}"#);
    let by = |n: usize| hmac_sha256_hex(KEYS[(n + usize::from(exchanged)) % 2], &[body.as_bytes()]);
    let headers = [(HEADERS[0], &*by(0)), (HEADERS[1], &*by(1))];
    Signed::post("acme/orders", &headers, body)
}

/// The plugin with so many bytes that mean nothing: another file that does the same.
fn variant(n: usize) -> Vec<u8> {
    let mut bytes = fs::read(plugin("hmac")).unwrap();
    let text = format!("variant {n}");
    let name = u8::try_from(text.len()).unwrap();
    bytes.extend([0, name + 1, name]);
    bytes.extend(text.bytes());
    bytes
}

/// Puts a file in the place of another, as editors do.
fn replace(path: &Path, content: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// A directory in which the plugins' own is behind a link, as Kubernetes mounts one.
fn site(watch: &str) -> TempDir {
    let at = world::directory();
    for (n, key) in KEYS.iter().enumerate() {
        fs::write(at.path().join(format!("key{n}")), key).unwrap();
    }
    directory(at.path(), 0, &variant(0));
    fs::write(at.path().join("hookgate.toml"), version(0, watch)).unwrap();
    at
}

/// A new directory of plugins, and the link that leads to it.
fn directory(at: &Path, n: usize, hmac: &[u8]) {
    let name = format!("plugins{n}");
    fs::create_dir(at.join(&name)).unwrap();
    fs::write(at.join(&name).join("hmac.wasm"), hmac).unwrap();
    symlink(&name, at.join("link")).unwrap();
    fs::rename(at.join("link"), at.join("plugins")).unwrap();
}

async fn reloads(gateway: &Gateway, result: &str) -> i64 {
    let name = format!("hookgate_reloads_total{{result=\"{result}\"}}");
    gateway.metric(&name).await.unwrap_or(0)
}

async fn readyz(gateway: &Gateway) -> Value {
    let (status, body) = hookgate::http::client::get(gateway.admin, "/readyz")
        .await
        .unwrap();
    assert_eq!(
        status.as_u16(),
        200,
        "a refused change makes no gateway unready"
    );
    serde_json::from_slice(&body).unwrap()
}

/// Waits until one more change came to this.
async fn reload(gateway: &Gateway, result: &str, before: i64) {
    let what = format!("a reload that is {result}, after {before}");
    until(&what, || async { reloads(gateway, result).await > before }).await;
}

/// Delivers until it is told to stop; how many were accepted.
async fn deliver(
    to: Connection,
    sender: usize,
    stop: Arc<AtomicBool>,
    all: Arc<AtomicUsize>,
) -> usize {
    let mut to = to;
    let mut accepted = 0;
    while !stop.load(Ordering::SeqCst) {
        let id = format!("{sender}-{accepted}");
        let answer = to.deliver(&signed(&id, true)).await.unwrap();
        assert_eq!(answer.status, 401, "{id}, with the signatures exchanged");
        let answer = to.deliver(&signed(&id, false)).await.unwrap();
        assert_eq!(answer.status, 202, "{id}");
        accepted += 1;
        all.fetch_add(2, Ordering::SeqCst);
    }
    accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_swaps_under_load_fail_no_delivery_and_judge_none_wrongly() {
    let at = site("20ms");
    let path = |name: &str| at.path().join(name);
    let gateway = Gateway::start(at.path(), &[]).await.unwrap();
    let (stop, all) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let senders: Vec<_> = (0..SENDERS)
        .map(|n| {
            let to = Connection::to(gateway.ingress);
            tokio::spawn(deliver(to, n, Arc::clone(&stop), Arc::clone(&all)))
        })
        .collect();
    for n in 1..=SWAPS {
        let result = if n % 5 == 3 { "refused" } else { "taken" };
        let (before, delivered) = (reloads(&gateway, result).await, all.load(Ordering::SeqCst));
        match n % 5 {
            0 => replace(&path("plugins/hmac.wasm"), variant(n)),
            1 => replace(&path("hookgate.toml"), version(n / 5 + 1, "20ms")),
            2 => directory(at.path(), n, &variant(n)),
            // Half written, in place, and mended by the next.
            3 => fs::write(path("plugins/hmac.wasm"), &variant(n)[..4_000]).unwrap(),
            _ => fs::write(path("plugins/hmac.wasm"), variant(n)).unwrap(),
        }
        // Some at once, the others when they are found.
        if n % 3 == 0 {
            gateway.signal(Signal::HUP).unwrap();
        }
        reload(&gateway, result, before).await;
        let moved = || async { all.load(Ordering::SeqCst) >= delivered + SENDERS };
        until("deliveries between two swaps", moved).await;
    }
    stop.store(true, Ordering::SeqCst);
    let mut accepted = 0;
    for sender in senders {
        accepted += sender.await.unwrap();
    }
    assert_eq!(gateway.events().await.unwrap().len(), accepted);
    assert!(accepted > SWAPS, "{accepted} deliveries are no load");
    println!(
        "{SWAPS} swaps, {} deliveries, {accepted} accepted",
        all.load(Ordering::SeqCst)
    );
}

#[tokio::test]
async fn a_broken_plugin_dropped_in_changes_nothing_and_says_why() -> io::Result<()> {
    let at = site("20ms");
    let gateway = Gateway::start(at.path(), &[]).await.unwrap();
    assert_eq!(readyz(&gateway).await["refused_change"], Value::Null);
    fs::write(at.path().join("plugins/acme.wasm"), "not a component")?;
    reload(&gateway, "refused", 0).await;
    assert_eq!(gateway.metric("hookgate_reload_refused").await?, 1);
    let why = readyz(&gateway).await["refused_change"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        why.contains("plugins/acme.wasm is refused: it is not WebAssembly"),
        "{why}"
    );
    let mut to = Connection::to(gateway.ingress);
    assert_eq!(to.deliver(&signed("1", false)).await?.status, 202);
    fs::remove_file(at.path().join("plugins/acme.wasm"))?;
    reload(&gateway, "taken", 0).await;
    assert_eq!(readyz(&gateway).await["refused_change"], Value::Null);
    assert_eq!(gateway.metric("hookgate_reload_refused").await?, 0);
    gateway.terminate().await?;
    let log = fs::read_to_string(at.path().join("log"))?;
    assert!(log.contains("what was before holds"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_plugin_that_is_in_use_and_goes_and_a_configuration_with_a_mistake_are_refused()
-> io::Result<()> {
    let at = site("0s");
    let gateway = Gateway::start(at.path(), &[]).await.unwrap();
    let file = at.path().join("hookgate.toml");
    let mut refused = 0;
    let mut why = async |what: &str| {
        gateway.signal(Signal::HUP).unwrap();
        reload(&gateway, "refused", refused).await;
        refused += 1;
        let why = readyz(&gateway).await["refused_change"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(why.contains(what), "{why}");
        let id = format!("{refused}");
        let answer = Connection::to(gateway.ingress)
            .deliver(&signed(&id, false))
            .await
            .unwrap();
        assert_eq!(answer.status, 202, "{what}");
    };
    fs::rename(at.path().join("plugins/hmac.wasm"), at.path().join("away"))?;
    why("/acme/orders: ").await;
    fs::rename(at.path().join("away"), at.path().join("plugins/hmac.wasm"))?;
    fs::write(&file, version(0, "0s").replace("options.id", "optoins.id"))?;
    why("unknown key").await;
    fs::remove_file(at.path().join("key0"))?;
    fs::write(&file, version(0, "0s"))?;
    why("key0").await;
    fs::write(at.path().join("key0"), KEYS[0])?;
    let watch = "watch = \"0s\"\n";
    let pinned = format!("{watch}pinned.hmac = \"{}\"\n", "0".repeat(64));
    fs::write(&file, version(0, "0s").replace(watch, &pinned))?;
    why("is pinned to 0000").await;
    Ok(())
}

#[tokio::test]
async fn a_rotated_secret_a_new_source_and_a_source_that_is_gone_take_effect() -> io::Result<()> {
    let at = site("20ms");
    let gateway = Gateway::start(at.path(), &[]).await.unwrap();
    let mut to = Connection::to(gateway.ingress);
    assert_eq!(to.deliver(&signed("1", false)).await?.status, 202);
    replace(&at.path().join("key0"), "the key after the rotation");
    reload(&gateway, "taken", 0).await;
    assert_eq!(to.deliver(&signed("2", false)).await?.status, 401);
    fs::write(at.path().join("new"), "the secret of the new source")?;
    let more = world::orders("acme", "new", "NONE").replace("env:NONE", "file:new");
    let both = version(0, "20ms") + &more;
    replace(&at.path().join("hookgate.toml"), &both);
    reload(&gateway, "taken", 1).await;
    let new = order("acme/new", "the secret of the new source", "3", "c", "");
    assert_eq!(to.deliver(&new).await?.status, 202);
    replace(&at.path().join("hookgate.toml"), version(0, "20ms"));
    reload(&gateway, "taken", 2).await;
    assert_eq!(to.deliver(&new).await?.status, 404);
    Ok(())
}

//! The main job, shown: published and fresh signatures to the real gateway, copies, forgeries, a SIGKILL in
//! the middle, and at the end what stands in the queue. Exit code 0 if all of it is as promised, else 1.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookgate_tests::gateway::{self, Gateway};
use hookgate_tests::provider::{Answer, Connection, Signed};
use hookgate_tests::{published, sign};
use serde_json::Value;
use tokio::sync::RwLock;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const GITHUB_SECRET: &str = "a secret that only this demo knows";
const STRIPE_SECRET: &str = "whsec_demo_0123456789abcdef";
/// Events that are delivered while the gateway is killed.
const STORM: usize = 300;
/// Providers that deliver them at once.
const PROVIDERS: usize = 8;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
drain_delay = "0s"

[admin]
listen = "127.0.0.1:0"

[plugins]
directory = "PLUGINS"

[tenants.acme.sources.github]
plugin = "github"
secrets.secret = ["env:DEMO_GITHUB"]

[tenants.acme.sources.stripe]
plugin = "stripe"
secrets.secret = ["env:DEMO_STRIPE"]

[tenants.acme.sources.orders]
plugin = "hmac"
secrets.secret = ["env:DEMO_GITHUB"]
options.header = "X-Orders-Signature"
options.signed = "{timestamp}.{body}"
options.timestamp = "header:X-Orders-Timestamp"
options.id = "json:/id"
options.ordering_key = "json:/customer"
"#;

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("\nFAILED: the demo could not be run: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "a program for people")]
fn say(line: &str) {
    println!("{line}");
}

/// What was delivered, what came back, and what is expected of the queue.
#[derive(Default)]
struct Book {
    deliveries: usize,
    wrong: usize,
    /// Events that got a 2xx.
    promised: usize,
}

impl Book {
    fn row(&mut self, what: &str, verdict: &str, answer: &Answer, expected: &[u16]) {
        let fits = expected.contains(&answer.status);
        self.deliveries += 1;
        self.wrong += usize::from(!fits);
        self.promised += usize::from(answer.status == 202);
        let mark = if fits { "" } else { "  <-- unexpected" };
        say(&format!(
            "  {what:<58} {verdict:<22} {}{mark}",
            answer.status
        ));
    }

    fn check(&mut self, what: &str, holds: bool) {
        self.wrong += usize::from(!holds);
        say(&format!("  {} {what}", if holds { "yes" } else { "NO " }));
    }
}

fn verdict(answer: &Answer) -> &'static str {
    match answer.status {
        202 => "accepted",
        200 if answer.duplicate => "duplicate, same answer",
        200 => "answered",
        400 => "malformed",
        401 => "refused",
        413 => "larger than a message",
        204 => "accepted, no content",
        503 => "come again",
        _ => "?",
    }
}

async fn demo() -> Result<bool, Failure> {
    let directory = tempfile::tempdir()?;
    let published = configure(directory.path())?;
    let environment = [
        ("DEMO_GITHUB", GITHUB_SECRET),
        ("DEMO_STRIPE", STRIPE_SECRET),
    ];
    let gateway = Gateway::start(directory.path(), &environment).await?;
    say(
        "Hookgate on this machine: embedded store and queue, every 2xx durable before it is sent.\n",
    );
    say(&format!("  {:<58} {:<22} status", "delivery", "verdict"));
    let mut book = Book::default();
    let mut connection = Connection::to(gateway.ingress);
    deliver_published(&mut book, &mut connection, &published).await?;
    deliver_fresh(&mut book, &mut connection).await?;
    deliver_copies(&mut book, gateway.ingress).await?;
    let (gateway, storm) = storm(&mut book, gateway, directory.path(), &environment).await?;
    show_queue(&mut book, &gateway, &storm).await?;
    gateway.terminate().await?;
    let good = book.wrong == 0;
    say(&if good {
        format!(
            "\nOK: {} deliveries answered as they should be; {} events promised with a 2xx, each in the \
             queue exactly once, in order, over a SIGKILL.",
            book.deliveries, book.promised
        )
    } else {
        format!(
            "\nFAILED: {} things are not as they should be; see above.",
            book.wrong
        )
    });
    Ok(good)
}

fn configure(directory: &Path) -> Result<Vec<published::Published>, Failure> {
    let plugins = gateway::plugins();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut config = CONFIG.replace("PLUGINS", &plugins.canonicalize()?.to_string_lossy());
    let mut all = Vec::new();
    for plugin in published::plugins(&sources)? {
        all.extend(published::load(
            &sources,
            &plugin,
            &directory.join("secrets"),
        )?);
    }
    for published in &all {
        config.push('\n');
        config.push_str(&published.config);
    }
    std::fs::write(directory.join("hookgate.toml"), config)?;
    Ok(all)
}

async fn deliver_published(
    book: &mut Book,
    connection: &mut Connection,
    published: &[published::Published],
) -> Result<(), Failure> {
    say(
        "signatures as providers sent them, many published by the providers (max_age raised for their old timestamps)",
    );
    say(&format!(
        "  {:<22} {:>14} {:>14} {:>24}",
        "plugin", "accepted", "answered", "forged, stale: refused"
    ));
    let mut tally = BTreeMap::<&str, [Tally; 3]>::new();
    for vector in published {
        let answer = connection.deliver(&vector.delivery).await?;
        let kind = match (vector.valid, vector.is_event) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
        let fits = match vector.valid {
            true if vector.too_large => answer.status == 413,
            true => answer.is_promise(),
            false => [400, 401, 405, 415].contains(&answer.status),
        };
        if !fits {
            say(&format!(
                "  {}: {} {}  <-- unexpected",
                vector.title,
                verdict(&answer),
                answer.status
            ));
        }
        tally.entry(&vector.plugin).or_default()[kind].add(fits);
        book.deliveries += 1;
        book.wrong += usize::from(!fits);
        book.promised += usize::from(vector.valid && vector.is_event && answer.is_promise());
    }
    for (plugin, [accepted, answered, refused]) in &tally {
        say(&format!(
            "  {plugin:<22} {:>14} {:>14} {:>24}",
            accepted.text(),
            answered.text(),
            refused.text()
        ));
    }
    Ok(())
}

/// How many came out as they should, of how many.
#[derive(Default)]
struct Tally(usize, usize);

impl Tally {
    fn add(&mut self, fits: bool) {
        self.0 += usize::from(fits);
        self.1 += 1;
    }

    fn text(&self) -> String {
        match self {
            Self(_, 0) => String::new(),
            Self(good, all) => format!("{good} of {all}"),
        }
    }
}

fn now() -> u64 {
    #[allow(
        clippy::disallowed_methods,
        reason = "a provider signs with the real time"
    )]
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs())
}

fn orders(id: &str, customer: &str, at: u64) -> Signed {
    let body =
        format!(r#"{{"id":"{id}","customer":"{customer}","total":100.50,"note":"caf\u00e9"}}"#);
    let at = at.to_string();
    let signature = sign::hmac_sha256_hex(GITHUB_SECRET, &[at.as_bytes(), b".", body.as_bytes()]);
    let headers = [
        ("X-Orders-Timestamp", at.as_str()),
        ("X-Orders-Signature", &signature),
    ];
    Signed::post("acme/orders", &headers, body)
}

async fn deliver_fresh(book: &mut Book, connection: &mut Connection) -> Result<(), Failure> {
    say("fresh signatures (default tolerance of 300 s)");
    let issue = r#"{"action":"opened","repository":{"id":7}}"#;
    let github = sign::github("acme/github", GITHUB_SECRET, "0a4c-1", issue);
    let event =
        r#"{"id":"evt_1","type":"invoice.paid","created":1,"data":{"object":{"id":"in_1"}}}"#;
    let stripe = sign::stripe("acme/stripe", STRIPE_SECRET, now(), event);
    let order = orders("o-1", "c-1", now());
    let mut first = HashMap::new();
    for (name, delivery) in [
        ("github", &github),
        ("stripe", &stripe),
        ("hmac by options", &order),
    ] {
        let answer = connection.deliver(delivery).await?;
        book.row(name, verdict(&answer), &answer, &[202]);
        first.insert(name, answer.body);
    }
    for (name, delivery) in [
        ("github", &github),
        ("stripe", &stripe),
        ("hmac by options", &order),
    ] {
        let answer = connection.deliver(delivery).await?;
        let same = first.get(name) == Some(&answer.body) && answer.duplicate;
        let title = format!("{name}, delivered again");
        book.row(
            &title,
            verdict(&answer),
            &answer,
            if same { &[200] } else { &[] },
        );
    }
    let mut tampered = github.clone();
    tampered.body = issue.replace("opened", "closed").into();
    let answer = connection.deliver(&tampered).await?;
    book.row(
        "github, body tampered with",
        verdict(&answer),
        &answer,
        &[401],
    );
    for (name, at) in [
        ("replayed 10 minutes later", now() - 600),
        ("from the future", now() + 600),
    ] {
        let answer = connection.deliver(&orders("o-2", "c-1", at)).await?;
        book.row(
            &format!("hmac by options, {name}"),
            verdict(&answer),
            &answer,
            &[401],
        );
    }
    Ok(())
}

async fn deliver_copies(book: &mut Book, ingress: std::net::SocketAddr) -> Result<(), Failure> {
    let delivery = orders("o-3", "c-1", now());
    let mut copies = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let delivery = delivery.clone();
        copies.spawn(async move { Connection::to(ingress).deliver(&delivery).await });
    }
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    while let Some(answer) = copies.join_next().await {
        *statuses.entry(answer??.status).or_default() += 1;
    }
    let fits = statuses == BTreeMap::from([(200, 31), (202, 1)]);
    book.deliveries += 32;
    book.promised += 1;
    book.wrong += usize::from(!fits);
    let statuses: Vec<_> = statuses
        .iter()
        .map(|(status, n)| format!("{n} x {status}"))
        .collect();
    say(&format!(
        "  {:<58} {:<22} {}",
        "hmac by options, 32 copies at once",
        "one message",
        statuses.join(", ")
    ));
    Ok(())
}

/// What every event of the storm got, in the order that each provider sent its own.
type Storm = Vec<Vec<String>>;

/// Providers that deliver and retry while the gateway is killed and started again.
async fn storm(
    book: &mut Book,
    gateway: Gateway,
    directory: &Path,
    environment: &[(&str, &str)],
) -> Result<(Gateway, Storm), Failure> {
    let ingress = Arc::new(RwLock::new(gateway.ingress));
    let promised = Arc::new(AtomicUsize::new(0));
    let retries = Arc::new(AtomicUsize::new(0));
    let mut providers = tokio::task::JoinSet::new();
    for provider in 0..PROVIDERS {
        let ingress = Arc::clone(&ingress);
        let (promised, retries) = (Arc::clone(&promised), Arc::clone(&retries));
        providers.spawn(async move {
            let mut sent = Vec::new();
            for n in 0..STORM / PROVIDERS {
                let id = format!("storm-{provider}-{n}");
                let delivery = orders(&id, &format!("customer-{provider}"), now());
                while !is_promised(&delivery, &ingress).await {
                    retries.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                promised.fetch_add(1, Ordering::SeqCst);
                sent.push(id);
            }
            (provider, sent)
        });
    }
    while promised.load(Ordering::SeqCst) < STORM / 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = promised.load(Ordering::SeqCst);
    gateway.kill().await?;
    let gateway = Gateway::start(directory, environment).await?;
    *ingress.write().await = gateway.ingress;
    let mut storm = vec![Vec::new(); PROVIDERS];
    while let Some(done) = providers.join_next().await {
        let (provider, sent) = done?;
        storm[provider] = sent;
    }
    let total: usize = storm.iter().map(Vec::len).sum();
    book.deliveries += total;
    book.promised += total;
    say(&format!(
        "SIGKILL in the middle of {total} more from {PROVIDERS} providers at once: {before} promised before it, \
         {} after, {} retries",
        total - before,
        retries.load(Ordering::SeqCst)
    ));
    Ok((gateway, storm))
}

/// One attempt, as a provider sees it: only a whole 2xx counts.
async fn is_promised(delivery: &Signed, ingress: &RwLock<std::net::SocketAddr>) -> bool {
    let address = *ingress.read().await;
    let answer = Connection::to(address).deliver(delivery).await;
    answer.is_ok_and(|answer| answer.is_promise())
}

async fn show_queue(book: &mut Book, gateway: &Gateway, storm: &Storm) -> Result<(), Failure> {
    let events = gateway.events().await?;
    let attribute = |event: &Value, name: &str| {
        event["attributes"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut by_source: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut times: HashMap<(String, String), usize> = HashMap::new();
    for event in &events {
        let (source, id) = (attribute(event, "ce-source"), attribute(event, "ce-id"));
        *times.entry((source.clone(), id.clone())).or_default() += 1;
        by_source.entry(source).or_default().push(id);
    }
    say("\nthe queue");
    say(&format!(
        "  {:<28} {:>8}  first and last event",
        "source", "messages"
    ));
    let published = by_source
        .range("/published".to_owned()..)
        .map(|(_, ids)| ids.len())
        .sum::<usize>();
    for (source, ids) in by_source
        .iter()
        .filter(|(source, _)| !source.starts_with("/published"))
    {
        let (first, last) = (&ids[0], &ids[ids.len() - 1]);
        say(&format!(
            "  {source:<28} {:>8}  {first:.24} .. {last:.24}",
            ids.len()
        ));
    }
    say(&format!(
        "  {:<28} {published:>8}",
        "/published/* (each its own)"
    ));
    say("\nis every promise kept?");
    book.check("every event once", times.values().all(|times| *times == 1));
    book.check(
        &format!("as many messages as promises ({})", book.promised),
        events.len() == book.promised,
    );
    let orders = by_source.get("/acme/orders").cloned().unwrap_or_default();
    let in_order = storm.iter().enumerate().all(|(provider, sent)| {
        let prefix = format!("storm-{provider}-");
        let held: Vec<_> = orders.iter().filter(|id| id.starts_with(&prefix)).collect();
        held.len() == sent.len() && held.iter().zip(sent).all(|(held, sent)| *held == sent)
    });
    book.check("each provider's events in the order of their 2xx", in_order);
    Ok(())
}

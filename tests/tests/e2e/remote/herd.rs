//! More than the queue takes: what is acknowledged is queued, known events are answered as ever, everybody else
//! is told to come later, memory stays bounded, and afterwards all is as before.
//!
//! `HERD_SECONDS=60` runs longer than every day.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hookgate::http::client;
use hookgate_backends::aws::Aws;
use hookgate_backends::proxy::{Fault, Plan};
use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::Connection;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::site::{Kind, Message, Paths, Site};
use crate::world;

/// Connections that are never idle.
const CONNECTIONS: usize = 100;

/// What a gateway may take beyond what it has when it is warm.
const MORE_MEMORY: usize = 64 << 20;

const PRESSURE: &str = "\n[queue.pressure]\nhigh_water = 300\nlow_water = 200\npoll = \"100ms\"\n";

/// What deliveries were told, by status.
type Told = BTreeMap<u16, usize>;

/// When the herd has run for long enough: so long, and more than ten times was offered of
/// what was accepted.
struct Run {
    until: Instant,
    offered: AtomicUsize,
    accepted: AtomicUsize,
}

impl Run {
    fn goes_on(&self) -> bool {
        let [offered, accepted] =
            [&self.offered, &self.accepted].map(|n| n.load(Ordering::Relaxed));
        let now = Instant::now();
        now < self.until || (offered < 11 * accepted && now < self.until + world::DEADLINE)
    }
}

/// A consumer that is slow: what it takes makes room now and then.
async fn consume(site: Arc<Site>, run: Arc<Run>) -> Vec<Message> {
    let mut taken = Vec::new();
    while run.goes_on() {
        taken.extend(site.take(5).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    taken
}

/// What one connection saw.
#[derive(Default)]
struct Herd {
    new: Told,
    known: Told,
    accepted: Vec<String>,
}

impl Herd {
    fn add(&mut self, other: Self) {
        for (sum, more) in [(&mut self.new, other.new), (&mut self.known, other.known)] {
            for (status, times) in more {
                *sum.entry(status).or_default() += times;
            }
        }
        self.accepted.extend(other.accepted);
    }
}

fn narrow(site: &Site, paths: &Paths) -> TempDir {
    let directory = site.directory(paths, PRESSURE);
    let file = directory.path().join("hookgate.toml");
    let config = std::fs::read_to_string(&file).expect("the configuration");
    let config = config.replace("[server]\n", "[server]\nmemory_budget = \"8MiB\"\n");
    std::fs::write(&file, config).expect("it is written");
    directory
}

/// Delivers without a pause: events that nobody knows, and now and then one that was accepted.
async fn stampede(site: Arc<Site>, gateway: SocketAddr, number: usize, run: Arc<Run>) -> Herd {
    let (mut herd, mut connection) = (Herd::default(), Connection::to(gateway));
    let mut rng = Rng::with_seed(number as u64);
    for event in 0.. {
        if !run.goes_on() {
            break;
        }
        let known = rng
            .choice(&herd.accepted)
            .filter(|_| rng.u8(0..4) == 0)
            .cloned();
        let id = known
            .clone()
            .unwrap_or_else(|| format!("event-{number}-{event}"));
        let answer = connection.deliver(&site.order(&id, &id)).await;
        let answer = answer.expect("nobody is cut off");
        let fits = match answer.status {
            202 => known.is_none(),
            200 => known.is_some() && answer.duplicate,
            // Nobody who is known is overload.
            429 => known.is_none() && answer.retry_after.is_some(),
            503 => answer.retry_after.is_some(),
            _ => false,
        };
        assert!(fits, "{id}, known {}: {answer:?}", known.is_some());
        let told = if known.is_some() {
            &mut herd.known
        } else {
            &mut herd.new
        };
        *told.entry(answer.status).or_default() += 1;
        run.offered
            .fetch_add(usize::from(known.is_none()), Ordering::Relaxed);
        if answer.status == 202 {
            run.accepted.fetch_add(1, Ordering::Relaxed);
            herd.accepted.push(id);
        }
    }
    herd
}

async fn pressure(gateway: &Gateway) -> String {
    let answer = client::get(gateway.admin, "/readyz").await;
    let ready: Value = serde_json::from_slice(&answer.expect("an answer").1).expect("JSON");
    ready["pressure"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_the_queue_takes_is_told_to_come_later_and_nothing_acknowledged_is_lost() {
    let seconds = std::env::var("HERD_SECONDS").map_or(3, |text| text.parse().expect("a number"));
    let aws = Aws::start().unwrap_or_else(|error| panic!("{error}"));
    let site = Arc::new(Site::at(Kind::Redis, &aws).await);
    let member = site.member_in(narrow(&site, &site.direct()), "").await;
    assert_eq!(
        member.deliver(&site.order("warm", "warm")).await.status,
        202
    );
    let before = member.gateway.memory().expect("its memory");
    let run = Arc::new(Run {
        until: Instant::now() + Duration::from_secs(seconds),
        offered: AtomicUsize::new(0),
        accepted: AtomicUsize::new(0),
    });
    let consumer = tokio::spawn(consume(Arc::clone(&site), Arc::clone(&run)));
    let mut all = JoinSet::new();
    for number in 0..CONNECTIONS {
        let (site, run) = (Arc::clone(&site), Arc::clone(&run));
        all.spawn(stampede(site, member.gateway.ingress, number, run));
    }
    let (mut herd, mut most) = (Herd::default(), before);
    while !all.is_empty() {
        if let Ok(Some(one)) = timeout(Duration::from_millis(50), all.join_next()).await {
            herd.add(one.unwrap_or_else(|panic| panic!("{panic}")));
        }
        most = most.max(member.gateway.memory().expect("its memory"));
    }
    let more = most - before;
    eprintln!(
        "{seconds} s: new {:?}, known {:?}, {more} bytes more",
        herd.new, herd.known
    );
    let offered: usize = herd.new.values().sum();
    assert!(
        offered >= 10 * herd.accepted.len(),
        "no herd: {:?}",
        herd.new
    );
    assert!(
        herd.new.get(&429).is_some_and(|told| *told > 0),
        "{:?}",
        herd.new
    );
    let known: usize = herd.known.values().sum();
    let recognised = herd.known.get(&200).copied().unwrap_or_default();
    assert!(
        known > 0 && recognised * 10 >= known * 9,
        "{:?}",
        herd.known
    );
    assert!(more < MORE_MEMORY, "{more} bytes more than before");

    let mut held = consumer.await.expect("the consumer");
    held.extend(site.messages().await);
    world::until("there is room again", async || {
        pressure(&member.gateway).await == "open"
    })
    .await;
    let after = member.deliver(&site.order("after", "after")).await;
    assert_eq!(after.status, 202, "{after:?}");
    queued_once(
        &herd.accepted,
        held.iter().map(|message| message.id.as_str()),
    );
}

fn queued_once<'a>(accepted: &[String], held: impl Iterator<Item = &'a str>) {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for id in held {
        *times.entry(id).or_default() += 1;
    }
    let lost: Vec<_> = accepted
        .iter()
        .filter(|id| !times.contains_key(id.as_str()))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let doubled: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
}

/// Events of each kind.
const EVENTS: usize = 60;

/// Deliveries of each event that come at once when the queue is back.
const COPIES: usize = 3;

async fn until_promised(site: &Site, to: SocketAddr, id: &str) -> bool {
    let mut connection = Connection::to(to);
    let started = Instant::now();
    loop {
        let answer = connection
            .deliver(&site.letter(id, id))
            .await
            .expect("nobody is cut off");
        if answer.is_promise() {
            return answer.duplicate;
        }
        assert!(
            answer.retry_after.is_some() && started.elapsed() < world::DEADLINE,
            "{answer:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// All of them at once; whether each answer was a duplicate's.
async fn all_at_once(site: &Arc<Site>, to: SocketAddr, ids: &[String]) -> Vec<(String, bool)> {
    let mut all = JoinSet::new();
    for id in ids {
        let (site, id) = (Arc::clone(site), id.clone());
        all.spawn(async move { (id.clone(), until_promised(&site, to, &id).await) });
    }
    all.join_all().await
}

async fn herd_after_an_outage(kind: Kind) {
    let site = Arc::new(Site::new(kind).await);
    let proxies = site.proxies().await;
    let member = site.member(&proxies.paths(), "").await;
    let ids = |what: &str| -> Vec<_> { (0..EVENTS).map(|n| format!("{what}-{n}")).collect() };
    let (settled, lapsed) = (ids("settled"), ids("lapsed"));
    all_at_once(&site, member.gateway.ingress, &settled).await;

    // Half of what is sent now arrives, and nobody learns which.
    let outage = [(0.5, Fault::CutBefore), (0.5, Fault::CutAfter)];
    proxies.break_queue(Plan::random(7, outage));
    let mut all = JoinSet::new();
    for id in &lapsed {
        let (site, to, id) = (Arc::clone(&site), member.gateway.ingress, id.clone());
        all.spawn(async move {
            super::site::deliver(to, &site.letter(&id, &id))
                .await
                .status
        });
    }
    let told = all.join_all().await;
    assert!(
        told.iter().all(|status| *status == 503),
        "{kind:?}: {told:?}"
    );
    member.gateway.kill().await.expect("it is killed");

    let next = site.member(&site.direct(), "").await;
    let before = next.gateway.memory().expect("its memory");
    let both = || settled.iter().chain(&lapsed).cloned();
    let everything: Vec<_> = (0..COPIES).flat_map(|_| both()).collect();
    let answers = all_at_once(&site, next.gateway.ingress, &everything).await;
    let more = next
        .gateway
        .memory()
        .expect("its memory")
        .saturating_sub(before);
    assert!(
        more < MORE_MEMORY,
        "{kind:?}: {more} bytes more than before"
    );
    let firsts: Vec<_> = answers.iter().filter(|(_, duplicate)| !duplicate).collect();
    let of: HashSet<_> = firsts.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(firsts.len(), of.len(), "{kind:?}: one 202 each");
    assert!(
        of.iter().all(|id| id.starts_with("lapsed")),
        "{kind:?}: {of:?}"
    );
    let held = site.messages().await;
    queued_once(&everything, held.iter().map(|message| message.id.as_str()));
    assert_eq!(held.len(), 2 * EVENTS, "{kind:?}");
}

#[tokio::test]
async fn a_herd_after_an_outage_of_duplicates_and_lapsed_claims_is_queued_once() {
    for kind in Kind::PROXIED {
        herd_after_an_outage(kind).await;
    }
}

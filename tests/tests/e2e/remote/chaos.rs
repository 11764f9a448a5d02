//! Gateways that share a claim store and a queue are killed at every step and at any moment, each with faults
//! of its own between it and its backends, while providers deliver, give up, come again and go elsewhere.
//!
//! A run lasts seconds and the queue remembers for 300, so exactly once means exactly once. A run is one seed:
//! `CHAOS_REMOTE_SEEDS=50 CHAOS_REMOTE_FROM=1000` runs others than the everyday ones.

mod plan;
mod providers;
mod verdict;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate_backends::proxy::Fault;
use hookgate_tests::gateway::Gateway;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::site::{Proxies, Site};
use plan::{Death, FAIL_POINTS, Plan};
use providers::Providers;
use verdict::Verdict;

/// Everyday runs: each fail point kills first in one of them.
const SEEDS: u64 = 10;

/// Runs at once: most of a run's time is waiting.
const AT_ONCE: usize = 6;

/// How long one run may take.
const DEADLINE: Duration = Duration::from_mins(3);

/// What happened, over all runs.
#[derive(Debug, Default)]
struct Tally {
    events: usize,
    deliveries: usize,
    promises: usize,
    ordered_pairs: usize,
    lost: usize,
    doubled: usize,
    deaths: BTreeMap<&'static str, usize>,
    faults: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.promises += other.promises;
        self.ordered_pairs += other.ordered_pairs;
        self.lost += other.lost;
        self.doubled += other.doubled;
        for (sum, more) in [
            (&mut self.deaths, &other.deaths),
            (&mut self.faults, &other.faults),
        ] {
            for (what, times) in more {
                *sum.entry(what).or_default() += times;
            }
        }
    }
}

fn chosen(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number"))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_breaks_every_acknowledged_event_is_queued_once_and_in_order() {
    let from = chosen("CHAOS_REMOTE_FROM", 0);
    let seeds = chosen("CHAOS_REMOTE_SEEDS", SEEDS);
    let started = Instant::now();
    let mut left = from..from + seeds;
    let mut runs = JoinSet::new();
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    loop {
        while runs.len() < AT_ONCE
            && let Some(seed) = left.next()
        {
            runs.spawn(reported(seed));
        }
        match runs.join_next().await {
            Some(Ok((run, wrong))) => {
                tally.add(&run);
                failures.extend(wrong);
            }
            Some(Err(panic)) => failures.push(panic.to_string()),
            None => break,
        }
    }
    eprintln!(
        "{seeds} runs from seed {from} in {:?}: {tally:?}",
        started.elapsed()
    );
    crate::world::tell_tally([tally.deliveries, tally.lost, tally.doubled]);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(
        tally.ordered_pairs as u64 >= seeds,
        "the runs show nothing of order: {tally:?}"
    );
    assert!(tally.faults.len() >= 5, "too little was broken: {tally:?}");
    for place in FAIL_POINTS {
        let killed = tally.deaths.contains_key(place);
        // A step that is rare may be missed by a few runs.
        assert!(killed || seeds < 30, "{place} never killed: {tally:?}");
    }
    assert!(!tally.deaths.is_empty(), "nobody died: {tally:?}");
}

/// A run, and what went wrong in it with how to repeat it.
async fn reported(seed: u64) -> (Tally, Option<String>) {
    let plan = Plan::of(seed);
    let deaths = format!("{:?} {:?}", plan.kind, plan.deaths);
    let mut tally = Tally::default();
    let wrong = match tokio::time::timeout(DEADLINE, run(plan, &mut tally)).await {
        Ok(wrong) => wrong,
        Err(_) => vec![format!("it was not over in {DEADLINE:?}")],
    };
    let failure = (!wrong.is_empty()).then(|| {
        format!(
            "seed {seed}: {}\n  plan: {deaths}\n  again: CHAOS_REMOTE_FROM={seed} CHAOS_REMOTE_SEEDS=1 cargo \
             test -p hookgate-tests --test e2e remote::chaos -- --nocapture",
            wrong.join("\n  ")
        )
    });
    (tally, failure)
}

async fn run(plan: Plan, tally: &mut Tally) -> Vec<String> {
    let site = Arc::new(Site::new(plan.kind).await);
    let (deaths, seed) = (plan.deaths.clone(), plan.seed);
    let providers = Arc::new(Providers::new(plan, Arc::clone(&site)));
    let (over, is_over) = watch::channel(false);
    let mut lives = JoinSet::new();
    for (number, deaths) in deaths.into_iter().enumerate() {
        let proxies = site.proxies().await;
        let directory = site.directory(&proxies.paths(), "");
        let slot = Slot {
            site: Arc::clone(&site),
            providers: Arc::clone(&providers),
            number,
            seed: seed * 10 + number as u64,
            proxies,
            directory,
        };
        lives.spawn(slot.live(deaths, is_over.clone()));
    }
    let mut wrong = providers.deliver_everything().await;
    over.send_replace(true);
    while let Some(life) = lives.join_next().await {
        match life {
            Ok(life) => {
                tally.add(&life.tally);
                wrong.extend(
                    life.wrong.map(|what| {
                        format!("{what}\n  log in {}", life.directory.keep().display())
                    }),
                );
            }
            Err(panic) => wrong.push(panic.to_string()),
        }
    }
    wrong.extend(judge(&site, &providers, tally).await);
    wrong
}

/// Delivers everything once more to a gateway that nothing is wrong with, and looks into the queue.
async fn judge(site: &Site, providers: &Arc<Providers>, tally: &mut Tally) -> Vec<String> {
    let last = site.member(&site.direct(), "").await;
    let mut wrong = providers.deliver_again(last.gateway.ingress).await;
    if let Err(error) = last.gateway.terminate().await {
        wrong.push(error.to_string());
    }
    let messages = site.messages().await;
    let events = providers.plan.events.iter();
    let events: Vec<_> = events
        .map(|event| (event.clone(), event.signed(site).body))
        .collect();
    let verdict = Verdict::of(&events, &providers.seen(), &messages);
    tally.events += providers.plan.events.len();
    tally.deliveries += providers.deliveries();
    tally.promises += providers
        .seen()
        .iter()
        .map(|seen| seen.promises)
        .sum::<usize>();
    tally.ordered_pairs += verdict.ordered_pairs;
    tally.lost += verdict.lost;
    tally.doubled += verdict.doubled;
    wrong.extend(verdict.wrong);
    wrong
}

/// A place where one gateway lives after the other, behind proxies of its own.
struct Slot {
    site: Arc<Site>,
    providers: Arc<Providers>,
    number: usize,
    seed: u64,
    proxies: Proxies,
    directory: TempDir,
}

/// What became of them.
struct Lived {
    tally: Tally,
    wrong: Option<String>,
    directory: TempDir,
}

impl Slot {
    async fn live(self, deaths: Vec<Death>, over: watch::Receiver<bool>) -> Lived {
        let mut tally = Tally::default();
        let wrong = self
            .die_again_and_again(deaths, over, &mut tally)
            .await
            .err();
        for fired in [self.proxies.aws.fired(), self.proxies.redis.fired()].concat() {
            *tally.faults.entry(name(&fired.fault)).or_default() += 1;
        }
        Lived {
            tally,
            wrong,
            directory: self.directory,
        }
    }

    async fn die_again_and_again(
        &self,
        deaths: Vec<Death>,
        mut over: watch::Receiver<bool>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let mut deaths = deaths.into_iter();
        for life in 0.. {
            let (death, seed) = (deaths.next(), self.seed << 8 | life);
            self.proxies.aws.set(plan::faults_of_aws(seed, false));
            self.proxies.redis.set(plan::faults_of_redis(seed));
            let failpoints = death.as_ref().map_or(String::new(), Death::failpoints);
            let started = self.site.serve(self.directory.path(), &failpoints).await;
            let mut gateway = started.map_err(|error| format!("no start: {error}"))?;
            self.proxies.aws.set(plan::faults_of_aws(seed, true));
            self.providers.gateways[self.number].send_replace(Some(gateway.ingress));
            let mut answers = self.providers.answers.subscribe();
            let target = match death {
                Some(Death::AfterAnswers(more)) => *answers.borrow() + more,
                _ => usize::MAX,
            };
            tokio::select! {
                status = gateway.ended() => {
                    let signal = status.as_ref().ok().and_then(ExitStatusExt::signal);
                    let Some(Death::At(place, _)) = death.filter(|_| signal == Some(9)) else {
                        return Err(format!("the gateway ended by itself: {status:?}"));
                    };
                    *tally.deaths.entry(place).or_default() += 1;
                }
                () = reaches(&mut answers, |read| *read >= target) => {
                    gateway.kill().await.map_err(|error| error.to_string())?;
                    *tally.deaths.entry("sigkill").or_default() += 1;
                }
                () = reaches(&mut over, |over| *over) => return self.end(gateway).await,
            }
        }
        Ok(())
    }

    /// Half of the last ones are told to stop, the others are killed.
    async fn end(&self, gateway: Gateway) -> Result<(), String> {
        let is_told = self.seed.is_multiple_of(2);
        let ended = match is_told {
            true => gateway.terminate().await,
            false => gateway.kill().await,
        };
        let status = ended.map_err(|error| error.to_string())?;
        // At a fail point that was not reached before it may still fall.
        match status.success() || status.signal() == Some(9) {
            true => Ok(()),
            false => Err(format!("told to stop, the gateway ended with {status}")),
        }
    }
}

/// Waits for it, and holds no lock afterwards.
async fn reaches<T>(channel: &mut watch::Receiver<T>, is_it: impl FnMut(&T) -> bool) {
    let _ = channel.wait_for(is_it).await;
}

fn name(fault: &Fault) -> &'static str {
    match fault {
        Fault::None => "none",
        Fault::Refuse => "refuse",
        Fault::Delay(_) => "delay",
        Fault::CutBefore => "cut before",
        Fault::CutAfter => "cut after it was applied",
        Fault::Blackhole => "blackhole",
        Fault::Answer(_) => "error",
    }
}

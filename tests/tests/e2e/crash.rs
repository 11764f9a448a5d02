//! The gateway is killed before, inside and after its commits, between the bytes of its answers, and at any
//! other time, while providers deliver and retry. No promise may be broken by it.
//!
//! A run is one seed. `CHAOS_SEEDS=300 CHAOS_FROM=1000` runs others than the everyday ones. A SIGKILL loses
//! what the process held, not what the kernel holds: that syncs reach the disk is not shown here.

mod check;
mod plan;
mod provider;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate_tests::gateway::{self, Gateway};
use tokio::task::JoinSet;

use check::Message;
use plan::{Death, FAIL_POINTS, Plan};
use provider::{Line, Providers};

use crate::world;

/// Everyday runs.
const SEEDS: u64 = 60;

/// Runs at once: two cores, and a gateway mostly waits for its disk.
const AT_ONCE: usize = 4;

/// How long one run may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// One death by each fail point for so many runs: the least that counts.
const RUNS_PER_DEATH: u64 = 20;

/// What happened, over all runs.
#[derive(Debug, Default)]
struct Tally {
    events: usize,
    answers: usize,
    promises: usize,
    ordered_pairs: usize,
    deaths: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn died(&mut self, how: &'static str) {
        *self.deaths.entry(how).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.answers += other.answers;
        self.promises += other.promises;
        self.ordered_pairs += other.ordered_pairs;
        for (how, times) in &other.deaths {
            *self.deaths.entry(how).or_default() += times;
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
async fn no_promise_is_broken_wherever_the_gateway_is_killed() {
    let (from, seeds) = (chosen("CHAOS_FROM", 0), chosen("CHAOS_SEEDS", SEEDS));
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
            Some(Ok(Ok(run))) => tally.add(&run),
            Some(Ok(Err(failure))) => failures.push(failure),
            Some(Err(panic)) => failures.push(panic.to_string()),
            None => break,
        }
    }
    eprintln!(
        "{seeds} runs from seed {from} in {:?}: {tally:?}",
        started.elapsed()
    );
    let told = |words: &str| {
        failures
            .iter()
            .map(|text| text.matches(words).count())
            .sum()
    };
    world::tell_tally([tally.answers, told("is LOST"), told("is in the queue ")]);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    let least = seeds / RUNS_PER_DEATH;
    for place in FAIL_POINTS.iter().chain(&["sigkill"]) {
        let deaths = tally.deaths.get(place).copied().unwrap_or_default();
        assert!(
            deaths >= least,
            "{place} killed {deaths} times in {seeds} runs: it shows nothing"
        );
    }
    assert!(
        tally.ordered_pairs as u64 >= seeds,
        "the runs show nothing of order: {tally:?}"
    );
}

/// A run, whose failure says how to repeat it.
async fn reported(seed: u64) -> Result<Tally, String> {
    let directory = world::directory();
    let result = match tokio::time::timeout(DEADLINE, run(seed, directory.path())).await {
        Ok(result) => result,
        Err(_) => Err(format!("it was not over in {DEADLINE:?}")),
    };
    result.map_err(|failure| {
        let kept = directory.keep();
        format!(
            "seed {seed}: {failure}\n  plan: {:?}\n  its database and log are kept in {}\n  again: \
             CHAOS_FROM={seed} CHAOS_SEEDS=1 cargo test -p hookgate-tests --test e2e crash -- --nocapture",
            Plan::of(seed).deaths,
            kept.display(),
        )
    })
}

async fn run(seed: u64, directory: &Path) -> Result<Tally, String> {
    let plan = Plan::of(seed);
    world::configure(directory, &plan.config()).map_err(|error| error.to_string())?;
    let providers = Arc::new(Providers::new(plan));
    let mut tally = Tally::default();
    let last = storm(&providers, directory, &mut tally).await?;
    finish(last, providers.plan.stops).await?;
    let gateway = start(directory, None).await?;
    check(&providers, &gateway, &mut tally).await?;
    finish(Some((gateway, None)), true).await?;
    Ok(tally)
}

/// A gateway, and how it is to die.
type Life = (Gateway, Option<Death>);

/// Lets providers deliver until all is acknowledged; gateways die and are started again meanwhile. The last
/// may be alive.
async fn storm(
    providers: &Arc<Providers>,
    directory: &Path,
    tally: &mut Tally,
) -> Result<Option<Life>, String> {
    let mut deaths = providers.plan.deaths.clone().into_iter();
    let mut running = providers.begin();
    loop {
        let death = deaths.next();
        let mut gateway = start(directory, death.as_ref()).await?;
        providers.address.send_replace(gateway.ingress);
        let all_done = async { while running.join_next().await.is_some() {} };
        let mut answers = providers.answers.subscribe();
        let target = match &death {
            Some(Death::AfterAnswers(more) | Death::WhileOpening(more, _)) => {
                *answers.borrow() + more
            }
            _ => usize::MAX,
        };
        tokio::select! {
            status = gateway.ended() => {
                tally.died(fell(status, death.as_ref())?);
                continue;
            }
            _ = answers.wait_for(|read| *read >= target) => {}
            () = all_done => return Ok(Some((gateway, death))),
        }
        gateway.kill().await.map_err(|error| error.to_string())?;
        tally.died("sigkill");
        if let Some(Death::WhileOpening(_, after)) = death {
            kill_while_opening(directory, after).await?;
            tally.died("while-opening");
        }
    }
}

async fn start(directory: &Path, death: Option<&Death>) -> Result<Gateway, String> {
    let environment = Plan::environment(death);
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let started = Gateway::start(directory, &environment).await;
    started.map_err(|error| format!("no start: {error}"))
}

/// Which fail point killed it. Any other end is the gateway's own.
fn fell(
    status: std::io::Result<ExitStatus>,
    death: Option<&Death>,
) -> Result<&'static str, String> {
    match (status, death) {
        (Ok(status), Some(Death::At(place, _))) if status.signal() == Some(9) => Ok(place),
        (status, _) => Err(format!("the gateway ended by itself: {status:?}")),
    }
}

async fn kill_while_opening(directory: &Path, after: u64) -> Result<(), String> {
    let mut command = gateway::command(directory);
    command.arg("serve").env("SECRET", plan::SECRET);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    tokio::time::sleep(Duration::from_micros(after)).await;
    child.kill().await.map_err(|error| error.to_string())
}

/// Ends what lives. At a fail point that was not reached before it may still fall.
async fn finish(life: Option<Life>, stops: bool) -> Result<(), String> {
    let Some((gateway, death)) = life else {
        return Ok(());
    };
    let ended = if stops {
        gateway.terminate().await
    } else {
        gateway.kill().await
    };
    let status = ended.map_err(|error| error.to_string())?;
    let killed = status.signal() == Some(9) && (!stops || matches!(death, Some(Death::At(..))));
    if killed || (stops && status.success()) {
        return Ok(());
    }
    Err(format!("told to stop, the gateway ended with {status}"))
}

/// Compares the queue with what providers saw, then delivers everything once more.
async fn check(
    providers: &Arc<Providers>,
    gateway: &Gateway,
    tally: &mut Tally,
) -> Result<(), String> {
    let events = &providers.plan.events;
    let seen = || -> Vec<_> {
        (0..events.len())
            .map(|event| providers.seen(event))
            .collect()
    };
    let before = queue(gateway).await?;
    let mut wrong = providers.wrong();
    wrong.extend(check::violations(events, &seen(), &before));
    tally.ordered_pairs += check::promised_pairs(events, &seen());
    providers.address.send_replace(gateway.ingress);
    let mut line = Line::new(Arc::clone(providers), 0);
    let mut new = 0;
    for (number, event) in events.iter().enumerate() {
        let held = before.iter().any(|message| message.is_of(event));
        let answer = line.attempt(number).await;
        new += usize::from(!held);
        if answer
            .as_ref()
            .is_none_or(|answer| !answer.is_promise() || answer.duplicate != held)
        {
            wrong.push(format!(
                "delivered again, {event:?} was answered {answer:?}"
            ));
        }
    }
    let after = queue(gateway).await?;
    if after.len() != before.len() + new || !after.starts_with(&before) {
        wrong.push("delivering everything again changed the queue".into());
    }
    wrong.extend(check::violations(events, &seen(), &after));
    wrong.dedup();
    tally.events += events.len();
    tally.answers += *providers.answers.borrow();
    tally.promises += seen().iter().map(|seen| seen.promises.len()).sum::<usize>();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n  "))
    }
}

async fn queue(gateway: &Gateway) -> Result<Vec<Message>, String> {
    let events = gateway.events().await.map_err(|error| error.to_string())?;
    Ok(events.iter().map(Message::of).collect())
}

//! Chaos over the real pipeline: two instances on one pair in memory, every backend call refused, delayed,
//! lost before or behind its effect, instances killed and stopped, providers that hang up and come again.
//!
//! A seed is a schedule. Time is tokio's, paused: it runs as fast as nothing else happens. Everything that
//! was acknowledged must be in the queue at that moment; at the end every event is there, once inside the
//! window, a second copy only behind it and with its flag, and in the order promised.
//!
//! `CHAOS_SEEDS` says how many schedules, `CHAOS_FROM` which is the first.

mod faulty;
mod provider;
mod stories;
mod world;

use std::collections::HashMap;
use std::time::Duration;

use hookgate::delivery::Message;
use hookgate::queue::Held;
use hookgate::tenants::InFlightPolicy;

use provider::Story;
use world::{Tally, WINDOW, World};

/// Schedules in the everyday suite.
const SEEDS: u64 = 400;
/// Events of one schedule.
const EVENTS: usize = 6;

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

#[test]
fn whatever_fails_nothing_is_lost_or_doubled_and_the_order_holds() {
    let (first, seeds) = (setting("CHAOS_FROM", 0), setting("CHAOS_SEEDS", SEEDS));
    let mut all = Tally::default();
    for seed in first..first + seeds {
        all.add(&schedule(seed));
    }
    println!("{seeds} schedules: {all:?}");
    if seeds >= SEEDS {
        all.has_seen_everything();
    }
}

/// Runs one schedule to its end.
fn schedule(seed: u64) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let (world, stories) = runtime.block_on(async {
        // Pauses between attempts have their share of chance.
        fastrand::seed(seed);
        let world = World::new(seed);
        let monkey = tokio::spawn(World::monkey(world.clone()));
        let events: Vec<_> = (0..EVENTS)
            .map(|n| tokio::spawn(provider::delivers(world.clone(), n)))
            .collect();
        let mut stories = Vec::new();
        for event in events {
            stories.push(
                event
                    .await
                    .unwrap_or_else(|_| panic!("seed {seed}: see above")),
            );
        }
        monkey.await.unwrap();
        // Settles, and whatever is still on its way.
        tokio::time::sleep(Duration::from_secs(20)).await;
        (world, stories)
    });
    let calls = world.calls();
    // Drops the tasks of the dead, in whatever they were doing.
    drop(runtime);
    assert_eq!(world.calls(), calls, "seed {seed}: a drop called a backend");
    let held = world.held();
    if let Err(wrong) = check(&held, &stories) {
        panic!(
            "seed {seed}: {wrong}\nrepeat: CHAOS_FROM={seed} CHAOS_SEEDS=1\n{stories:#?}\n{held:#?}"
        );
    }
    let mut tally = world.tally();
    tally.second_messages = (held.len() - stories.len()) as u64;
    tally
}

fn check(held: &[Held], stories: &[Story]) -> Result<(), String> {
    let mut copies: HashMap<&str, Vec<&Held>> = HashMap::new();
    for held in held {
        let id = held.message.attribute("ce-id").unwrap();
        copies.entry(id).or_default().push(held);
    }
    for story in stories {
        let Some(copies) = copies.get(story.id.as_str()) else {
            return Err(format!("{} is lost", story.id));
        };
        one_inside_the_window(&story.id, copies)?;
    }
    in_order(&copies, stories)
}

fn one_inside_the_window(id: &str, copies: &[&Held]) -> Result<(), String> {
    for pair in copies.windows(2) {
        let apart = Duration::from_millis(pair[1].sent_at - pair[0].sent_at);
        if apart < WINDOW {
            return Err(format!("{id} is doubled, {apart:?} apart"));
        }
        if !is_flagged(&pair[1].message) {
            return Err(format!("{id} is doubled without a flag, {apart:?} apart"));
        }
        if pair[1].message.group_id != pair[0].message.group_id {
            return Err(format!("{id} is in two groups"));
        }
    }
    Ok(())
}

fn is_flagged(message: &Message) -> bool {
    let context = message.attribute("hookgate").unwrap();
    context.contains("possible-duplicate")
}

/// If e1's 2xx was sent before e2's first request arrived, e1 precedes e2 in their group.
fn in_order(copies: &HashMap<&str, Vec<&Held>>, stories: &[Story]) -> Result<(), String> {
    for earlier in stories {
        for later in stories {
            let (one, two) = (copies[earlier.id.as_str()][0], copies[later.id.as_str()][0]);
            let promised =
                earlier.acknowledged < later.began && one.message.group_id == two.message.group_id;
            if promised && one.sequence > two.sequence {
                return Err(format!("{} stands behind {}", earlier.id, later.id));
            }
        }
    }
    Ok(())
}

fn policy(world: &World) -> InFlightPolicy {
    match world.dice.one_in(2) {
        true => InFlightPolicy::TakeOver,
        false => InFlightPolicy::Wait,
    }
}

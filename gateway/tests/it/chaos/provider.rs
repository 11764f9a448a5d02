//! A provider: delivers its event until it has seen a 2xx, and hangs up when it has waited too long.
//!
//! It comes again at once, inside the lease, inside the window, or behind it.

use std::sync::Arc;
use std::time::Duration;

use hookgate::delivery::Delivery;
use hookgate::outcome::Outcome;
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::{Instant, sleep, timeout};

use super::world::{Instance, World};

/// More than any schedule needs once its faults have ended.
const MOST_ATTEMPTS: u64 = 5_000;

/// What a provider saw of its event.
#[derive(Debug)]
pub struct Story {
    pub id: String,
    /// When its first request was sent.
    pub began: Instant,
    /// When it saw its first 2xx.
    pub acknowledged: Instant,
}

pub async fn delivers(world: Arc<World>, n: usize) -> Story {
    sleep(world.dice.upto(Duration::from_secs(4))).await;
    let (id, key) = (format!("e{n}"), ["a", "b"][n % 2]);
    let began = Instant::now();
    for _ in 0..MOST_ATTEMPTS {
        // Another version, or another configuration, may order the same event otherwise.
        let key = if world.dice.one_in(8) { "other" } else { key };
        world.dice.tally.lock().unwrap().attempts += 1;
        let outcome = attempt(&world, &id, key).await;
        if matches!(outcome, Some(Outcome::Accepted(_) | Outcome::Duplicate(_))) {
            let held = world.held();
            let is_held = |id: &str| {
                held.iter()
                    .any(|held| held.message.attribute("ce-id") == Some(id))
            };
            assert!(is_held(&id), "{id} was acknowledged and is in no queue");
            // Its answer may be lost on the way, too.
            if !world.dice.is_trouble(20) {
                let acknowledged = Instant::now();
                return Story {
                    id,
                    began,
                    acknowledged,
                };
            }
        }
        sleep(
            world
                .dice
                .pick(&[0, 10, 50, 250, 1000, 3000].map(Duration::from_millis)),
        )
        .await;
    }
    panic!("{id} was never acknowledged");
}

/// One request; none where no answer came.
async fn attempt(world: &World, id: &str, key: &str) -> Option<Outcome> {
    let Instance {
        gateway,
        source,
        life,
    } = world.any();
    let patience = world.dice.pick(&[20, 150, 1000].map(Duration::from_millis));
    let answer = gateway.deliver(&source, delivery(id, key), Instant::now(), Box::new(()));
    tokio::select! {
        biased;
        () = life.over() => None,
        outcome = timeout(patience, answer) => outcome.ok(),
    }
}

pub fn delivery(id: &str, key: &str) -> Arc<Delivery> {
    let mut headers = HeaderMap::new();
    headers.insert("id", HeaderValue::from_str(id).unwrap());
    headers.insert("key", HeaderValue::from_str(key).unwrap());
    Arc::new(Delivery {
        id: uuid::Uuid::new_v4(),
        received_at: 1_700_000_000_000,
        method: Method::POST,
        target: "/in/t/s".into(),
        rest: String::new(),
        headers,
        body: "{}".into(),
    })
}

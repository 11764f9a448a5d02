//! Two stories in which nothing fails, which webhooks are known for: many copies at once, and a receiver that
//! works longer than the provider waits.

use std::cell::Cell;
use std::time::Duration;

use hookgate::outcome::Outcome;
use hookgate::queue::Browse as _;
use tokio::time::{Instant, sleep, timeout};

use super::provider::delivery;
use super::world::World;

const PATIENCE: Duration = Duration::from_millis(100);
const WORK: Duration = Duration::from_millis(150);
const RETRIES: u32 = 3;

#[tokio::test(start_paused = true)]
async fn of_32_copies_through_two_instances_one_is_accepted_and_the_rest_are_duplicates() {
    let world = World::calm();
    let copies: Vec<_> = (0..32)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                let instance = world.any();
                let delivery = delivery("e", "k");
                let gateway = &instance.gateway;
                gateway
                    .deliver(&instance.source, delivery, Instant::now(), Box::new(()))
                    .await
            })
        })
        .collect();
    let (mut accepted, mut others) = (0, 0);
    for copy in copies {
        match copy.await.unwrap() {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Duplicate(_) | Outcome::InFlight => others += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((accepted, others, world.held().len()), (1, 31, 1));
}

/// A provider that waits 100 ms for a 2xx and retries three times; how many attempts it made.
async fn provider<F: Future>(mut handle: impl FnMut() -> F) -> u32 {
    for attempt in 1..=1 + RETRIES {
        if timeout(PATIENCE, handle()).await.is_ok() {
            return attempt;
        }
    }
    1 + RETRIES
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_works_before_it_answers_is_sent_the_event_again_and_again() {
    let begun = Cell::new(0);
    let attempts = provider(|| async {
        begun.set(begun.get() + 1);
        sleep(WORK).await;
    });
    assert_eq!((attempts.await, begun.get()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn work_behind_the_queue_that_outlasts_the_provider_is_one_attempt_and_one_message() {
    let world = World::calm();
    let consumer = {
        let world = world.clone();
        tokio::spawn(async move {
            let (mut done, mut after) = (0, 0);
            while world.pair.queue.list(after, 1).unwrap().is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
            while let Some(held) = world.pair.queue.list(after, 1).unwrap().pop() {
                after = held.sequence;
                sleep(WORK).await;
                done += 1;
            }
            done
        })
    };
    let instance = world.any();
    let attempts = provider(|| async {
        let delivery = delivery("order-7", "k");
        let answer =
            instance
                .gateway
                .deliver(&instance.source, delivery, Instant::now(), Box::new(()));
        assert!(matches!(answer.await, Outcome::Accepted(_)));
    });
    assert_eq!(attempts.await, 1);
    assert_eq!(consumer.await.unwrap(), 1, "worked on once");
    assert_eq!(world.held().len(), 1);
}

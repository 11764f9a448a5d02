//! The queue's contract: order within a group, one copy of an id inside the window, nothing sent behind the
//! lease.
//!
//! Bodies tell copies apart: the first one is kept. A later backend adds one line at the end of this file.

use std::time::Duration;

use hookgate::queue::{QueueError, Sent};

use super::{LEASE, QueueBench, fresh, message};

const SHORT: Duration = Duration::from_millis(1);

async fn send(bench: &impl QueueBench, id: &str, group: &str, body: &str) -> Sent {
    use hookgate::queue::EventQueue as _;
    let lease = bench.lease(LEASE);
    let sent = bench.queue().send(&message(id, group, body), &lease).await;
    sent.unwrap()
}

async fn bodies(bench: &impl QueueBench, groups: &[&str]) -> Vec<String> {
    let held = bench.held(groups).await;
    let bodies = held.iter().map(|message| message.body.to_vec());
    bodies
        .map(|body| String::from_utf8(body).unwrap())
        .collect()
}

async fn messages_of_a_group_keep_their_order_and_all_they_carry(bench: impl QueueBench) {
    let (a, b) = (fresh("a"), fresh("b"));
    for n in 0..10 {
        for group in [&a, &b] {
            let sent = send(&bench, &format!("{group}-{n}"), group, &format!("b{n}")).await;
            assert_eq!(sent, bench.says(Sent::New));
        }
    }
    let expected: Vec<_> = (0..10)
        .map(|n| message(&format!("{a}-{n}"), &a, &format!("b{n}")))
        .collect();
    assert_eq!(bench.held(&[&a]).await, expected);
    assert_eq!(bench.held(&[&b]).await.len(), 10);
}

async fn a_copy_inside_the_window_is_not_kept(bench: impl QueueBench) {
    let id = fresh("copy");
    assert_eq!(send(&bench, &id, &id, "first").await, bench.says(Sent::New));
    bench.pass(bench.window().saturating_sub(LEASE)).await;
    assert_eq!(
        send(&bench, &id, &id, "second").await,
        bench.says(Sent::Deduplicated)
    );
    assert_eq!(bodies(&bench, &[&id]).await, ["first"]);
}

async fn the_window_counts_from_the_copy_that_was_kept(bench: impl QueueBench) {
    let id = fresh("window");
    send(&bench, &id, &id, "first").await;
    bench.pass(bench.window().saturating_sub(SHORT)).await;
    assert_eq!(
        send(&bench, &id, &id, "second").await,
        bench.says(Sent::Deduplicated)
    );
    bench.pass(SHORT).await;
    assert_eq!(send(&bench, &id, &id, "third").await, bench.says(Sent::New));
    assert_eq!(bodies(&bench, &[&id]).await, ["first", "third"]);
    bench.pass(bench.window().saturating_sub(LEASE)).await;
    assert_eq!(
        send(&bench, &id, &id, "fourth").await,
        bench.says(Sent::Deduplicated)
    );
}

async fn equal_ids_of_two_generations_are_two_messages(bench: impl QueueBench) {
    let id = fresh("generation");
    let later = format!("{id}~1");
    assert_eq!(send(&bench, &id, &id, "g0").await, bench.says(Sent::New));
    assert_eq!(send(&bench, &later, &id, "g1").await, bench.says(Sent::New));
    assert_eq!(
        send(&bench, &id, &id, "g0").await,
        bench.says(Sent::Deduplicated)
    );
    assert_eq!(
        send(&bench, &later, &id, "g1").await,
        bench.says(Sent::Deduplicated)
    );
    assert_eq!(bodies(&bench, &[&id]).await, ["g0", "g1"]);
}

async fn an_owner_whose_lease_ended_does_not_send(bench: impl QueueBench) {
    use hookgate::queue::EventQueue as _;
    let id = fresh("ended");
    let lease = bench.lease(LEASE);
    bench.pass(LEASE + SHORT).await;
    let refused = bench.queue().send(&message(&id, &id, "late"), &lease).await;
    assert!(
        matches!(refused, Err(QueueError::LeaseEnded)),
        "{refused:?}"
    );
    assert!(bench.held(&[&id]).await.is_empty());
    // Nothing remembers it either.
    assert_eq!(send(&bench, &id, &id, "next").await, bench.says(Sent::New));
}

async fn of_concurrent_copies_one_is_kept(bench: impl QueueBench) {
    let id = fresh("race");
    let copies = tokio::join!(
        send(&bench, &id, &id, "a"),
        send(&bench, &id, &id, "b"),
        send(&bench, &id, &id, "c"),
    );
    let mut copies = [copies.0, copies.1, copies.2];
    copies.sort_by_key(|sent| *sent != Sent::New);
    let one = [Sent::New, Sent::Deduplicated, Sent::Deduplicated];
    assert_eq!(copies, one.map(|sent| bench.says(sent)));
    assert_eq!(bench.held(&[&id]).await.len(), 1);
}

macro_rules! event_queue {
    ($($name:ident),*) => {$(contract!($name:
        messages_of_a_group_keep_their_order_and_all_they_carry,
        a_copy_inside_the_window_is_not_kept,
        the_window_counts_from_the_copy_that_was_kept,
        equal_ids_of_two_generations_are_two_messages,
        an_owner_whose_lease_ended_does_not_send,
        of_concurrent_copies_one_is_kept,
    );)*};
}

event_queue!(memory, embedded);

// Its window is of five minutes, which no everyday test waits for.
contract!(sqs:
    messages_of_a_group_keep_their_order_and_all_they_carry,
    a_copy_inside_the_window_is_not_kept,
    equal_ids_of_two_generations_are_two_messages,
    an_owner_whose_lease_ended_does_not_send,
    of_concurrent_copies_one_is_kept,
);

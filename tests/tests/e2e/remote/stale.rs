//! An owner is stopped (SIGSTOP) past its lease while another gateway takes its event over, and continued.
//! It sends nothing late, gives up nobody else's claim, and the event is in the queue once.

use std::time::Duration;

use hookgate_backends::proxy::{Fault, Plan};
use rustix::process::Signal;

use super::site::{Kind, Member, Proxies, Site, deliver};
use crate::world;

/// What the stopped owner meets once it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Its message is not sent, and must not be any more.
    BeforeSend,
    /// Its message is in the queue, and it has still to say so.
    AfterSend,
    /// The same, with its sender told.
    BeforeSettle,
    /// It was refused, and is about to give up a claim that is another's by now.
    BeforeRelease,
}

impl Place {
    const ALL: [Self; 4] = [
        Self::BeforeSend,
        Self::AfterSend,
        Self::BeforeSettle,
        Self::BeforeRelease,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::BeforeSend => "before-send",
            Self::AfterSend => "after-send",
            Self::BeforeSettle => "before-settle",
            Self::BeforeRelease => "before-release",
        }
    }
}

/// A gateway that stops at the place, and what stands between it and the backends.
async fn stopping(site: &Site, place: Place) -> (Member, Proxies) {
    let proxies = site.proxies().await;
    let failpoints = format!("{}=1*return(stop)", place.name());
    let member = site.member(&proxies.paths(), &failpoints).await;
    if place == Place::BeforeRelease {
        proxies.break_queue(Plan::always(Fault::aws(403, "AccessDenied")));
    }
    (member, proxies)
}

async fn stopped_past_its_lease(kind: Kind, place: Place) {
    let site = Site::new(kind).await;
    let (stale, proxies) = stopping(&site, place).await;
    let other = site.member(&site.direct(), "").await;
    let signed = site.letter("l-1", "c-1");
    let first = tokio::spawn({
        let (to, signed) = (stale.gateway.ingress, signed.clone());
        async move { deliver(to, &signed).await }
    });
    world::until("the owner has stopped", async || {
        stale.gateway.is_stopped().expect("the process is there")
    })
    .await;
    // Told to come again for as long as the lease runs.
    let taken = other.deliver_until_promised(&signed).await;
    world::until("the claim is settled", async || {
        site.state(other.directory.path(), "letters/l-1")
            .await
            .as_deref()
            == Some("accepted")
    })
    .await;

    // Whatever it sends from here on is late, and seen.
    let late = Plan::always(Fault::Delay(Duration::ZERO));
    proxies.break_queue(late);
    let before = proxies.aws.fired().len();
    stale
        .gateway
        .signal(Signal::CONT)
        .expect("the process is there");
    let first = first.await.expect("an answer");
    let expected = match place {
        Place::BeforeSend | Place::BeforeRelease => [503, 503],
        // It stands for a message that is in the queue.
        Place::AfterSend | Place::BeforeSettle => [202, 503],
    };
    assert!(
        expected.contains(&first.status),
        "{kind:?} {place:?}: {first:?}"
    );
    // Its own answer until it has settled, and then the one that was settled first.
    world::until("the first settlement wins", async || {
        stale.deliver_until_promised(&signed).await.body == taken.body
    })
    .await;
    assert!(stale.gateway.terminate().await.expect("an end").success());
    assert_eq!(
        proxies.aws.fired().len(),
        before,
        "{kind:?} {place:?}: it sent late"
    );
    let state = site.state(other.directory.path(), "letters/l-1").await;
    assert_eq!(state.as_deref(), Some("accepted"), "{kind:?} {place:?}");
    let messages = site.messages().await;
    assert_eq!(messages.len(), 1, "{kind:?} {place:?}: {messages:?}");
    assert!(!messages[0].is_flagged(), "{kind:?} {place:?}");
}

#[tokio::test]
async fn a_stopped_owner_sends_nothing_late_and_gives_up_nobody_elses_claim() {
    let mut all = tokio::task::JoinSet::new();
    for kind in Kind::PROXIED {
        for place in Place::ALL {
            all.spawn(stopped_past_its_lease(kind, place));
        }
    }
    all.join_all().await;
}

/// Longer than SQS remembers.
const WINDOW_AND_MORE: Duration = Duration::from_secs(302);

/// Killed between send and settle; its successor cannot know, so its message says so.
async fn killed_then_taken_over_after_the_window(kind: Kind) {
    let site = Site::new(kind).await;
    let mut killed = site.member(&site.direct(), "after-send=return").await;
    let signed = site.letter("l-1", "c-1");
    let mut connection = hookgate_tests::provider::Connection::to(killed.gateway.ingress);
    assert!(
        connection.deliver(&signed).await.is_err(),
        "nobody is left to answer"
    );
    killed.gateway.ended().await.expect("it was killed");
    tokio::time::sleep(WINDOW_AND_MORE).await;
    let other = site.member(&site.direct(), "").await;
    let taken = other.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!(taken.status, 202, "{kind:?}");
    let messages = site.messages().await;
    let flags: Vec<_> = messages
        .iter()
        .map(|message| (message.id.as_str(), message.is_flagged()))
        .collect();
    assert_eq!(flags, [("l-1", false), ("l-1", true)], "{kind:?}");
}

/// Stopped before its send for longer than the window: its successor's message is the only one.
async fn stopped_for_longer_than_the_window(kind: Kind) {
    let site = Site::new(kind).await;
    let (stale, proxies) = stopping(&site, Place::BeforeSend).await;
    let first = tokio::spawn({
        let (to, signed) = (stale.gateway.ingress, site.letter("l-1", "c-1"));
        async move {
            hookgate_tests::provider::Connection::to(to)
                .deliver(&signed)
                .await
        }
    });
    world::until("the owner has stopped", async || {
        stale.gateway.is_stopped().expect("the process is there")
    })
    .await;
    let other = site.member(&site.direct(), "").await;
    let taken = other
        .deliver_until_promised(&site.letter("l-1", "c-1"))
        .await;
    tokio::time::sleep(WINDOW_AND_MORE).await;
    proxies.break_queue(Plan::always(Fault::Delay(Duration::ZERO)));
    stale
        .gateway
        .signal(Signal::CONT)
        .expect("the process is there");
    let _ = first.await;
    let again = stale
        .deliver_until_promised(&site.letter("l-1", "c-1"))
        .await;
    assert_eq!(again.body, taken.body, "{kind:?}");
    assert!(stale.gateway.terminate().await.expect("an end").success());
    assert_eq!(
        proxies.aws.fired(),
        [],
        "{kind:?}: it sent after the window"
    );
    let messages = site.messages().await;
    assert_eq!(messages.len(), 1, "{kind:?}: {messages:?}");
}

#[tokio::test]
#[ignore = "takes five minutes, the window of SQS: `make chaos`"]
async fn after_the_window_a_second_message_is_flagged_and_a_stopped_owner_sends_none() {
    let mut all = tokio::task::JoinSet::new();
    for kind in Kind::PROXIED {
        all.spawn(killed_then_taken_over_after_the_window(kind));
        all.spawn(stopped_for_longer_than_the_window(kind));
    }
    all.join_all().await;
}

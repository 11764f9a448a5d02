//! A backend that fails while the gateway serves: what senders are told meanwhile, and what is in the queue
//! once it is back.

use hookgate_backends::proxy::{Fault, Plan};
use hookgate_tests::provider::Answer;

use tokio::task::JoinSet;

use super::site::{Kind, Member, Proxies, Site};
use crate::world::until;

const EVENT: &str = "orders/o-1";

/// A gateway behind proxies.
struct Outage {
    site: Site,
    proxies: Proxies,
    member: Member,
}

impl Outage {
    /// `source` is more of the source's configuration.
    async fn new(kind: Kind, source: &str) -> Self {
        let site = Site::new(kind).await;
        let proxies = site.proxies().await;
        let directory = site.directory(&proxies.paths(), "");
        let file = directory.path().join("hookgate.toml");
        let config = std::fs::read_to_string(&file).expect("the configuration");
        let line = "in_flight = \"take_over\"\n";
        assert!(config.contains(line), "{config}");
        let config = config.replace(line, &format!("{line}{source}"));
        std::fs::write(&file, config).expect("the configuration is written");
        let member = site.member_in(directory, "").await;
        Self {
            site,
            proxies,
            member,
        }
    }

    async fn deliver(&self) -> Answer {
        self.member.deliver(&self.site.order("o-1", "c-1")).await
    }

    async fn state(&self) -> Option<String> {
        // Through the proxy: only while it is whole.
        self.site.state(self.member.directory.path(), EVENT).await
    }

    async fn is_settled(&self) {
        until("the claim is settled", async || {
            self.state().await.as_deref() == Some("accepted")
        })
        .await;
    }

    /// Whether each message in the queue is flagged as possibly a second one.
    async fn flags(&self) -> Vec<bool> {
        let messages = self.site.messages().await;
        messages
            .iter()
            .map(|message| message.is_flagged())
            .collect()
    }
}

/// The same on every kind of store at once: most of it is waiting.
async fn on_each<F: Future<Output = ()> + Send + 'static>(shown: impl Fn(Kind) -> F) {
    let mut all = JoinSet::new();
    for kind in Kind::PROXIED {
        all.spawn(shown(kind));
    }
    all.join_all().await;
}

fn is_told_to_come_again(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.retry_after.is_some(), "{answer:?}");
}

#[tokio::test]
async fn while_the_store_is_out_of_reach_senders_come_again() {
    on_each(|kind| async move {
        let outage = Outage::new(kind, "").await;
        outage.proxies.break_store(Plan::always(Fault::CutBefore));
        is_told_to_come_again(&outage.deliver().await);
        outage.proxies.heal();
        // Its task may come through behind the 503, or fail once more for all who joined it.
        until("it is accepted", async || {
            [200, 202].contains(&outage.deliver().await.status)
        })
        .await;
        assert_eq!(outage.flags().await, [false], "{kind:?}");
    })
    .await;
}

#[tokio::test]
async fn a_source_that_forwards_sends_flagged_and_settles_once_the_store_is_back() {
    on_each(|kind| async move {
        let outage = Outage::new(kind, "claim_outage = \"forward\"\n").await;
        outage.proxies.break_store(Plan::always(Fault::CutBefore));
        let first = outage.deliver().await;
        assert_eq!((first.status, first.duplicate), (202, false), "{kind:?}");
        let again = outage.deliver().await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{kind:?}");
        outage.proxies.heal();
        outage.is_settled().await;
        // Another gateway knows it by the store alone.
        let other = outage.site.member(&outage.site.direct(), "").await;
        let again = other.deliver(&outage.site.order("o-1", "c-1")).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{kind:?}");
        assert_eq!(outage.flags().await, [true], "{kind:?}");
    })
    .await;
}

#[tokio::test]
async fn a_store_that_asks_for_patience_gets_it() {
    on_each(|kind| async move {
        let outage = Outage::new(kind, "").await;
        let busy = match kind {
            Kind::DynamoDb => Fault::aws(400, "ProvisionedThroughputExceededException"),
            _ => Fault::redis("LOADING Redis is loading the dataset in memory"),
        };
        outage
            .proxies
            .break_store(Plan::script([busy.clone(), busy]));
        let answer = outage.deliver().await;
        assert_eq!((answer.status, answer.duplicate), (202, false), "{kind:?}");
        assert_eq!(outage.flags().await, [false], "{kind:?}");
    })
    .await;
}

#[tokio::test]
async fn a_queue_that_refuses_leaves_nothing_behind() {
    on_each(|kind| async move {
        let outage = Outage::new(kind, "").await;
        let refusal = Fault::aws(400, "AccessDenied");
        outage.proxies.break_queue(Plan::always(refusal));
        is_told_to_come_again(&outage.deliver().await);
        assert_eq!(outage.state().await, None, "{kind:?}: nothing was sent");
        outage.proxies.heal();
        assert_eq!(outage.deliver().await.status, 202, "{kind:?}");
        assert_eq!(outage.flags().await, [false], "{kind:?}");
    })
    .await;
}

#[tokio::test]
async fn a_queue_that_throttles_is_asked_again_until_the_deadline() {
    let outage = Outage::new(Kind::Redis, "").await;
    let throttle = Fault::aws(400, "com.amazonaws.sqs#RequestThrottled");
    outage.proxies.break_queue(Plan::always(throttle.clone()));
    is_told_to_come_again(&outage.deliver().await);
    assert!(outage.proxies.aws.fired().len() > 2, "it was asked again");
    until("the claim is given up", async || {
        outage.state().await.is_none()
    })
    .await;
    outage.proxies.break_queue(Plan::script([throttle]));
    assert_eq!(outage.deliver().await.status, 202);
    assert_eq!(outage.flags().await, [false]);
}

#[tokio::test]
async fn a_queue_whose_confirmations_are_lost_holds_the_message_once() {
    let outage = Outage::new(Kind::DynamoDb, "").await;
    outage.proxies.break_queue(Plan::always(Fault::CutAfter));
    is_told_to_come_again(&outage.deliver().await);
    assert_eq!(outage.state().await.as_deref(), Some("processing"), "kept");
    outage.proxies.heal();
    // The task goes on behind its sender's 503, or the sender's next delivery takes the event over.
    let answer = outage.deliver().await;
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    outage.is_settled().await;
    assert_eq!(outage.flags().await, [false]);
}

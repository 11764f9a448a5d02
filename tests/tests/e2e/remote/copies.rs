//! Copies of one event at two gateways at once: one message, one 202, and nobody is told anything else than
//! that the event is known or being worked on.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::site::{Kind, Site, deliver};

/// At each of two gateways half of them.
const COPIES: usize = 32;

async fn copies(kind: Kind) {
    let site = Site::new(kind).await;
    let first = site.member(&site.direct(), "").await;
    let second = site.member(&site.direct(), "").await;
    let gateways = [first.gateway.ingress, second.gateway.ingress];
    for signed in [site.order("o-1", "c-1"), site.letter("l-1", "c-1")] {
        let mut all = JoinSet::new();
        for copy in 0..COPIES {
            let signed = signed.clone();
            all.spawn(async move { deliver(gateways[copy % 2], &signed).await });
        }
        let answers = all.join_all().await;
        let mut told: BTreeMap<u16, usize> = BTreeMap::new();
        for answer in &answers {
            *told.entry(answer.status).or_default() += 1;
            let fits = match answer.status {
                202 => !answer.duplicate,
                200 => answer.duplicate,
                409 => answer.retry_after.is_some(),
                _ => false,
            };
            assert!(fits, "{kind:?}: {answer:?}");
        }
        assert_eq!(told.get(&202), Some(&1), "{kind:?}: {told:?}");
        assert!(
            told.get(&200).is_some_and(|known| *known > 0),
            "{kind:?}: {told:?}"
        );
    }
    for member in [first, second] {
        assert!(member.gateway.terminate().await.expect("an end").success());
    }
    let messages = site.messages().await;
    let ids: Vec<_> = messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["o-1", "l-1"], "{kind:?}");
}

#[tokio::test]
async fn of_many_copies_at_two_gateways_one_is_accepted() {
    for kind in Kind::ALL {
        copies(kind).await;
    }
}

//! A backend is gone, slow of speech or tells everybody to come later: what deliveries are told meanwhile, and
//! that all is well once it is back.

use hookgate::http::client;
use hookgate_backends::proxy::{Fault, Plan};
use serde_json::Value;

use super::site::{Kind, Member, Proxies, Site};
use crate::world;

/// A gateway behind proxies, with these lines more in the source `letters`.
async fn behind(site: &Site, letters: &str) -> (Member, Proxies) {
    let proxies = site.proxies().await;
    let directory = site.directory(&proxies.paths(), "");
    let file = directory.path().join("hookgate.toml");
    let config = std::fs::read_to_string(&file).expect("the configuration");
    std::fs::write(&file, config + letters).expect("it is written");
    (site.member_in(directory, "").await, proxies)
}

fn every_kind<F: Future<Output = ()> + Send + 'static>(
    run: fn(Kind) -> F,
) -> tokio::task::JoinSet<()> {
    Kind::PROXIED.into_iter().map(run).collect()
}

async fn store_is_down_and_refused(kind: Kind) {
    let site = Site::new(kind).await;
    let (member, proxies) = behind(&site, "").await;
    proxies.break_store(Plan::always(Fault::CutBefore));
    let signed = site.letter("l-1", "c-1");
    let refused = member.deliver(&signed).await;
    assert!(
        refused.status == 503 && refused.retry_after.is_some(),
        "{kind:?}: {refused:?}"
    );
    proxies.heal();
    member.deliver_until_promised(&signed).await;
    assert_eq!(site.messages().await.len(), 1, "{kind:?}");
}

#[tokio::test]
async fn without_the_claim_store_deliveries_are_told_to_come_again() {
    every_kind(store_is_down_and_refused).join_all().await;
}

async fn store_is_down_and_forwarded(kind: Kind) {
    let site = Site::new(kind).await;
    let (member, proxies) = behind(&site, "claim_outage = \"forward\"\n").await;
    let other = site.member(&site.direct(), "").await;
    proxies.break_store(Plan::always(Fault::CutBefore));
    let first = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((first.status, first.duplicate), (202, false), "{kind:?}");
    let again = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!(
        (again.status, again.duplicate),
        (200, true),
        "{kind:?}: known here, unsettled as it is"
    );
    proxies.heal();
    world::until("the claim is settled behind the outage", async || {
        site.state(other.directory.path(), "letters/l-1")
            .await
            .as_deref()
            == Some("accepted")
    })
    .await;
    let elsewhere = other.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!(
        (elsewhere.status, &elsewhere.body),
        (200, &first.body),
        "{kind:?}"
    );
    let messages = site.messages().await;
    let flags: Vec<_> = messages
        .iter()
        .map(super::site::Message::is_flagged)
        .collect();
    assert_eq!(flags, [true], "{kind:?}");
}

#[tokio::test]
async fn where_the_source_says_so_events_are_forwarded_without_the_claim_store_and_settled_later() {
    every_kind(store_is_down_and_forwarded).join_all().await;
}

/// The queue is broken like this for one delivery; the state of its claim once it has given up.
async fn queue_is_broken(kind: Kind, plan: Plan) -> Option<String> {
    let site = Site::new(kind).await;
    let (member, proxies) = behind(&site, "").await;
    proxies.break_queue(plan.clone());
    let signed = site.letter("l-1", "c-1");
    let refused = member.deliver(&signed).await;
    assert!(
        refused.status == 503 && refused.retry_after.is_some(),
        "{kind:?} {plan:?}: {refused:?}"
    );
    // The task goes on behind the answer, until it knows or its lease ends.
    world::until("nothing is at work any more", async || {
        let running = member.gateway.metric("hookgate_running_deliveries").await;
        running.expect("the metric") == 0
    })
    .await;
    let state = site.state(member.directory.path(), "letters/l-1").await;
    proxies.heal();
    member.deliver_until_promised(&signed).await;
    let messages = site.messages().await;
    assert_eq!(messages.len(), 1, "{kind:?} {plan:?}");
    assert!(!messages[0].is_flagged(), "{kind:?} {plan:?}");
    state
}

async fn queue_is_down(kind: Kind) {
    let (refusal, cut) = (Fault::aws(403, "AccessDenied"), Fault::CutAfter);
    let throttle = Fault::aws(400, "ThrottlingException");
    let nothing_sent = [refusal.clone(), throttle].map(Plan::always);
    let perhaps_sent = [
        Plan::always(cut.clone()),
        Plan::always(Fault::Blackhole),
        Plan::always(Fault::aws(500, "InternalFailure")),
        // A refusal says nothing of the attempt before it.
        Plan::script([cut, refusal]),
    ];
    let mut all = tokio::task::JoinSet::new();
    let plans = nothing_sent.map(|plan| (plan, None)).into_iter();
    for (plan, state) in plans.chain(perhaps_sent.map(|plan| (plan, Some("processing")))) {
        all.spawn(async move {
            let found = queue_is_broken(kind, plan.clone()).await;
            assert_eq!(found.as_deref(), state, "{kind:?} {plan:?}");
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn without_the_queue_a_claim_is_given_up_only_where_nothing_can_have_been_sent() {
    every_kind(queue_is_down).join_all().await;
}

async fn store_is_throttled(kind: Kind) {
    let site = Site::new(kind).await;
    let (member, proxies) = behind(&site, "").await;
    let busy = match kind {
        Kind::DynamoDb => Fault::aws(400, "ProvisionedThroughputExceededException"),
        _ => Fault::redis("LOADING Redis is loading the dataset in memory"),
    };
    // Twice is nothing to speak of.
    proxies.break_store(Plan::script([busy.clone(), busy.clone()]));
    assert_eq!(
        member.deliver(&site.letter("l-1", "c-1")).await.status,
        202,
        "{kind:?}"
    );
    proxies.break_store(Plan::always(busy));
    let refused = member.deliver(&site.letter("l-2", "c-1")).await;
    assert!(
        refused.status == 503 && refused.retry_after.is_some(),
        "{kind:?}: {refused:?}"
    );
    proxies.heal();
    member
        .deliver_until_promised(&site.letter("l-2", "c-1"))
        .await;
    assert_eq!(site.messages().await.len(), 2, "{kind:?}");
}

#[tokio::test]
async fn a_throttled_claim_store_is_asked_again_and_then_deliveries_are_told_to_come_again() {
    every_kind(store_is_throttled).join_all().await;
}

async fn ready(member: &Member) -> Value {
    let answer = client::get(member.gateway.admin, "/readyz").await;
    serde_json::from_slice(&answer.expect("an answer").1).expect("JSON")
}

/// Starts with this broken; tells of it, and of nothing once it is mended.
async fn starts_in_trouble(kind: Kind, breaks: fn(&Proxies)) {
    let site = Site::new(kind).await;
    let proxies = site.proxies().await;
    breaks(&proxies);
    let directory = site.directory(&proxies.paths(), "");
    let member = site.member_in(directory, "").await;
    let troubles = async || {
        ready(&member).await["troubles"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert!(troubles().await > 0, "{kind:?}: {}", ready(&member).await);
    proxies.heal();
    world::until("it is without trouble", async || troubles().await == 0).await;
    let accepted = member
        .deliver_until_promised(&site.letter("l-1", "c-1"))
        .await;
    assert_eq!(accepted.status, 202, "{kind:?}");
}

async fn backends_are_silent(kind: Kind) {
    starts_in_trouble(kind, |proxies| {
        proxies.aws.set(Plan::always(Fault::Blackhole));
        proxies.redis.set(Plan::always(Fault::Blackhole));
    })
    .await;
}

#[tokio::test]
async fn backends_that_never_answer_hold_up_neither_the_start_nor_the_looks_behind_it() {
    every_kind(backends_are_silent).join_all().await;
}

async fn store_fails_its_trial(kind: Kind) {
    starts_in_trouble(kind, |proxies| {
        let cut = Plan::always(Fault::CutBefore);
        match proxies.kind {
            Kind::DynamoDb => proxies.break_store(cut),
            _ => proxies.break_store(cut.on("EVALSHA").on("EVAL")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_cut_while_the_store_is_tried_refuses_no_start() {
    every_kind(store_fails_its_trial).join_all().await;
}

/// The store claims, its answer is lost, and the claim that is sent again is known as the delivery's own.
async fn claims_answer_is_lost(kind: Kind) {
    let site = Site::new(kind).await;
    let (member, proxies) = behind(&site, "").await;
    proxies.break_store(Plan::script([Fault::CutAfter]));
    let first = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((first.status, first.duplicate), (202, false), "{kind:?}");
    assert_eq!(site.messages().await.len(), 1, "{kind:?}");
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_the_deliverys_own() {
    every_kind(claims_answer_is_lost).join_all().await;
}

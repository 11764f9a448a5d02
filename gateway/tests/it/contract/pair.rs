//! The pair's contract: what store and queue promise together, split, and as one transaction where a pair
//! offers that.
//!
//! The fused cases mix acceptances with the split calls: a database may have been used either way before.

use hookgate::backend::{Accept, Acceptance, Accepted};
use hookgate::queue::{EventQueue as _, Sent};
use hookgate::store::{Claim, ClaimStore as _, Claimed, Release, State, Token};

use super::{LEASE, QueueBench, StoreBench, accepted, answer_of, fresh, message, open, request};

async fn an_event_is_claimed_sent_settled_and_then_a_duplicate(
    bench: impl StoreBench + QueueBench,
) {
    let mine = request(&fresh("story"));
    let lease = bench.lease(LEASE);
    let grant = bench.own(&mine).await;
    let sent = message(&mine.key, &grant.group, "body");
    let confirmed = bench.queue().send(&sent, &lease).await.unwrap();
    assert_eq!(confirmed, bench.says(Sent::New));
    bench
        .settle(&mine.key, &accepted(bench.now(), mine.token, 0, "first"))
        .await;
    let Claimed::Duplicate(claim) = bench.claim(&request(&mine.key)).await else {
        panic!("not a duplicate")
    };
    assert_eq!(answer_of(&claim), b"first");
    assert_eq!(bench.held(&[&grant.group]).await, [sent]);
}

async fn a_taker_that_sends_inside_the_window_adds_nothing(bench: impl StoreBench + QueueBench) {
    let dead = request(&fresh("taker"));
    let lease = bench.lease(LEASE);
    let grant = bench.own(&dead).await;
    let sent = message(&dead.key, &grant.group, "dead owner's");
    bench.queue().send(&sent, &lease).await.unwrap();
    bench.pass(LEASE).await;
    let mut taker = request(&dead.key);
    taker.group = "what the taker would have chosen".into();
    let lease = bench.lease(LEASE);
    let grant = bench.own(&taker).await;
    let copy = message(&dead.key, &grant.group, "taker's");
    assert_eq!(
        bench.queue().send(&copy, &lease).await.unwrap(),
        bench.says(Sent::Deduplicated)
    );
    assert_eq!(bench.held(&[&grant.group, &taker.group]).await, [sent]);
}

/// A pair that accepts in one transaction.
trait FusedBench: StoreBench + QueueBench {
    type Fused: Accept;

    fn fused(&self) -> &Self::Fused;

    async fn accept(&self, acceptance: &Acceptance) -> Accepted {
        self.fused().accept(acceptance.clone()).await.unwrap()
    }

    fn acceptance(&self, key: &str, answer: &str) -> Acceptance {
        Acceptance {
            key: key.to_owned(),
            claim: Claim {
                group: key.to_owned(),
                ..accepted(self.now(), Token::new(), 0, answer)
            },
            message: message(key, key, answer),
            closes: None,
        }
    }
}

impl FusedBench for super::bench::Bench<hookgate::embedded::Embedded> {
    type Fused = hookgate::embedded::Embedded;

    fn fused(&self) -> &Self::Fused {
        &self.backend
    }
}

async fn an_acceptance_is_a_claim_and_a_message_at_once(bench: impl FusedBench) {
    let acceptance = bench.acceptance(&fresh("both"), "first");
    assert_eq!(bench.accept(&acceptance).await, Accepted::New);
    assert_eq!(
        bench.look(&acceptance.key).await,
        Some(acceptance.claim.clone())
    );
    assert_eq!(bench.held(&[&acceptance.key]).await, [acceptance.message]);
    let claimed = bench.claim(&request(&acceptance.key)).await;
    assert_eq!(claimed, Claimed::Duplicate(Box::new(acceptance.claim)));
}

async fn an_acceptance_looks_for_duplicates_inside_its_transaction(bench: impl FusedBench) {
    let key = fresh("duplicate");
    let (first, second) = (
        bench.acceptance(&key, "first"),
        bench.acceptance(&key, "second"),
    );
    let both = tokio::join!(bench.accept(&first), bench.accept(&second));
    let (new, duplicate) = match both {
        (Accepted::New, Accepted::Duplicate(claim)) => (first, claim),
        (Accepted::Duplicate(claim), Accepted::New) => (second, claim),
        other => panic!("{other:?}"),
    };
    assert_eq!(*duplicate, new.claim);
    assert_eq!(bench.held(&[&key]).await, [new.message]);
}

async fn an_open_record_is_closed_by_its_token_with_its_generation(bench: impl FusedBench) {
    let key = fresh("open");
    let (token, mut closing) = (Token::new(), bench.acceptance(&key, "again"));
    let left = open(bench.now(), token, 1);
    bench.plant(&key, left.clone()).await;
    for closes in [None, Some(Token::new())] {
        closing.closes = closes;
        assert_eq!(
            bench.accept(&closing).await,
            Accepted::Open(Box::new(left.clone()))
        );
    }
    assert!(bench.held(&[&key]).await.is_empty());
    closing.closes = Some(token);
    closing.claim.generation = 1;
    closing.message.deduplication_id = format!("{key}~1");
    assert_eq!(bench.accept(&closing).await, Accepted::New);
    assert_eq!(bench.look(&key).await, Some(closing.claim));
    assert_eq!(bench.held(&[&key]).await, [closing.message]);
}

async fn a_claim_at_work_is_an_open_record_to_an_acceptance(bench: impl FusedBench) {
    let owner = request(&fresh("at-work"));
    let lease = bench.lease(LEASE);
    bench.own(&owner).await;
    let mut taking = bench.acceptance(&owner.key, "taker");
    let found = bench.accept(&taking).await;
    assert!(matches!(found, Accepted::Open(claim) if claim.token == owner.token));
    taking.closes = Some(owner.token);
    assert_eq!(bench.accept(&taking).await, Accepted::New);
    // The owner goes on and does no harm.
    let copy = message(&owner.key, &owner.key, "owner's");
    assert_eq!(
        bench.queue().send(&copy, &lease).await.unwrap(),
        Sent::Deduplicated
    );
    bench
        .store()
        .release(&owner.key, owner.token, Release::Delete)
        .await
        .unwrap();
    bench
        .settle(&owner.key, &accepted(bench.now(), owner.token, 0, "owner"))
        .await;
    assert_eq!(answer_of(&bench.look(&owner.key).await.unwrap()), b"taker");
    assert_eq!(bench.held(&[&owner.key]).await.len(), 1);
}

async fn an_acceptance_of_what_was_sent_before_adds_no_message(bench: impl FusedBench) {
    let dead = request(&fresh("sent"));
    let lease = bench.lease(LEASE);
    bench.own(&dead).await;
    let sent = message(&dead.key, &dead.key, "dead owner's");
    bench.queue().send(&sent, &lease).await.unwrap();
    let mut taking = bench.acceptance(&dead.key, "taker");
    taking.closes = Some(dead.token);
    assert_eq!(bench.accept(&taking).await, Accepted::New);
    assert_eq!(bench.look(&dead.key).await.unwrap().state, State::Accepted);
    assert_eq!(bench.held(&[&dead.key]).await, [sent]);
}

async fn what_an_acceptance_sent_is_remembered_for_the_window(bench: impl FusedBench) {
    for generation in [0, 1] {
        let key = fresh("remembered");
        let mut acceptance = bench.acceptance(&key, "first");
        acceptance.claim.generation = generation;
        if generation > 0 {
            acceptance.message.deduplication_id = format!("{key}~{generation}");
        }
        bench.accept(&acceptance).await;
        let send = || async {
            let lease = bench.lease(LEASE);
            bench
                .queue()
                .send(&acceptance.message, &lease)
                .await
                .unwrap()
        };
        bench.pass(bench.window().saturating_sub(LEASE)).await;
        assert_eq!(send().await, Sent::Deduplicated);
        bench.pass(LEASE).await;
        assert_eq!(send().await, Sent::New);
    }
}

macro_rules! pair {
    ($($name:ident),*) => {$(contract!($name:
        an_event_is_claimed_sent_settled_and_then_a_duplicate,
        a_taker_that_sends_inside_the_window_adds_nothing,
    );)*};
}

pair!(memory, embedded, aws);

mod fused {
    use super::super::bench::embedded;

    macro_rules! fused {
        ($($case:ident),* $(,)?) => {$(
            #[tokio::test]
            async fn $case() {
                super::$case(embedded().await).await;
            }
        )*};
    }

    fused!(
        an_acceptance_is_a_claim_and_a_message_at_once,
        an_acceptance_looks_for_duplicates_inside_its_transaction,
        an_open_record_is_closed_by_its_token_with_its_generation,
        a_claim_at_work_is_an_open_record_to_an_acceptance,
        an_acceptance_of_what_was_sent_before_adds_no_message,
        what_an_acceptance_sent_is_remembered_for_the_window,
    );
}

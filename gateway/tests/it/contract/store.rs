//! The claim store's contract: claim, settle, release, look.
//!
//! Settling is protocol invariant 5 with all its examples; leases and lives end at their moment, not behind
//! it. A later backend adds one line at the end of this file.

use std::time::Duration;

use hookgate::store::{Claim, ClaimStore as _, Claimed, Release, State, Token};

use super::{LEASE, StoreBench, accepted, answer_of, fresh, open, request};

const HOUR: Duration = Duration::from_secs(3600);

async fn a_new_event_is_claimed_as_asked(bench: impl StoreBench) {
    let request = request(&fresh("new"));
    assert_eq!(bench.look(&request.key).await, None);
    let before = bench.now();
    let grant = bench.own(&request).await;
    assert_eq!((grant.generation, grant.taken_over), (0, false));
    assert_eq!(
        (&grant.group, &grant.queue),
        (&request.group, &request.queue)
    );
    assert!(grant.first_at >= before);
    let claim = bench.look(&request.key).await.unwrap();
    assert_eq!(
        (claim.state, claim.token),
        (State::Processing, request.token)
    );
    assert_eq!(claim.lease_until, claim.first_at + 200);
    assert!(
        claim.expires_at * 1000 >= claim.first_at + 60_000,
        "the long life from the start"
    );
    assert_eq!(claim.body_sha256, request.body_sha256);
}

async fn another_owner_is_in_flight_until_its_lease_has_lapsed(bench: impl StoreBench) {
    let first = request(&fresh("lapse"));
    let mut second = request(&first.key);
    second.group = "another group".into();
    second.queue = "another queue".into();
    let granted = bench.own(&first).await;
    bench.pass(LEASE / 4).await;
    match bench.claim(&second).await {
        Claimed::InFlight { lease_left, owner } => {
            assert!(lease_left <= LEASE * 3 / 4, "{lease_left:?}");
            assert_eq!(owner, first.token);
        }
        other => panic!("{other:?}"),
    }
    bench.pass(LEASE * 3 / 4).await;
    let taken = bench.own(&second).await;
    assert!(taken.taken_over);
    assert_eq!(
        (&taken.group, &taken.queue, taken.first_at, taken.generation),
        (&granted.group, &granted.queue, granted.first_at, 0),
        "the recorded facts survive a takeover"
    );
    let claim = bench.look(&first.key).await.unwrap();
    assert_eq!((claim.token, claim.group), (second.token, first.group));
}

async fn recorded_facts_survive_any_number_of_takeovers(bench: impl StoreBench) {
    let first = request(&fresh("again"));
    let granted = bench.own(&first).await;
    for _ in 0..5 {
        bench.pass(LEASE).await;
        let taken = bench.own(&request(&first.key)).await;
        assert_eq!((taken.first_at, taken.taken_over), (granted.first_at, true));
    }
}

async fn a_lease_that_ends_impossibly_late_counts_as_lapsed(bench: impl StoreBench) {
    let mut broken = request(&fresh("late"));
    (broken.lease, broken.ttl) = (HOUR, 2 * HOUR);
    bench.own(&broken).await;
    assert!(bench.own(&request(&broken.key)).await.taken_over);
}

async fn a_claim_that_is_sent_again_meets_its_own_write(bench: impl StoreBench) {
    let mine = request(&fresh("own"));
    let first = bench.own(&mine).await;
    let again = bench.own(&mine).await;
    assert_eq!(
        (again.first_at, again.group, again.generation),
        (first.first_at, first.group, 0)
    );
    let other = bench.claim(&request(&mine.key)).await;
    assert!(matches!(other, Claimed::InFlight { owner, .. } if owner == mine.token));
}

async fn a_forced_takeover_needs_the_token_that_was_seen(bench: impl StoreBench) {
    let first = request(&fresh("forced"));
    bench.own(&first).await;
    let mut taker = request(&first.key);
    taker.take_over = Some(Token::new());
    let refused = bench.claim(&taker).await;
    assert!(matches!(refused, Claimed::InFlight { owner, .. } if owner == first.token));
    taker.take_over = Some(first.token);
    assert!(bench.own(&taker).await.taken_over);
    let mut late = request(&first.key);
    late.take_over = Some(first.token);
    let refused = bench.claim(&late).await;
    assert!(matches!(refused, Claimed::InFlight { owner, .. } if owner == taker.token));
}

async fn a_forced_takeover_of_an_accepted_event_is_a_duplicate(bench: impl StoreBench) {
    let first = request(&fresh("forced-late"));
    bench.own(&first).await;
    bench
        .settle(&first.key, &accepted(bench.now(), first.token, 0, "first"))
        .await;
    let mut taker = request(&first.key);
    taker.take_over = Some(first.token);
    assert!(matches!(bench.claim(&taker).await, Claimed::Duplicate(_)));
}

async fn an_expired_record_counts_as_absent(bench: impl StoreBench) {
    let mut short = request(&fresh("expired"));
    short.ttl = Duration::from_secs(1);
    bench.own(&short).await;
    bench
        .settle(&short.key, &short_lived(&bench, &short.token))
        .await;
    assert!(matches!(
        bench.claim(&request(&short.key)).await,
        Claimed::Duplicate(_)
    ));
    bench.pass(Duration::from_secs(2)).await;
    assert_eq!(bench.look(&short.key).await, None);
    let grant = bench.own(&request(&short.key)).await;
    assert!(!grant.taken_over && grant.first_at >= bench.now() - 1000);
}

fn short_lived(bench: &impl StoreBench, token: &Token) -> Claim {
    let now = bench.now();
    Claim {
        expires_at: now.div_ceil(1000) + 1,
        ..accepted(now, *token, 0, "old")
    }
}

async fn a_takeover_does_not_shorten_the_records_life(bench: impl StoreBench) {
    let first = request(&fresh("life"));
    bench.own(&first).await;
    let before = bench.look(&first.key).await.unwrap();
    bench.pass(LEASE).await;
    let mut taker = request(&first.key);
    taker.ttl = Duration::from_secs(1);
    bench.own(&taker).await;
    assert_eq!(
        bench.look(&first.key).await.unwrap().expires_at,
        before.expires_at
    );
}

async fn of_concurrent_claims_one_owns(bench: impl StoreBench) {
    let key = fresh("race");
    let requests: Vec<_> = (0..32).map(|_| request(&key)).collect();
    let claims = requests.iter().map(|request| bench.store().claim(request));
    let mut owners = 0;
    for claimed in join_all(claims).await {
        match claimed.unwrap() {
            Claimed::Owner(_) => owners += 1,
            Claimed::InFlight { .. } => {}
            duplicate @ Claimed::Duplicate(_) => panic!("{duplicate:?}"),
        }
    }
    assert_eq!(owners, 1);
}

/// Polls all of them at once.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut pending {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        match pending.iter().all(|(_, output)| output.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    pending
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

async fn a_settled_event_is_a_duplicate_with_its_whole_record(bench: impl StoreBench) {
    let mine = request(&fresh("settled"));
    bench.own(&mine).await;
    let claim = accepted(bench.now(), mine.token, 0, "first");
    bench.settle(&mine.key, &claim).await;
    bench.settle(&mine.key, &claim).await;
    assert_eq!(bench.look(&mine.key).await, Some(claim.clone()));
    bench.pass(LEASE * 3).await;
    assert_eq!(
        bench.claim(&request(&mine.key)).await,
        Claimed::Duplicate(Box::new(claim))
    );
}

async fn a_settlement_over_an_absent_record_is_accepted(bench: impl StoreBench) {
    let key = fresh("absent");
    bench
        .settle(&key, &accepted(bench.now(), Token::new(), 0, "mine"))
        .await;
    assert_eq!(answer_of(&bench.look(&key).await.unwrap()), b"mine");
}

async fn a_settlement_over_an_expired_record_is_accepted(bench: impl StoreBench) {
    let key = fresh("expired-settle");
    bench
        .settle(&key, &short_lived(&bench, &Token::new()))
        .await;
    bench.pass(Duration::from_secs(2)).await;
    bench
        .settle(&key, &accepted(bench.now(), Token::new(), 0, "mine"))
        .await;
    assert_eq!(answer_of(&bench.look(&key).await.unwrap()), b"mine");
}

async fn a_settlement_over_a_lapsed_or_another_owners_claim_is_accepted(bench: impl StoreBench) {
    for wait in [Duration::ZERO, LEASE] {
        let other = request(&fresh("fact"));
        bench.own(&other).await;
        bench.pass(wait).await;
        let mine = Token::new();
        bench
            .settle(&other.key, &accepted(bench.now(), mine, 0, "mine"))
            .await;
        let found = bench.look(&other.key).await.unwrap();
        assert_eq!((found.state, found.token), (State::Accepted, mine));
        // The other one had sent too, and finds a record that stays as it is.
        bench
            .settle(&other.key, &accepted(bench.now(), other.token, 0, "other"))
            .await;
        assert_eq!(answer_of(&bench.look(&other.key).await.unwrap()), b"mine");
    }
}

async fn a_settlement_over_an_accepted_record_succeeds_and_changes_nothing(bench: impl StoreBench) {
    let key = fresh("first-wins");
    let first = accepted(bench.now(), Token::new(), 0, "first");
    bench.settle(&key, &first).await;
    bench.pass(Duration::from_millis(5)).await;
    bench
        .settle(&key, &accepted(bench.now(), Token::new(), 0, "second"))
        .await;
    assert_eq!(bench.look(&key).await, Some(first));
}

async fn a_settlement_never_touches_a_record_of_a_higher_generation(bench: impl StoreBench) {
    for state in [State::Processing, State::Accepted] {
        let key = fresh("generation");
        let higher = Claim {
            state,
            ..open(bench.now(), Token::new(), 1)
        };
        bench.plant(&key, higher.clone()).await;
        bench
            .settle(&key, &accepted(bench.now(), Token::new(), 0, "mine"))
            .await;
        assert_eq!(bench.look(&key).await, Some(higher));
    }
}

async fn an_open_generation_is_taken_over_and_settled_as_itself(bench: impl StoreBench) {
    let key = fresh("open");
    bench.plant(&key, open(bench.now(), Token::new(), 1)).await;
    let mine = request(&key);
    let grant = bench.own(&mine).await;
    assert_eq!((grant.generation, grant.taken_over), (1, true));
    assert_eq!(grant.group, "g");
    let claim = accepted(bench.now(), mine.token, 1, "again");
    bench.settle(&key, &claim).await;
    assert_eq!(bench.look(&key).await, Some(claim));
}

async fn a_deleted_claim_is_as_if_it_had_never_been(bench: impl StoreBench) {
    let mine = request(&fresh("delete"));
    bench.own(&mine).await;
    bench
        .store()
        .release(&mine.key, mine.token, Release::Delete)
        .await
        .unwrap();
    assert_eq!(bench.look(&mine.key).await, None);
    assert!(!bench.own(&request(&mine.key)).await.taken_over);
}

async fn an_ended_lease_keeps_the_record(bench: impl StoreBench) {
    let mine = request(&fresh("end"));
    let granted = bench.own(&mine).await;
    bench
        .store()
        .release(&mine.key, mine.token, Release::EndLease)
        .await
        .unwrap();
    let claim = bench.look(&mine.key).await.unwrap();
    assert_eq!(claim.lease_left(bench.now()), None);
    let taken = bench.own(&request(&mine.key)).await;
    assert_eq!((taken.taken_over, taken.first_at), (true, granted.first_at));
}

async fn a_release_by_another_token_is_nothing(bench: impl StoreBench) {
    for how in [Release::Delete, Release::EndLease] {
        let mine = request(&fresh("fence"));
        bench
            .store()
            .release(&mine.key, Token::new(), how)
            .await
            .unwrap();
        bench.own(&mine).await;
        let before = bench.look(&mine.key).await;
        bench
            .store()
            .release(&mine.key, Token::new(), how)
            .await
            .unwrap();
        assert_eq!(bench.look(&mine.key).await, before);
        let other = bench.claim(&request(&mine.key)).await;
        assert!(matches!(other, Claimed::InFlight { .. }), "{other:?}");
    }
}

async fn an_owner_that_was_taken_over_cannot_release(bench: impl StoreBench) {
    for how in [Release::Delete, Release::EndLease] {
        let stale = request(&fresh("stale"));
        bench.own(&stale).await;
        bench.pass(LEASE).await;
        let owner = request(&stale.key);
        bench.own(&owner).await;
        bench
            .store()
            .release(&stale.key, stale.token, how)
            .await
            .unwrap();
        let claim = bench.look(&stale.key).await.unwrap();
        assert_eq!(claim.token, owner.token);
        assert!(claim.lease_left(bench.now()).is_some());
    }
}

async fn an_accepted_event_cannot_be_released(bench: impl StoreBench) {
    for how in [Release::Delete, Release::EndLease] {
        let mine = request(&fresh("kept"));
        bench.own(&mine).await;
        let claim = accepted(bench.now(), mine.token, 0, "first");
        bench.settle(&mine.key, &claim).await;
        bench
            .store()
            .release(&mine.key, mine.token, how)
            .await
            .unwrap();
        assert_eq!(bench.look(&mine.key).await, Some(claim));
    }
}

async fn a_forgotten_event_waits_for_an_owner_of_the_next_generation(bench: impl StoreBench) {
    let first = request(&fresh("forgotten"));
    let granted = bench.own(&first).await;
    let mut claim = accepted(bench.now(), first.token, 0, "first");
    claim.group.clone_from(&granted.group);
    bench.settle(&first.key, &claim).await;
    bench.pass(LEASE).await;
    assert!(bench.store().forget(&first.key, 0).await.unwrap());
    let open = bench.look(&first.key).await.unwrap();
    assert_eq!((open.state, open.generation), (State::Processing, 1));
    assert_eq!((&open.response, open.accepted_at), (&None, None));
    assert_eq!(
        (&open.group, open.lease_left(bench.now())),
        (&claim.group, None)
    );
    assert!(
        open.first_at >= claim.first_at + 200,
        "its window begins anew"
    );
    assert!(open.expires_at >= claim.expires_at);
    assert_ne!(open.token, first.token);
    // The old owner's settlement, late, is not this generation's.
    bench.settle(&first.key, &claim).await;
    let next = request(&first.key);
    let grant = bench.own(&next).await;
    assert_eq!((grant.generation, grant.taken_over), (1, true));
    assert_eq!((grant.group, grant.first_at), (claim.group, open.first_at));
    bench
        .settle(&first.key, &accepted(bench.now(), next.token, 1, "again"))
        .await;
    let claimed = bench.claim(&request(&first.key)).await;
    assert!(matches!(claimed, Claimed::Duplicate(claim) if claim.generation == 1));
}

async fn only_the_accepted_generation_that_was_seen_is_forgotten(bench: impl StoreBench) {
    let mine = request(&fresh("unforgotten"));
    assert!(!bench.store().forget(&mine.key, 0).await.unwrap());
    assert_eq!(bench.look(&mine.key).await, None);
    bench.own(&mine).await;
    let at_work = bench.look(&mine.key).await;
    assert!(!bench.store().forget(&mine.key, 0).await.unwrap());
    assert_eq!(bench.look(&mine.key).await, at_work);
    let claim = accepted(bench.now(), mine.token, 0, "first");
    bench.settle(&mine.key, &claim).await;
    assert!(!bench.store().forget(&mine.key, 1).await.unwrap());
    assert_eq!(bench.look(&mine.key).await, Some(claim));
    assert!(bench.store().forget(&mine.key, 0).await.unwrap());
    assert!(!bench.store().forget(&mine.key, 0).await.unwrap(), "once");
}

async fn an_expired_record_cannot_be_forgotten(bench: impl StoreBench) {
    let mine = request(&fresh("forget-expired"));
    bench.own(&mine).await;
    bench
        .settle(&mine.key, &short_lived(&bench, &mine.token))
        .await;
    bench.pass(Duration::from_secs(3)).await;
    assert!(!bench.store().forget(&mine.key, 0).await.unwrap());
    assert_eq!(bench.look(&mine.key).await, None);
}

async fn a_look_claims_nothing(bench: impl StoreBench) {
    let key = fresh("look");
    assert_eq!(bench.look(&key).await, None);
    assert!(!bench.own(&request(&key)).await.taken_over);
    let before = bench.look(&key).await;
    assert_eq!(bench.look(&key).await, before);
}

macro_rules! claim_store {
    ($($name:ident),*) => {$(contract!($name:
        a_new_event_is_claimed_as_asked,
        another_owner_is_in_flight_until_its_lease_has_lapsed,
        recorded_facts_survive_any_number_of_takeovers,
        a_lease_that_ends_impossibly_late_counts_as_lapsed,
        a_claim_that_is_sent_again_meets_its_own_write,
        a_forced_takeover_needs_the_token_that_was_seen,
        a_forced_takeover_of_an_accepted_event_is_a_duplicate,
        an_expired_record_counts_as_absent,
        a_takeover_does_not_shorten_the_records_life,
        of_concurrent_claims_one_owns,
        a_settled_event_is_a_duplicate_with_its_whole_record,
        a_settlement_over_an_absent_record_is_accepted,
        a_settlement_over_an_expired_record_is_accepted,
        a_settlement_over_a_lapsed_or_another_owners_claim_is_accepted,
        a_settlement_over_an_accepted_record_succeeds_and_changes_nothing,
        a_settlement_never_touches_a_record_of_a_higher_generation,
        an_open_generation_is_taken_over_and_settled_as_itself,
        a_deleted_claim_is_as_if_it_had_never_been,
        an_ended_lease_keeps_the_record,
        a_release_by_another_token_is_nothing,
        an_owner_that_was_taken_over_cannot_release,
        an_accepted_event_cannot_be_released,
        a_forgotten_event_waits_for_an_owner_of_the_next_generation,
        only_the_accepted_generation_that_was_seen_is_forgotten,
        an_expired_record_cannot_be_forgotten,
        a_look_claims_nothing,
    );)*};
}

claim_store!(memory, embedded, redis, redis_cluster, dynamodb);

//! What each failure is taken for: refused or busy only where it is certain that nothing was done.

use std::time::{Duration, Instant};

use hookgate::store::redis::{RedisSettings, RedisStore};
use hookgate::store::{ClaimRequest, ClaimStore as _, Claimed, Settlement, State, StoreError};
use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};
use rustix::process::Signal;

use super::bench::shared;
use super::{CALL, hasty, server, server_key, settings, store};
use crate::contract::{accepted, fresh, request};

/// A store whose calls go through a proxy, connected to a server that knows the scripts.
async fn proxied(settings: impl Fn(String) -> RedisSettings) -> (FaultProxy, RedisStore) {
    let proxy = FaultProxy::start(shared().address(), Protocol::Redis, Plan::healthy());
    let proxy = proxy.await.unwrap();
    let store = store(settings(format!("redis://{}", proxy.address())));
    let warm = request(&fresh("warm"));
    store.claim(&warm).await.unwrap();
    store.settle(&settlement(&warm)).await.unwrap();
    (proxy, store)
}

fn settlement(owner: &ClaimRequest) -> Settlement {
    Settlement {
        key: owner.key.clone(),
        claim: accepted(1_900_000_000_000, owner.token, 0, "first"),
    }
}

/// A plan for scripts alone, not for what a connection begins with.
fn scripts(plan: Plan) -> Plan {
    plan.on("EVALSHA").on("EVAL")
}

fn is_owner(claimed: &Result<Claimed, StoreError>) -> bool {
    matches!(claimed, Ok(Claimed::Owner(_)))
}

#[tokio::test]
async fn a_full_server_refuses_and_writes_nothing() {
    let redis = server(&["--maxmemory", "1"]);
    let (store, mine) = (store(settings(redis.url())), request("t.s.full"));
    let refused = store.claim(&mine).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(text)) if text.contains("OOM")),
        "{refused:?}"
    );
    let refused = store.settle(&settlement(&mine)).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );
    assert_eq!(redis.tell(&["DBSIZE"]).unwrap(), "0");
}

#[tokio::test]
async fn a_full_server_keeps_an_expired_record_as_it_was() {
    let redis = server(&[]);
    let (store, mine) = (store(settings(redis.url())), request("t.s.expired"));
    // Expired, and its key still there for the minute that housekeeping leaves it.
    let time = redis.tell(&["TIME"]).unwrap();
    let mut old = accepted(1_700_000_000_000, mine.token, 0, "old");
    old.expires_at = time.lines().next().unwrap().parse().unwrap();
    let key = mine.key.clone();
    store.settle(&Settlement { key, claim: old }).await.unwrap();
    redis.tell(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let refused = store.claim(&mine).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "{refused:?}"
    );
    let state = redis
        .tell(&["HGET", &server_key(&mine.key), "state"])
        .unwrap();
    assert_eq!(state, "accepted");
}

#[tokio::test]
async fn a_replica_is_busy() {
    let primary = server(&[]);
    let port = primary.address().port().to_string();
    let replica = server(&["--replicaof", "127.0.0.1", &port]);
    replica
        .says("MASTER <-> REPLICA sync: Finished with success")
        .unwrap();
    let busy = store(settings(replica.url()))
        .claim(&request("t.s.replica"))
        .await;
    assert!(
        matches!(&busy, Err(StoreError::Busy(text)) if text.contains("READONLY")),
        "{busy:?}"
    );
    assert_eq!(primary.tell(&["DBSIZE"]).unwrap(), "0");
}

#[tokio::test]
async fn a_server_that_asks_for_patience_is_busy() {
    let (proxy, store) = proxied(settings).await;
    for line in [
        "LOADING Redis is loading",
        "CLUSTERDOWN no",
        "BUSY a script runs",
    ] {
        proxy.set(scripts(Plan::script([Fault::redis(line)])));
        let mine = request(&fresh("busy"));
        let busy = store.claim(&mine).await;
        assert!(matches!(busy, Err(StoreError::Busy(_))), "{line}: {busy:?}");
        assert!(is_owner(&store.claim(&mine).await), "{line}");
    }
}

#[tokio::test]
async fn forgotten_scripts_cost_one_more_trip_once() {
    let redis = server(&[]);
    let proxy = FaultProxy::start(redis.address(), Protocol::Redis, Plan::healthy());
    let proxy = proxy.await.unwrap();
    let store = store(settings(format!("redis://{}", proxy.address())));
    let trips = async |key: &str| {
        let before = proxy.requests();
        assert!(is_owner(&store.claim(&request(key)).await));
        proxy.requests() - before
    };
    trips("t.s.first").await;
    assert_eq!(trips("t.s.known").await, 1);
    redis.tell(&["SCRIPT", "FLUSH"]).unwrap();
    assert_eq!(trips("t.s.forgotten").await, 2);
    assert_eq!(trips("t.s.known-again").await, 1);
}

#[tokio::test]
async fn every_call_is_one_trip() {
    let (proxy, store) = proxied(settings).await;
    let mine = request(&fresh("trips"));
    let settlement = settlement(&mine);
    // Once, so that the server knows every script.
    for warm in [true, false] {
        let before = proxy.requests();
        store.claim(&mine).await.unwrap();
        let release = hookgate::store::Release::EndLease;
        store.release(&mine.key, mine.token, release).await.unwrap();
        store.claim(&request(&mine.key)).await.unwrap();
        store.settle(&settlement).await.unwrap();
        store.look(&mine.key).await.unwrap();
        store.forget(&mine.key, 0).await.unwrap();
        assert!(warm || proxy.requests() - before == 6);
    }
}

#[tokio::test]
async fn a_connection_cut_between_request_and_answer_is_ambiguous_and_the_same_token_owns() {
    let (proxy, store) = proxied(settings).await;
    for fault in [Fault::CutAfter, Fault::CutBefore] {
        let was_done = fault == Fault::CutAfter;
        proxy.set(scripts(Plan::script([fault])));
        let mine = request(&fresh("cut"));
        let lost = store.claim(&mine).await;
        assert!(matches!(lost, Err(StoreError::Ambiguous(_))), "{lost:?}");
        let recorded = store
            .look(&mine.key)
            .await
            .unwrap()
            .map(|claim| claim.token);
        assert_eq!(recorded, was_done.then_some(mine.token));
        let other = store.claim(&request(&mine.key)).await;
        assert_eq!(is_owner(&other), !was_done, "{other:?}");
        assert_eq!(is_owner(&store.claim(&mine).await), was_done);
    }
}

#[tokio::test]
async fn a_settlement_that_was_cut_is_settled_again_without_harm() {
    let (proxy, store) = proxied(settings).await;
    let mine = request(&fresh("cut-settle"));
    store.claim(&mine).await.unwrap();
    let settlement = settlement(&mine);
    proxy.set(scripts(Plan::script([Fault::CutAfter])));
    let lost = store.settle(&settlement).await;
    assert!(matches!(lost, Err(StoreError::Ambiguous(_))), "{lost:?}");
    store.settle(&settlement).await.unwrap();
    assert_eq!(store.look(&mine.key).await.unwrap(), Some(settlement.claim));
}

#[tokio::test]
async fn a_connection_that_was_never_made_sent_nothing() {
    let port = hookgate_backends::process::free_port().unwrap();
    let refused = store(settings(format!("redis://127.0.0.1:{port}")));
    let refused = refused.claim(&request("t.s.nobody")).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(text)) if text.contains("cannot connect")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_answer_that_never_comes_is_ambiguous_and_the_next_call_gets_through() {
    let (proxy, store) = proxied(hasty).await;
    proxy.set(scripts(Plan::script([Fault::Blackhole])));
    let (mine, asked) = (request(&fresh("silence")), Instant::now());
    let lost = store.claim(&mine).await;
    assert!(matches!(lost, Err(StoreError::Ambiguous(_))), "{lost:?}");
    assert!(asked.elapsed() >= CALL);
    assert!(is_owner(&store.claim(&mine).await), "over a new connection");
}

#[tokio::test]
async fn a_caller_that_gives_up_first_leaves_the_silent_connection_too() {
    let (proxy, store) = proxied(hasty).await;
    proxy.set(scripts(Plan::script([Fault::Blackhole])));
    let mine = request(&fresh("impatient"));
    let patience = CALL * 3 / 4;
    assert!(
        tokio::time::timeout(patience, store.claim(&mine))
            .await
            .is_err()
    );
    let next = tokio::time::timeout(patience, store.claim(&mine)).await;
    assert!(is_owner(&next.unwrap()));
}

#[tokio::test]
async fn a_stopped_server_is_ambiguous_and_comes_back() {
    let redis = server(&[]);
    let (store, mine) = (store(hasty(redis.url())), request("t.s.stopped"));
    store.look(&mine.key).await.unwrap();
    redis.signal(Signal::STOP).unwrap();
    let lost = store.claim(&mine).await;
    assert!(matches!(lost, Err(StoreError::Ambiguous(_))), "{lost:?}");
    redis.signal(Signal::CONT).unwrap();
    assert!(is_owner(&store.claim(&mine).await));
}

#[tokio::test]
async fn a_settlement_waits_for_replicas_and_says_when_too_few_confirm() {
    let primary = server(&["--repl-diskless-sync-delay", "0"]);
    let port = primary.address().port().to_string();
    let replica = server(&["--replicaof", "127.0.0.1", &port]);
    replica
        .says("MASTER <-> REPLICA sync: Finished with success")
        .unwrap();
    let waiting = RedisSettings {
        wait_replicas: 1,
        ..settings(primary.url())
    };
    let (store, mine) = (store(waiting), request("t.s.waits"));
    let settlement = settlement(&mine);
    store.claim(&mine).await.unwrap();
    confirmed(&store, &settlement).await;
    let held = replica
        .tell(&["HGET", &server_key(&mine.key), "state"])
        .unwrap();
    assert_eq!(held, "accepted", "confirmed means there");

    // What stands already is written to all the same: only a write of its own connection is waited for.
    primary.tell(&["CONFIG", "RESETSTAT"]).unwrap();
    confirmed(&store, &settlement).await;
    let stats = primary.tell(&["INFO", "commandstats"]).unwrap();
    assert!(stats.contains("cmdstat_hset:"), "{stats}");

    replica.signal(Signal::STOP).unwrap();
    let late = Settlement {
        key: "t.s.late".into(),
        ..settlement.clone()
    };
    // Again and again: what stands already is waited for as well.
    for settlement in [&late, &late, &settlement] {
        let few = store.settle(settlement).await;
        assert!(
            matches!(&few, Err(StoreError::Ambiguous(text)) if text.contains("0 of 1 replicas")),
            "{few:?}"
        );
    }
    let stands = store
        .look("t.s.late")
        .await
        .unwrap()
        .map(|claim| claim.state);
    assert_eq!(stands, Some(State::Accepted));
    // Others do not wait behind it.
    let (slow, asked) = (store.settle(&late), Instant::now());
    let (few, look) = tokio::join!(slow, async {
        store.look("t.s.late").await.unwrap();
        asked.elapsed()
    });
    assert!(few.is_err() && look < CALL / 2, "{look:?}");
    replica.signal(Signal::CONT).unwrap();
    confirmed(&store, &late).await;
}

/// Settles until replicas confirm, as the background does.
async fn confirmed(store: &RedisStore, settlement: &Settlement) {
    let repeat = async {
        while store.settle(settlement).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), repeat)
        .await
        .unwrap();
}

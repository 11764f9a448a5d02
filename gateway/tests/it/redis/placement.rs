//! Finding the server that a key belongs to: slots on the move in a cluster, and a failover by sentinel.

use std::time::Duration;

use hookgate::store::redis::{RedisSettings, RedisStore};
use hookgate::store::{ClaimStore as _, Claimed, StoreError};
use hookgate_backends::redis::{Redis, RedisCluster, Sentinel};

use super::{server, server_key, settings, store};
use crate::contract::request;

async fn owns(store: &RedisStore, key: &str) {
    let claimed = store.claim(&request(key)).await;
    assert!(matches!(claimed, Ok(Claimed::Owner(_))), "{claimed:?}");
}

fn holds(node: &Redis, key: &str) -> bool {
    let keys = node.tell(&["KEYS", &server_key(key)]).unwrap();
    !keys.is_empty()
}

#[tokio::test]
async fn a_claim_follows_its_slot_while_it_moves_and_afterwards() {
    let cluster = RedisCluster::start().unwrap_or_else(|error| panic!("{error}"));
    let store = store(RedisSettings {
        cluster: true,
        ..settings(cluster.url())
    });
    let key = |name: &str| format!("t.s.{{tag}}-{name}");
    owns(&store, &key("before")).await;
    let home = cluster
        .nodes
        .iter()
        .position(|node| holds(node, &key("before")));
    let home = home.unwrap();
    let (from, to) = (&cluster.nodes[home], &cluster.nodes[(home + 1) % 3]);
    let slot = from
        .tell(&["CLUSTER", "KEYSLOT", &server_key(&key("before"))])
        .unwrap();
    let id = |node: &Redis| node.tell(&["CLUSTER", "MYID"]).unwrap();

    to.tell(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)])
        .unwrap();
    from.tell(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)])
        .unwrap();
    owns(&store, &key("asked")).await;
    assert!(
        holds(to, &key("asked")),
        "a new key of a moving slot is made at its new home"
    );
    let again = store.claim(&request(&key("before"))).await;
    assert!(matches!(again, Ok(Claimed::InFlight { .. })), "{again:?}");

    let (port, old) = (to.address().port().to_string(), server_key(&key("before")));
    from.tell(&["MIGRATE", "127.0.0.1", &port, &old, "0", "5000"])
        .unwrap();
    for node in [to, from] {
        node.tell(&["CLUSTER", "SETSLOT", &slot, "NODE", &id(to)])
            .unwrap();
    }
    owns(&store, &key("moved")).await;
    let moved = store.claim(&request(&key("before"))).await;
    assert!(matches!(moved, Ok(Claimed::InFlight { .. })), "{moved:?}");
}

/// Asks for the failover until the sentinel knows enough of the replica.
async fn promote(sentinel: &Sentinel) {
    let ask = async {
        while sentinel
            .server()
            .tell(&["SENTINEL", "FAILOVER", "main"])
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ask)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_failover_by_sentinel_is_followed() {
    let primary = server(&["--repl-diskless-sync-delay", "0"]);
    let port = primary.address().port().to_string();
    let replica = server(&["--replicaof", "127.0.0.1", &port]);
    replica
        .says("MASTER <-> REPLICA sync: Finished with success")
        .unwrap();
    let sentinel = Sentinel::start(&primary).unwrap_or_else(|error| panic!("{error}"));
    sentinel.server().says("+slave slave").unwrap();
    let by_sentinel = RedisSettings {
        sentinel_master: Some("main".into()),
        ..settings(sentinel.server().url())
    };
    let store = store(by_sentinel.clone());
    owns(&store, "t.s.before").await;
    assert!(holds(&primary, "t.s.before"));

    promote(&sentinel).await;
    sentinel.server().says("+switch-master").unwrap();
    // The sentinel does this some seconds later.
    let new = replica.address().port().to_string();
    primary.tell(&["REPLICAOF", "127.0.0.1", &new]).unwrap();
    let busy = store.claim(&request("t.s.readonly")).await;
    assert!(matches!(busy, Err(StoreError::Busy(_))), "{busy:?}");
    let found = async {
        while store.claim(&request("t.s.after")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found)
        .await
        .unwrap();
    assert!(holds(&replica, "t.s.after"));

    let unknown = RedisSettings {
        sentinel_master: Some("other".into()),
        ..by_sentinel
    };
    let refused = super::store(unknown).claim(&request("t.s.none")).await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("knows no primary of the name \"other\""),
        "{message}"
    );
}

//! What is asked of a server at the start, and what an operator is told.

use hookgate::store::redis::{Finding, OpenError, Password, RedisSettings, RedisStore, Severity};
use hookgate::store::{ClaimStore as _, Claimed};
use hookgate_backends::redis::FREE;

use super::bench::shared;
use super::{server, server_key, settings, skew, store};
use crate::contract::{accepted, fresh, request};

async fn open(settings: RedisSettings) -> Result<RedisStore, OpenError> {
    RedisStore::open(settings, skew()).await
}

async fn refusal(settings: RedisSettings) -> String {
    open(settings).await.err().unwrap().to_string()
}

async fn findings(settings: RedisSettings) -> Vec<Finding> {
    store(settings).check().await.unwrap()
}

#[tokio::test]
async fn a_server_that_may_evict_claims_is_refused_with_the_remedy() {
    let redis = server(&["--maxmemory-policy", "allkeys-lru"]);
    let message = refusal(settings(redis.url())).await;
    assert_eq!(
        message,
        format!(
            "redis {} may evict claims when its memory is full (maxmemory-policy is \"allkeys-lru\"): a \
             delivery of an event whose claim was evicted is queued again\nhint: set maxmemory-policy to \
             noeviction on the server (a managed one: in its parameter group), or allow_eviction = true if a \
             duplicate now and then does no harm",
            redis.address()
        )
    );
    let lenient = RedisSettings {
        allow_eviction: true,
        ..settings(redis.url())
    };
    assert!(open(lenient).await.is_ok());
}

#[tokio::test]
async fn persistence_is_reported_and_demanded_where_the_operator_says_so() {
    let volatile = settings(shared().url());
    let found = findings(volatile.clone()).await;
    let about = |found: &[Finding], what: &str| {
        let mut about = found.iter().filter(|finding| finding.what.contains(what));
        about.next().map(|finding| finding.severity)
    };
    assert_eq!(about(&found, "AOF is off"), Some(Severity::Warning));
    assert_eq!(about(&found, "has no replica"), Some(Severity::Info));
    let strict = RedisSettings {
        require_persistence: true,
        ..volatile
    };
    let message = refusal(strict).await;
    assert!(message.contains("AOF is off"), "{message}");

    let logging = server(&["--appendonly", "yes"]);
    let strict = RedisSettings {
        require_persistence: true,
        ..settings(logging.url())
    };
    assert_eq!(
        about(&findings(strict.clone()).await, "(AOF)"),
        Some(Severity::Info)
    );
    assert!(open(strict).await.is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_take_a_claim_is_refused() {
    let full = server(&["--maxmemory", "1"]);
    let message = refusal(settings(full.url())).await;
    assert!(message.starts_with("a claim for trial failed"), "{message}");
    assert!(message.contains("OOM"), "{message}");
    let replica = server(&["--replicaof", "127.0.0.1", "1"]);
    let message = refusal(settings(replica.url())).await;
    assert!(
        message.contains("is a replica, which refuses claims"),
        "{message}"
    );
}

#[tokio::test]
async fn a_user_without_a_command_is_told_which_are_needed() {
    let redis = server(&[]);
    redis
        .tell(&[
            "ACL",
            "SETUSER",
            "joe",
            "on",
            ">s3cret",
            "~*",
            "+@all",
            "-pexpireat",
        ])
        .unwrap();
    let login = RedisSettings {
        username: Some("joe".into()),
        password: Some(Password::new("s3cret")),
        ..settings(redis.url())
    };
    let message = refusal(login).await;
    assert!(
        message.contains("can't run this command") && message.contains("PEXPIREAT"),
        "{message}"
    );
}

#[tokio::test]
async fn a_wrong_password_is_not_shown() {
    let redis = server(&["--requirepass", "r1ght"]);
    let right = RedisSettings {
        password: Some(Password::new("r1ght")),
        ..settings(redis.url())
    };
    assert!(open(right.clone()).await.is_ok());
    let wrong = RedisSettings {
        password: Some(Password::new("s3cret")),
        ..right.clone()
    };
    assert!(!format!("{wrong:?}").contains("s3cret"));
    let message = refusal(wrong).await;
    assert_eq!(
        message,
        format!(
            "the claim store cannot be reached: the claim store refused: redis {}: cannot connect: the server \
             refuses this user name or password",
            redis.address()
        )
    );
    let none = RedisSettings {
        password: None,
        ..right
    };
    let message = refusal(none).await;
    assert!(message.contains("NOAUTH"), "{message}");
}

#[tokio::test]
async fn addresses_that_cannot_be_are_refused_with_the_reason() {
    let nodes = |nodes: &[&str]| RedisSettings {
        nodes: nodes.iter().map(ToString::to_string).collect(),
        ..RedisSettings::default()
    };
    let sentinels = RedisSettings {
        sentinel_master: Some("main".into()),
        cluster: true,
        ..RedisSettings::default()
    };
    for (settings, part) in [
        (nodes(&[]), "no Redis is named"),
        (nodes(&["cache:6379"]), "no address of a Redis"),
        (nodes(&["redis://:s3cret@cache"]), "settings of their own"),
        (
            nodes(&["redis://a", "redis://b"]),
            "several servers are named",
        ),
        (nodes(&["redis://a", "rediss://b"]), "differ in TLS"),
        (sentinels, "does without sentinels"),
    ] {
        let message = RedisStore::connect(settings, skew())
            .err()
            .unwrap()
            .to_string();
        assert!(
            message.contains(part) && !message.contains("s3cret"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_cluster_is_told_from_a_single_server() {
    let mistaken = RedisSettings {
        cluster: true,
        ..settings(shared().url())
    };
    let message = refusal(mistaken).await;
    assert!(message.contains("cluster support disabled"), "{message}");
    let cluster = server(&["--cluster-enabled", "yes", "--cluster-port", FREE]);
    let message = refusal(settings(cluster.url())).await;
    assert!(message.ends_with("hint: set cluster = true"), "{message}");
}

#[tokio::test]
async fn tls_trusts_the_authorities_that_were_named() {
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    for name in ["own", "other"] {
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(path(&format!("{name}.crt")), pair.cert.pem()).unwrap();
        std::fs::write(
            path(&format!("{name}.key")),
            pair.signing_key.serialize_pem(),
        )
        .unwrap();
    }
    let redis = server(&[
        "--tls-port",
        FREE,
        "--tls-cert-file",
        &path("own.crt"),
        "--tls-key-file",
        &path("own.key"),
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        &path("own.crt"),
    ]);
    let url = format!("rediss://127.0.0.1:{}", redis.others()[0]);
    let trusting = |name: &str| RedisSettings {
        certificate_authorities: Some(files.path().join(name)),
        ..settings(url.clone())
    };
    assert!(open(trusting("own.crt")).await.is_ok());
    let message = refusal(trusting("other.crt")).await;
    assert!(message.contains("certificate"), "{message}");
    let message = refusal(trusting("none.crt")).await;
    assert!(
        message.contains("cannot read") && message.contains("none.crt"),
        "{message}"
    );
}

#[tokio::test]
async fn a_record_can_be_read_by_a_person_and_goes_by_itself() {
    let (store, mine) = (store(settings(shared().url())), request(&fresh("readable")));
    assert!(matches!(store.claim(&mine).await, Ok(Claimed::Owner(_))));
    let key = server_key(&mine.key);
    let field = |name: &str| shared().tell(&["HGET", &key, name]).unwrap();
    assert_eq!(
        (field("state"), field("generation")),
        ("processing".into(), "0".into())
    );
    assert_eq!(
        (field("group"), field("queue")),
        (mine.group.clone(), "q".into())
    );
    let ends = || -> u64 {
        shared()
            .tell(&["PEXPIRETIME", &key])
            .unwrap()
            .parse()
            .unwrap()
    };
    let expires_at: u64 = field("expires_at").parse().unwrap();
    assert_eq!(ends(), (expires_at + 60) * 1000);
    let settled = accepted(field("first_at").parse().unwrap(), mine.token, 0, "hello");
    let settlement = hookgate::store::Settlement {
        key: mine.key.clone(),
        claim: settled.clone(),
    };
    store.settle(&settlement).await.unwrap();
    assert_eq!(field("state"), "accepted");
    assert!(field("response").contains("hello"));
    assert_eq!(ends(), (settled.expires_at + 60) * 1000);
}

#[tokio::test]
async fn every_answer_tells_the_servers_time() {
    let skew = skew();
    // What was noted before is an hour off.
    skew.observe(0, 0, 3_600_000, std::time::Duration::ZERO);
    assert!(skew.apart().as_secs() > 0);
    let store = RedisStore::connect(settings(shared().url()), std::sync::Arc::clone(&skew));
    store.unwrap().look(&fresh("time")).await.unwrap();
    assert_eq!(skew.apart().as_millis(), 0);
}

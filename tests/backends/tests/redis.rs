//! Private Redis servers come up, answer, and are gone when nobody needs them any more.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::path::PathBuf;

use hookgate_backends::process::Process;
use hookgate_backends::redis::{Redis, RedisCluster};

#[test]
fn a_server_answers_until_it_is_dropped() {
    let redis = Redis::start(&["--maxmemory-policy", "allkeys-lru"]).unwrap();
    assert_eq!(redis.tell(&["SET", "a", "b"]).unwrap(), "OK");
    assert_eq!(redis.tell(&["GET", "a"]).unwrap(), "b");
    let policy = redis.tell(&["CONFIG", "GET", "maxmemory-policy"]).unwrap();
    assert!(policy.ends_with("allkeys-lru"), "{policy}");
    let address = redis.address();
    drop(redis);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = Redis::start(&["--no-such-option", "1"]).unwrap_err();
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn a_missing_program_says_how_to_install_it() {
    let error = Process::start("no-such-server", &[], "by hand: apt-get install it").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no-such-server is not installed\nhint: `make backends` installs it; by hand: apt-get install it"
    );
}

#[test]
fn a_process_takes_its_directory_with_it() {
    let process = Process::start("sleep", &["60".to_owned()], "").unwrap();
    let directory: PathBuf = process.directory().to_owned();
    assert!(directory.is_dir());
    drop(process);
    assert!(!directory.exists());
}

#[test]
fn a_cluster_serves_all_slots() {
    let cluster = RedisCluster::start().unwrap();
    for node in &cluster.nodes {
        let info = node.tell(&["CLUSTER", "INFO"]).unwrap();
        assert!(info.contains("cluster_slots_ok:16384"), "{info}");
        assert!(info.contains("cluster_known_nodes:3"), "{info}");
    }
}

//! The Redis claim store beyond the contract: what it asks of a server at the start, what each failure is
//! taken for, and how it finds the right server.

pub mod bench;
mod chaos;
mod failures;
mod moments;
mod placement;
mod rules;
mod start;

use std::sync::Arc;
use std::time::Duration;

use hookgate::clock::skew::Skew;
use hookgate::store::redis::{RedisSettings, RedisStore, RedisTimeouts};
use hookgate_backends::redis::Redis;

/// Short, so that what is never answered costs little.
const CALL: Duration = Duration::from_millis(300);

fn skew() -> Arc<Skew> {
    Arc::new(Skew::of("redis"))
}

fn settings(url: String) -> RedisSettings {
    RedisSettings {
        nodes: vec![url],
        timeouts: RedisTimeouts {
            connect: Duration::from_secs(5),
            call: Duration::from_secs(5),
            replicas: CALL,
        },
        ..RedisSettings::default()
    }
}

/// The same, with little patience.
fn hasty(url: String) -> RedisSettings {
    let mut settings = settings(url);
    settings.timeouts.call = CALL;
    settings
}

fn store(settings: RedisSettings) -> RedisStore {
    RedisStore::connect(settings, skew()).unwrap()
}

/// A server of one's own.
fn server(options: &[&str]) -> Redis {
    Redis::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// The key of a record, as the server sees it.
fn server_key(key: &str) -> String {
    format!("hookgate:{key}")
}

//! The benches on real servers: one server and one cluster for all tests of this binary, and time that really
//! passes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hookgate::clock::{SharedClock, SystemClock};
use hookgate::store::redis::{RedisSettings, RedisStore};
use hookgate_backends::redis::{Redis, RedisCluster};

use super::{server, settings, store};
use crate::contract::{StoreBench, Time};

pub struct RedisBench {
    store: RedisStore,
}

/// The server that tests share whose keys are their own.
pub fn shared() -> &'static Redis {
    static SERVER: OnceLock<Redis> = OnceLock::new();
    SERVER.get_or_init(|| server(&[]))
}

fn shared_cluster() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| RedisCluster::start().unwrap_or_else(|error| panic!("{error}")))
}

pub fn redis() -> RedisBench {
    RedisBench {
        store: store(settings(shared().url())),
    }
}

pub fn redis_cluster() -> RedisBench {
    RedisBench {
        store: store(RedisSettings {
            cluster: true,
            ..settings(shared_cluster().url())
        }),
    }
}

impl Time for RedisBench {
    fn clock(&self) -> SharedClock {
        Arc::new(SystemClock)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

impl StoreBench for RedisBench {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }
}

//! Whether a server is fit to hold claims, from what `INFO` tells: managed servers forbid `CONFIG`.
//!
//! A claim that is lost lets a duplicate through, and nothing worse, as long as the queue's window has passed.
//! What can lose claims is said in one sentence each, with its remedy.

use std::collections::HashMap;

use super::RedisSettings;
use crate::backend::{Finding, Gravity};

/// The oldest server whose scripts may read the time and write.
const OLDEST: u32 = 5;

/// What `INFO` told of one server.
pub(super) struct Info(HashMap<String, String>);

impl Info {
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once(':'));
        Self(
            pairs
                .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
                .collect(),
        )
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or(0)
    }

    fn is(&self, key: &str) -> bool {
        self.text(key) == "1"
    }
}

/// Judges one server.
pub(super) fn judge(server: &str, info: &Info, settings: &RedisSettings) -> Vec<Finding> {
    let mut judge = Judge {
        server,
        info,
        settings,
        found: Vec::new(),
    };
    judge.version();
    judge.mode();
    judge.eviction();
    judge.evicted();
    judge.persistence();
    judge.log_failure();
    judge.replication();
    judge.waiting();
    judge.found
}

struct Judge<'a> {
    server: &'a str,
    info: &'a Info,
    settings: &'a RedisSettings,
    found: Vec<Finding>,
}

impl Judge<'_> {
    fn say(&mut self, gravity: Gravity, what: &str, hint: &str) {
        let what = format!("{} {what}", self.server);
        self.found.push(Finding::new(gravity, what).hint(hint));
    }

    fn version(&mut self) {
        let version = self.info.text("redis_version");
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        if major.is_some_and(|major: u32| major >= OLDEST) {
            return;
        }
        let what =
            format!("is of version {version:?}, whose scripts cannot read the time and then write");
        let hint = format!("Redis {OLDEST}.0 or newer, or Valkey");
        self.say(Gravity::Error, &what, &hint);
    }

    fn mode(&mut self) {
        match (self.info.is("cluster_enabled"), self.settings.cluster) {
            (true, false) => self.say(
                Gravity::Error,
                "is part of a cluster, but is configured as a single server",
                "set cluster = true",
            ),
            (false, true) => self.say(
                Gravity::Error,
                "is a single server, but is configured as a cluster",
                "set cluster = false",
            ),
            _ => {}
        }
    }

    fn eviction(&mut self) {
        let policy = self.info.text("maxmemory_policy");
        if policy == "noeviction" {
            return;
        }
        let what = format!(
            "may evict claims when its memory is full (maxmemory-policy is {policy:?}): \
             a delivery of an event whose claim was evicted is queued again"
        );
        let severity = match self.settings.allow_eviction {
            true => Gravity::Warning,
            false => Gravity::Error,
        };
        self.say(
            severity,
            &what,
            "set maxmemory-policy to noeviction on the server (a managed one: in its parameter group), or \
             allow_eviction = true if a duplicate now and then does no harm",
        );
    }

    fn evicted(&mut self) {
        let evicted = self.info.number("evicted_keys");
        if evicted == 0 {
            return;
        }
        let what = format!("has evicted {evicted} keys since it started");
        self.say(
            Gravity::Warning,
            &what,
            "give it more memory, or set maxmemory-policy to noeviction",
        );
    }

    fn persistence(&mut self) {
        if self.info.is("aof_enabled") {
            return self.say(
                Gravity::Note,
                "logs its writes (AOF): a crash loses the claims that were not synced yet, with appendfsync \
                 everysec those of the last second",
                "",
            );
        }
        let severity = match self.settings.require_persistence {
            true => Gravity::Error,
            false => Gravity::Warning,
        };
        self.say(
            severity,
            "does not log its writes (AOF is off): a restart loses the claims made since its last snapshot, \
             or all where there is none",
            "set appendonly to yes, or rely on a replica that takes over",
        );
    }

    fn log_failure(&mut self) {
        let failed = self.info.text("aof_last_write_status") == "err"
            || self.info.text("rdb_last_bgsave_status") == "err";
        if !failed {
            return;
        }
        self.say(
            Gravity::Warning,
            "could not write its log or snapshot the last time, and may refuse claims",
            "look at the server's disk and log",
        );
    }

    fn replication(&mut self) {
        let replicas = self.info.number("connected_slaves");
        if self.info.text("role") == "slave" {
            return self.say(
                Gravity::Error,
                "is a replica, which refuses claims",
                "name the primary, or its sentinels",
            );
        }
        if replicas == 0 {
            return self.say(
                Gravity::Note,
                "has no replica: while it is down nothing can be claimed, and each source's outage policy holds",
                "",
            );
        }
        let what = format!(
            "has {replicas} {}: a failover forgets the claims that had not reached the one that takes over",
            match replicas {
                1 => "replica",
                _ => "replicas",
            }
        );
        self.say(Gravity::Note, &what, "");
    }

    fn waiting(&mut self) {
        let replicas = self.info.number("connected_slaves");
        let wanted = u64::from(self.settings.wait_replicas);
        if replicas >= wanted {
            return;
        }
        let what = format!(
            "has {replicas} of the {wanted} replicas that settlements wait for: none will be confirmed, and \
             all are repeated until there are enough"
        );
        self.say(
            Gravity::Error,
            &what,
            "add replicas, or lower wait_replicas",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIT: &str = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n\
        aof_enabled:1\r\nrole:master\r\nconnected_slaves:0\r\ncluster_enabled:0\r\nevicted_keys:0\r\n";

    fn judged(change: (&str, &str), settings: &RedisSettings) -> Vec<Finding> {
        let info = Info::parse(&FIT.replace(change.0, change.1));
        judge("redis a:1", &info, settings)
    }

    fn worst(change: (&str, &str), settings: &RedisSettings) -> Finding {
        let found = judged(change, settings).into_iter();
        found.max_by_key(|finding| finding.gravity).unwrap()
    }

    #[test]
    fn a_fit_server_is_only_described() {
        let found = judged(("", ""), &RedisSettings::default());
        assert!(found.iter().all(|finding| finding.gravity == Gravity::Note));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn what_makes_a_server_unfit_is_an_error() {
        let plain = RedisSettings::default;
        let strict = RedisSettings {
            require_persistence: true,
            ..plain()
        };
        let waiting = RedisSettings {
            wait_replicas: 1,
            ..plain()
        };
        let cluster = RedisSettings {
            cluster: true,
            ..plain()
        };
        for (change, settings) in [
            (("7.0.15", "4.0.14"), plain()),
            (("7.0.15", "unknown"), plain()),
            (("noeviction", "volatile-lru"), plain()),
            (("aof_enabled:1", "aof_enabled:0"), strict),
            (("role:master", "role:slave"), plain()),
            (("cluster_enabled:0", "cluster_enabled:1"), plain()),
            (("", ""), waiting),
            (("", ""), cluster),
        ] {
            assert_eq!(
                worst(change, &settings).gravity,
                Gravity::Error,
                "{change:?}"
            );
        }
    }

    #[test]
    fn what_is_a_risk_is_a_warning() {
        let lenient = RedisSettings {
            allow_eviction: true,
            ..RedisSettings::default()
        };
        for change in [
            ("noeviction", "allkeys-lru"),
            ("aof_enabled:1", "aof_enabled:0"),
            ("evicted_keys:0", "evicted_keys:7"),
            ("# Memory", "aof_last_write_status:err"),
        ] {
            assert_eq!(
                worst(change, &lenient).gravity,
                Gravity::Warning,
                "{change:?}"
            );
        }
    }

    #[test]
    fn a_newer_server_is_fit() {
        let found = judged(("7.0.15", "10.2.1"), &RedisSettings::default());
        assert!(found.iter().all(|finding| finding.gravity == Gravity::Note));
    }
}

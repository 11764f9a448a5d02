//! What an operator chooses about Redis, and why there may be no store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::dial;
use crate::backend::Finding;

/// A password, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(super) String);

impl Password {
    /// Keeps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(withheld)")
    }
}

/// Where the claims are, and what is asked of the servers.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// `redis://host:port[/database]`, or `rediss://` for TLS: the server, or some of the cluster's servers,
    /// or the sentinels.
    pub nodes: Vec<String>,
    /// The servers are a cluster.
    pub cluster: bool,
    /// The name by which the sentinels know the primary. The nodes are sentinels then.
    pub sentinel_master: Option<String>,
    /// The sentinels' password, where they want one.
    pub sentinel_password: Option<Password>,
    /// The user, where the server has users.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<Password>,
    /// The certificate authorities that TLS trusts, as PEM; the system's where none are given.
    pub certificate_authorities: Option<PathBuf>,
    /// Put up with a server that may evict claims.
    pub allow_eviction: bool,
    /// Refuse a server that does not log its writes.
    pub require_persistence: bool,
    /// Replicas that have to confirm each settlement; 0 for none.
    pub wait_replicas: u32,
    /// Begins every key, so that others may use the server too.
    pub key_prefix: String,
    /// How long is waited.
    pub timeouts: RedisTimeouts,
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisTimeouts {
    /// For a connection, with TLS and password.
    pub connect: Duration,
    /// For an answer. Also how long what was sent may stay unacknowledged before the system gives the
    /// connection up (`TCP_USER_TIMEOUT`).
    pub call: Duration,
    /// For replicas, beyond the call.
    pub replicas: Duration,
}

impl Default for RedisTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            call: Duration::from_secs(1),
            replicas: Duration::from_millis(500),
        }
    }
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            nodes: vec!["redis://127.0.0.1:6379".into()],
            cluster: false,
            sentinel_master: None,
            sentinel_password: None,
            username: None,
            password: None,
            certificate_authorities: None,
            allow_eviction: false,
            require_persistence: false,
            wait_replicas: 0,
            key_prefix: "hookgate:".into(),
            timeouts: RedisTimeouts::default(),
        }
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|url| dial::withhold(url)).collect();
        f.debug_struct("RedisSettings")
            .field("nodes", &nodes)
            .field("cluster", &self.cluster)
            .field("sentinel_master", &self.sentinel_master)
            .field("username", &self.username)
            .field("password", &self.password)
            .finish_non_exhaustive()
    }
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No server was named.
    #[error("no Redis is named\nhint: one address is enough: redis://host:6379")]
    NoNode,
    /// An address is none.
    #[error("{url} is no address of a Redis: {reason}")]
    Address {
        /// It, without what may be a password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// Addresses, or settings, that exclude each other.
    #[error("{0}")]
    Mixed(&'static str),
    /// The file of authorities cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The system's word for it.
        reason: std::io::Error,
    },
    /// No server answers as it should.
    #[error("the claim store cannot be reached: {0}")]
    Unreachable(String),
    /// A server answers, and should not hold claims.
    #[error("{}", list(.0))]
    Unfit(Vec<Finding>),
}

fn list(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}

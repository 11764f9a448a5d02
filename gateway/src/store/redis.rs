//! Claims in Redis: one hash per event, one script and one round trip per call, the server's time as judge.
//!
//! Each script says in Lua what [`super::rules`] says in Rust, and every answer carries the server's time,
//! which is compared with this machine's. Records end by the conditions in the scripts; the keys' own end
//! comes a minute later and only tidies up. Nothing is ever sent twice in here: a lost connection is
//! ambiguous, and the caller decides.
//!
//! Works with a single server, with Sentinel and with Cluster: a call touches one key.
//!
//! *What this does not do*: replication in Redis is asynchronous, so a failover may forget the newest claims.
//! An event whose claim was forgotten is queued again by its next delivery, unless the queue's window still
//! knows it. `wait_replicas` shortens that gap for settlements: one that too few replicas confirm in time
//! stands at the primary, is reported as ambiguous, and is repeated by the caller.

mod cluster;
mod dial;
mod fault;
mod health;
mod line;
mod node;
mod record;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use super::{
    Claim, ClaimRequest, ClaimStore, Claimed, IMPOSSIBLE_LEASE, RECORD_VERSION, Release,
    Settlement, StoreError, Token, millis,
};
use crate::backend::{Finding, Gravity};
use crate::clock::skew::Skew;
use crate::clock::{Clock as _, SystemClock};
use cluster::Cluster;
use dial::{Address, Dial, Target};
use fault::{Fault, Kind};
use health::Info;
use line::{Reply, Request, Wait};
use node::Node;
use record::Foreign;

pub use settings::{OpenError, Password, RedisSettings, RedisTimeouts};

/// How exact the time is that answers carry.
const RESOLUTION: Duration = Duration::from_millis(1);

/// 100 years: Lua counts in floating point, exactly up to 2^53.
const LONGEST_MS: u64 = 100 * 365 * 86_400 * 1000;

/// The latest moment that a key can end at, in s since 1970: the year 5138.
const LAST_SECOND: u64 = 100_000_000_000;

/// The claim store.
pub struct RedisStore {
    settings: RedisSettings,
    route: Route,
    scripts: Scripts,
    skew: Arc<Skew>,
    clock: SystemClock,
}

/// Which server a call goes to.
enum Route {
    One(Arc<Node>),
    Cluster(Arc<Cluster>),
}

struct Scripts {
    claim: Script,
    settle: Script,
    release: Script,
    forget: Script,
    look: Script,
}

struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }
}

impl Scripts {
    fn new() -> Self {
        Self {
            claim: Script::new(include_str!("redis/claim.lua")),
            settle: Script::new(include_str!("redis/settle.lua")),
            release: Script::new(include_str!("redis/release.lua")),
            forget: Script::new(include_str!("redis/forget.lua")),
            look: Script::new(include_str!("redis/look.lua")),
        }
    }
}

impl RedisStore {
    /// Connects, and refuses servers that should not hold claims. Warnings go to the log.
    pub async fn open(settings: RedisSettings, skew: Arc<Skew>) -> Result<Self, OpenError> {
        let store = Self::connect(settings, skew)?;
        let unreachable = |error: StoreError| OpenError::Unreachable(error.to_string());
        let findings = store.check().await.map_err(unreachable)?;
        let (errors, rest): (Vec<_>, Vec<_>) = findings.into_iter().partition(Finding::is_error);
        if !errors.is_empty() {
            return Err(OpenError::Unfit(errors));
        }
        for finding in rest {
            if finding.gravity == Gravity::Warning {
                tracing::warn!("{finding}");
            } else {
                tracing::info!("{finding}");
            }
        }
        Ok(store)
    }

    /// The store as configured, without a look at the servers: they are connected to when they are needed.
    pub fn connect(settings: RedisSettings, skew: Arc<Skew>) -> Result<Self, OpenError> {
        // Asked for by the client library; the first to choose wins, and all choose ring.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            route: Route::new(&settings)?,
            scripts: Scripts::new(),
            skew,
            clock: SystemClock,
            settings,
        })
    }

    /// What an operator should know about each server: whether it may evict claims, what a crash or a failover
    /// loses, whether it takes claims at all.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let mut findings = Vec::new();
        for node in self.route.primaries().await? {
            let request = Request {
                command: redis::cmd("INFO"),
                wait: None,
            };
            let reply = node.call(&request, false).await?;
            let info = Info::parse(record::text(&reply.value).map_err(unreadable)?);
            findings.extend(health::judge(node.name(), &info, &self.settings));
        }
        if findings.iter().all(|found| !found.is_error()) {
            findings.extend(self.try_it().await);
        }
        Ok(findings)
    }

    /// Claims an event of its own and gives it up: finds missing permissions and full memory.
    async fn try_it(&self) -> Option<Finding> {
        let token = Token::new();
        let request = ClaimRequest {
            key: format!("check.{}", record::token_text(token)),
            token,
            lease: Duration::from_secs(1),
            group: String::new(),
            queue: String::new(),
            body_sha256: String::new(),
            ttl: Duration::from_secs(1),
            take_over: None,
        };
        let tried = async {
            self.claim(&request).await?;
            self.release(&request.key, token, Release::Delete).await
        };
        let error = tried.await.err()?;
        let finding = Finding::error(format!("a claim for trial failed: {error}"));
        let text = error.to_string();
        // Within a script a missing permission may come behind a write, which makes a claim ambiguous.
        let is_permission = ["NOPERM", "can't run this command"]
            .iter()
            .any(|said| text.contains(said));
        Some(match error {
            StoreError::Busy(_) | StoreError::Ambiguous(_) if !is_permission => {
                // No reason to refuse the start: claims are tried again too.
                finding
                    .hint("check the network, and `store.redis.nodes`")
                    .passing()
            }
            _ => finding.hint(
                "the user needs EVAL, EVALSHA, TIME, HSET, HGET, HMGET, HGETALL, HDEL, DEL and PEXPIREAT on \
                 the keys with the prefix, WAIT where replicas are waited for, and INFO",
            ),
        })
    }

    /// Runs a script on one key; its answer without the time, which is compared.
    async fn run(
        &self,
        script: &Script,
        key: &str,
        arguments: &[&str],
        wait: Option<Wait>,
    ) -> Result<Reply, StoreError> {
        let key = format!("{}{key}", self.settings.key_prefix);
        let command = |name: &str, script: &str| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(1).arg(&key).arg(arguments);
            command
        };
        match self
            .attempt(&key, command("EVALSHA", &script.hash), wait)
            .await
        {
            // Not done, for certain. This way the server knows the script from now on.
            Err(Fault {
                kind: Kind::NoScript,
                ..
            }) => Ok(self
                .attempt(&key, command("EVAL", script.code), wait)
                .await?),
            other => Ok(other?),
        }
    }

    async fn attempt(&self, key: &str, command: Cmd, wait: Option<Wait>) -> Result<Reply, Fault> {
        let request = Request { command, wait };
        let asked = self.clock.wall_ms();
        let reply = self.route.call(key, &request).await?;
        if let Ok((time, _)) = record::timed(&reply.value) {
            self.skew
                .observe(asked, self.clock.wall_ms(), time, RESOLUTION);
        }
        Ok(reply)
    }

    /// What settlements wait for.
    fn wait(&self) -> Option<Wait> {
        (self.settings.wait_replicas > 0).then_some(Wait {
            replicas: self.settings.wait_replicas,
            timeout: self.settings.timeouts.replicas,
        })
    }
}

impl Route {
    fn new(settings: &RedisSettings) -> Result<Self, OpenError> {
        let addresses = settings.nodes.iter().map(|url| Address::parse(url));
        let mut addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        let first = addresses.first().ok_or(OpenError::NoNode)?;
        let dial = Arc::new(Dial::new(settings, &addresses)?);
        let extra = match settings.wait_replicas {
            0 => Duration::ZERO,
            _ => settings.timeouts.replicas,
        };
        match (&settings.sentinel_master, settings.cluster) {
            (Some(_), true) => Err(OpenError::Mixed(
                "a cluster does without sentinels\nhint: name the cluster's servers, or leave out cluster",
            )),
            (None, true) => Ok(Self::Cluster(Cluster::new(&dial, &addresses, extra))),
            (None, false) if addresses.len() > 1 => Err(OpenError::Mixed(
                "several servers are named\nhint: set cluster = true, or the sentinels' name for the primary",
            )),
            (None, false) => {
                let target = |extra| Target::at(&dial, &first.host, first.port, extra);
                Ok(Self::one(target, extra))
            }
            (Some(master), false) => {
                let addresses: Arc<[Address]> = addresses.drain(..).collect();
                let password = settings.sentinel_password.as_ref();
                let target =
                    |extra| Target::of_sentinels(&dial, &addresses, (master, password), extra);
                Ok(Self::one(target, extra))
            }
        }
    }

    fn one(target: impl Fn(Duration) -> Target, extra: Duration) -> Self {
        Self::One(Arc::new(Node::new(target(Duration::ZERO), target(extra))))
    }

    async fn call(&self, key: &str, request: &Request) -> Result<Reply, Fault> {
        match self {
            Self::One(node) => node.call(request, false).await,
            Self::Cluster(cluster) => cluster.call(key, request).await,
        }
    }

    async fn primaries(&self) -> Result<Vec<Arc<Node>>, Fault> {
        match self {
            Self::One(node) => Ok(vec![Arc::clone(node)]),
            Self::Cluster(cluster) => cluster.primaries().await,
        }
    }
}

/// A script ran, and nobody here can say what it did.
fn unreadable(foreign: Foreign) -> StoreError {
    StoreError::Ambiguous(foreign.0)
}

/// What the script answered behind the time.
fn answer(reply: &Reply) -> Result<&[Value], StoreError> {
    let (_, answer) = record::timed(&reply.value).map_err(unreadable)?;
    Ok(answer)
}

fn ms(duration: Duration) -> String {
    millis(duration).min(LONGEST_MS).to_string()
}

impl ClaimStore for RedisStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let arguments = [
            &record::token_text(request.token),
            &ms(request.lease),
            &ms(request.ttl),
            &request.group,
            &request.queue,
            &request.body_sha256,
            &request
                .take_over
                .map(record::token_text)
                .unwrap_or_default(),
            &RECORD_VERSION.to_string(),
            &ms(IMPOSSIBLE_LEASE),
        ];
        let arguments = arguments.map(String::as_str);
        let script = &self.scripts.claim;
        let reply = self.run(script, &request.key, &arguments, None).await?;
        record::claimed(answer(&reply)?).map_err(unreadable)
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let claim = &settlement.claim;
        let (fields, wait) = (record::fields(claim), self.wait());
        let generation = claim.generation.to_string();
        let end = claim.expires_at.min(LAST_SECOND).to_string();
        let in_any_case = if wait.is_some() { "1" } else { "0" };
        let mut arguments = vec![generation.as_str(), &end, in_any_case];
        arguments.extend(
            fields
                .iter()
                .flat_map(|(field, value)| [field.as_str(), value]),
        );
        let script = &self.scripts.settle;
        let reply = self.run(script, &settlement.key, &arguments, wait).await?;
        answer(&reply)?;
        match (reply.confirmed, self.settings.wait_replicas) {
            (Some(confirmed), wanted) if confirmed < wanted => Err(StoreError::Ambiguous(format!(
                "the settlement stands, but {confirmed} of {wanted} replicas confirmed it in {:?}",
                self.settings.timeouts.replicas
            ))),
            _ => Ok(()),
        }
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        let how = match how {
            Release::Delete => "delete",
            Release::EndLease => "end",
        };
        let arguments = [&record::token_text(token), how];
        let reply = self
            .run(&self.scripts.release, key, &arguments, None)
            .await?;
        answer(&reply).map(drop)
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        let arguments = [&generation.to_string(), &*record::token_text(Token::new())];
        let reply = self
            .run(&self.scripts.forget, key, &arguments, None)
            .await?;
        match answer(&reply)? {
            [forgotten] => Ok(record::text(forgotten).map_err(unreadable)? == "1"),
            _ => Err(unreadable(Foreign::of(&reply.value))),
        }
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        let reply = self.run(&self.scripts.look, key, &[], None).await?;
        let hash = answer(&reply)?.first();
        hash.map(record::claim).transpose().map_err(unreadable)
    }
}

//! What the operator wrote: one TOML file, or the same text in an environment variable, read strictly.
//!
//! The fields' documentation is the reference (`docs/configuration.md` is made of it). Unknown keys are
//! refused, quantities carry their unit, and a secret's value never stands here: only where it is. Nothing in
//! this file checks one field against another; that is [`validate`]'s, and what needs plugins or secrets is
//! [`sources`]'. Adapters never see these types, only the plain settings that come of them.

mod document;
mod fetch;
mod policy;
pub mod problem;
#[cfg(test)]
mod reference;
pub mod retention;
pub mod secret;
pub mod sources;
#[cfg(test)]
mod tests;
mod units;
pub mod validate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::crypto::KeyForm;
use crate::delivery::Ordering;
use crate::tenants::{ClaimOutage, InFlightPolicy, NoEventId, SameIdOtherBody};

use document::Document;
pub use problem::{Problem, Problems, Severity};
use secret::{SecretRef, SecretRefs, Surroundings};
use units::{Size, Time, Ttl};
pub use validate::Settings;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The listener that providers call.
    pub server: Server,
    /// The listener for health checks and metrics.
    pub admin: Admin,
    /// The providers' plugins and what they may cost.
    pub plugins: Plugins,
    /// The claim store, which knows what became of every event.
    pub store: Store,
    /// The queue that accepted events go to.
    pub queue: Queue,
    /// Where AWS is, for `"dynamodb"` and `"sqs"`. Credentials are never written here: they come from the
    /// environment, a profile, the container or the instance, as for every program that uses AWS.
    pub aws: Aws,
    /// How keys and certificates are fetched from providers, by HTTPS. Only for sources with `key_hosts`.
    pub fetch: Fetch,
    /// The tenants by name: lower-case letters, digits and hyphens, at most 63.
    pub tenants: BTreeMap<String, Tenant>,
}

/// The listener that providers call.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    /// The address and port. Default `"127.0.0.1:8080"`; port 0 takes a free one.
    pub listen: String,
    /// The certificate for TLS and those between it and the authority, as PEM: a file, or an environment
    /// variable as `"env:NAME"`. Default: no TLS. With it HTTP/2 and HTTP/1.1 are served as the client prefers;
    /// without it too, in clear.
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's private key, as PEM: a file, or `"env:NAME"`.
    pub tls_key: Option<PathBuf>,
    /// The largest body. Default `"1MiB"`. A larger one is answered 413.
    pub max_body: Size,
    /// The largest head of a request. Default `"32KiB"`; less than 8 KiB counts as that. A larger one is
    /// answered 431.
    pub max_header_bytes: Size,
    /// The most headers of a request. Default 100.
    pub max_headers: usize,
    /// How long a head may take to arrive, idle time of a kept connection included. Default `"15s"`.
    pub header_timeout: Time,
    /// How long a body may take to arrive, counted from its head. Default `"10s"`.
    pub body_timeout: Time,
    /// The most connections at once; more wait to be accepted. Default 10000.
    pub max_connections: usize,
    /// What the bodies of all deliveries may hold at once. Default `"256MiB"`. Beyond it deliveries are
    /// answered 503.
    pub memory_budget: Size,
    /// How long to serve on after SIGTERM, with `/readyz` failing, before connections are closed. Default
    /// `"10s"`. Longer than load balancers take to notice.
    pub drain_delay: Time,
}

impl Default for Server {
    fn default() -> Self {
        let limits = crate::http::Limits::default();
        Self {
            listen: "127.0.0.1:8080".into(),
            tls_certificate: None,
            tls_key: None,
            max_body: Size(limits.max_body),
            max_header_bytes: Size(limits.max_header_bytes),
            max_headers: limits.max_headers,
            header_timeout: Time(limits.header_timeout),
            body_timeout: Time(limits.body_timeout),
            max_connections: limits.max_connections,
            memory_budget: Size(limits.memory_budget),
            drain_delay: Time::seconds(10),
        }
    }
}

/// The listener for health checks and metrics.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// The address and port. Default `"127.0.0.1:8081"`. It has no authentication: keep it from the public.
    pub listen: String,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8081".into(),
        }
    }
}

/// The providers' plugins and what they may cost.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Plugins {
    /// Where the plugins are, as `*.wasm`. Default `"plugins"`. Like every path here, it starts at this file's
    /// directory unless it is absolute.
    pub directory: PathBuf,
    /// Where compiled plugins are kept for the next start. Default: nowhere. Whoever can write there can run
    /// code in the gateway.
    pub cache: Option<PathBuf>,
    /// Computation of one delivery, in units of fuel: about one a WebAssembly instruction, and one a byte that
    /// the host hashes, scans or copies. Default 20000000, some 20 ms at most.
    pub fuel: u64,
    /// Linear memory of one delivery. Default `"16MiB"`.
    pub memory: Size,
    /// The backstop for one delivery's computation by the wall clock. Default `"1s"`. Generous, for busy
    /// machines: `fuel` is the limit that honest plugins are held to.
    pub wall_clock: Time,
    /// How many deliveries may be in plugins at once. Default 64. Address space for all of them is reserved at
    /// start.
    pub concurrent_calls: u32,
    /// What a plugin may hand to the host in one call. Default `"1MiB"`.
    pub output: Size,
    /// Whether plugins are taken that bring a language's runtime, such as those written in JavaScript or Python.
    /// They may have larger tables, and may import WASI, which gives them nothing: no files, network,
    /// environment or clock. Default `false`. They cost more than ten times as much, which
    /// `hookgate plugin bench --runtimes` shows, and compiling one takes seconds: set `cache`.
    pub runtimes: bool,
    /// The SHA-256 that a plugin's file, or a preset's, must have, by the plugin's name, in hexadecimal as
    /// `sha256sum` and `hookgate plugin inspect` print it. Another file of that name is refused.
    pub pinned: BTreeMap<String, String>,
    /// How often the directory, this file and the files of secrets are looked at for changes, which then take
    /// effect: all of them or, where there is any mistake, none. Default `"2s"`; `"0s"` never looks. SIGHUP has
    /// them looked at at once.
    pub watch: Time,
}

impl Default for Plugins {
    fn default() -> Self {
        let limits = crate::plugin::Limits::default();
        Self {
            directory: "plugins".into(),
            cache: None,
            fuel: limits.fuel,
            memory: Size(limits.memory),
            wall_clock: Time(limits.wall_clock),
            concurrent_calls: limits.concurrent_calls,
            output: Size(limits.output),
            runtimes: limits.runtimes,
            pinned: BTreeMap::new(),
            watch: Time::seconds(2),
        }
    }
}

/// The claim store, which knows what became of every event.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// `"embedded"` (default): a database on this machine's disk, one with the queue where that is embedded
    /// too. `"dynamodb"`: a table that many gateways share. `"redis"`: a Redis or Valkey that they share.
    /// `"memory"`: for measuring only, since nothing is durable, and only the newest 16384 claims are kept.
    pub kind: StoreKind,
    /// The directory of the embedded database. Default `"data"`. For `kind = "embedded"` only.
    pub path: Option<PathBuf>,
    /// How long an event is remembered, so that its deliveries are duplicates: a duration, or `"auto"`
    /// (default): a day longer than the queue and its dead-letter queue keep messages, where SQS says how long
    /// that is, else 15 days; and a day longer than the provider goes on retrying.
    pub claim_ttl: Ttl,
    /// The table of `kind = "dynamodb"`.
    pub dynamodb: DynamoDb,
    /// The servers of `kind = "redis"`.
    pub redis: Redis,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            kind: StoreKind::Embedded,
            path: None,
            claim_ttl: Ttl::Auto,
            dynamodb: DynamoDb::default(),
            redis: Redis::default(),
        }
    }
}

/// The table of `kind = "dynamodb"`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DynamoDb {
    /// The table's name. Required. Its key is `pk`, a string; its time to live is on `expires_at`.
    pub table: Option<String>,
}

/// The servers of `kind = "redis"`: Redis 5 or newer, or Valkey.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Redis {
    /// Where they are, as `"redis://HOST:PORT"`, or `"rediss://HOST:PORT"` for TLS: the server, or some of the
    /// cluster's, or the sentinels. Required.
    pub nodes: Vec<String>,
    /// Whether they are a cluster. Default `false`.
    pub cluster: bool,
    /// The name by which sentinels know the primary: the nodes are sentinels then.
    pub sentinel_master: Option<String>,
    /// Where the sentinels' password is, as `"env:NAME"` or `"file:PATH"`.
    pub sentinel_password: Option<SecretRef>,
    /// The user. Default: the server's default user.
    pub username: Option<String>,
    /// Where the user's password is, as `"env:NAME"` or `"file:PATH"`.
    pub password: Option<SecretRef>,
    /// The certificate authorities that TLS trusts, as PEM. Default: the system's.
    pub certificate_authorities: Option<PathBuf>,
    /// Whether a server is put up with that may evict claims when its memory is full. Default `false`: such a
    /// server is refused.
    pub allow_eviction: bool,
    /// Whether a server is refused that does not log its writes (AOF). Default `false`: it is warned of.
    pub require_persistence: bool,
    /// How many replicas have to confirm that an event is settled. Default 0: none, and a failover may forget
    /// the newest claims.
    pub wait_replicas: u32,
    /// What every key begins with. Default `"hookgate:"`.
    pub key_prefix: String,
}

impl Default for Redis {
    fn default() -> Self {
        let settings = crate::store::redis::RedisSettings::default();
        Self {
            nodes: Vec::new(),
            cluster: false,
            sentinel_master: None,
            sentinel_password: None,
            username: None,
            password: None,
            certificate_authorities: None,
            allow_eviction: false,
            require_persistence: false,
            wait_replicas: 0,
            key_prefix: settings.key_prefix,
        }
    }
}

/// The queue that accepted events go to.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Queue {
    /// `"embedded"` (default), `"sqs"`: a FIFO queue, or `"memory"`: for measuring only, since nothing is durable,
    /// and only the newest 16384 messages are kept.
    pub kind: QueueKind,
    /// The directory of an embedded queue whose store is not embedded. Default `"data"`.
    pub path: Option<PathBuf>,
    /// How long the queue remembers a deduplication id. Default `"300s"`, which is SQS FIFO's.
    pub window: Time,
    /// The largest message, body and attributes. Default `"1MiB"`. An event whose message would be larger is
    /// answered 413.
    pub max_message: Size,
    /// The queue of `kind = "sqs"`.
    pub sqs: Sqs,
    /// When new events are refused because too much waits.
    pub pressure: Pressure,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            kind: QueueKind::Embedded,
            path: None,
            window: Time::seconds(300),
            max_message: Size(crate::delivery::message::MAX_MESSAGE),
            sqs: Sqs::default(),
            pressure: Pressure::default(),
        }
    }
}

/// The queue of `kind = "sqs"`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sqs {
    /// The queue's URL. Required. A FIFO queue, so it ends in `.fifo`.
    pub url: Option<String>,
    /// How long a batch waits to be filled while others are on their way. Default `"2ms"`. Longer makes fewer
    /// requests, which are what SQS charges for.
    pub linger: Time,
    /// How many batches may be on their way at once. Default 64.
    pub batches: usize,
}

impl Default for Sqs {
    fn default() -> Self {
        Self {
            url: None,
            linger: Time(std::time::Duration::from_millis(2)),
            batches: 64,
        }
    }
}

/// When new events are refused because too much waits. Duplicates and handshakes are answered as always.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pressure {
    /// How many messages the queue may hold, in flight and delayed ones included. Default 100000. From here on
    /// every new event is answered 429, until half of the way to `low_water` is worked off.
    pub high_water: u64,
    /// From how many messages on tenants above their fair share of the accepted events are answered 429.
    /// Default: four fifths of `high_water`.
    pub low_water: Option<u64>,
    /// How often the queue's depth is read. Default `"5s"`. A reading six times as old counts no more.
    pub poll: Time,
    /// How many events may be at work in this process. Default 10000. More are answered 429.
    pub max_running: usize,
    /// How long sending may take, on average, before it counts as between the marks. Default `"1s"`.
    pub slow_send: Time,
}

impl Default for Pressure {
    fn default() -> Self {
        let limits = crate::pressure::Limits::default();
        Self {
            high_water: limits.high_water,
            low_water: None,
            poll: Time(limits.poll),
            max_running: limits.max_running,
            slow_send: Time(limits.slow_send),
        }
    }
}

/// Where AWS is, for `"dynamodb"` and `"sqs"`. Credentials are never written here: they come from the
/// environment, a profile, the container or the instance, as for every program that uses AWS.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Aws {
    /// The region. Default: the environment's, and for SQS the one in the queue's URL.
    pub region: Option<String>,
    /// The endpoint of all services, such as `"http://127.0.0.1:4566"`, for stand-ins. Default: AWS's own.
    pub endpoint: Option<String>,
}

/// How keys and certificates are fetched from providers, by HTTPS. Only for sources with `key_hosts`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Fetch {
    /// The certificate authorities that are trusted, as PEM. Default: the system's.
    pub certificate_authorities: Option<PathBuf>,
    /// Where hosts are, as `"ADDRESS:PORT"` by name, in the place of what DNS says: private endpoints. Other
    /// hosts are never connected to at private addresses.
    pub addresses: BTreeMap<String, String>,
}

/// What keeps claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreKind {
    Embedded,
    DynamoDb,
    Redis,
    Memory,
}

/// What keeps messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueueKind {
    Embedded,
    Sqs,
    Memory,
}

/// What to do about a delivery that the provider was asked for by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Redelivery {
    Suppress,
    Forward,
}

/// A tenant.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tenant {
    /// The tenant's sources by name, written as the tenant's; each is served at `/in/TENANT/SOURCE`.
    pub sources: BTreeMap<String, Source>,
}

/// One endpoint of one tenant for one provider.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Source {
    /// The plugin's name, as in its manifest. Required.
    pub plugin: Option<String>,
    /// The secrets by the plugin's names for them: for each a list of where its active values are, as
    /// `"env:NAME"` or `"file:PATH"`. All of them verify, which is how a secret is rotated. One newline at a
    /// file's end is dropped.
    pub secrets: BTreeMap<String, SecretRefs>,
    /// How the values of a secret become keys, by the secret's name: `"raw"` (its bytes), `"named"` (its bytes
    /// behind the first colon, before which is the key's name), `"hex"`, `"base64"`,
    /// `"whsec"` (base64 behind an optional `whsec_`), `"whpk"` (a public key in base64 behind an optional
    /// `whpk_`), `"pem"` or `"jwk"` (public keys), `"sha1"` or `"sha256"` (its digest). What a public key decodes
    /// to is the raw key of Ed25519 or of an uncompressed P-256 or P-384 point, or DER. Default: as the plugin
    /// says.
    pub key_forms: BTreeMap<String, KeyForm>,
    /// The URL that the provider is told to call, exactly as it is told. Required where the provider signs it.
    pub public_url: Option<String>,
    /// The plugin's options: text as it is, anything else as JSON.
    pub options: BTreeMap<String, toml::Value>,
    /// The hosts, of those that the plugin names, that keys and certificates are fetched from and handshakes
    /// confirmed at; a `*` is one label, as in `"sns.*.amazonaws.com"`. Default: none, and what needs them is
    /// refused.
    pub key_hosts: Vec<String>,
    /// Whether the answer to a handshake may hold a MAC under the source's secret, as Zoom's and X's must. Only
    /// of 1 to 256 letters, digits and `+/=_-`, which no delivery consists of. Default `false`.
    pub sign_challenges: bool,
    /// What stays in order in the queue: `"key"` (default): events with the same ordering key; `"source"`: all
    /// of the source; `"none"`.
    pub ordering: Ordering,
    /// How old a signature may be, inclusive. Default `"300s"`. Where the provider signs the event's time and
    /// not the attempt's, no shorter than it goes on retrying.
    pub max_age: Option<Time>,
    /// How far ahead of the gateway's clock a signature may be, inclusive. Default `"300s"`.
    pub max_future: Option<Time>,
    /// What to do with an event that has no id: `"hash"`: its content is its id; `"reject"`: answer 400.
    /// Default `"reject"` where the plugin says that every delivery has an id, else `"hash"`.
    pub no_event_id: Option<NoEventId>,
    /// What a known id on another body is: `"distinct"`: another event; `"duplicate"`: the same one. Default
    /// `"distinct"` where the plugin says that retries carry the same bytes, else `"duplicate"`.
    pub same_id_other_body: Option<SameIdOtherBody>,
    /// What a delivery does about one of the same event that is still at work: `"wait"`, then tell the provider
    /// to come again, or `"take_over"`. Default `"take_over"` where the provider retries at most once or too
    /// soon, else `"wait"`.
    pub in_flight: Option<InFlightPolicy>,
    /// What to do with an authentic event while the claim store is out of reach: `"reject"` (default): answer
    /// 503; `"forward"`: send it, flagged `possible-duplicate`: only the queue's window keeps copies apart then.
    pub claim_outage: ClaimOutage,
    /// What a delivery is of an event that was accepted longer ago than `redelivery_after`: `"suppress"`
    /// (default): a duplicate; `"forward"`: a redelivery that somebody asked the provider for, and one more
    /// message of the event. Only for providers that never retry by themselves, or no longer by then.
    pub redelivery: Option<Redelivery>,
    /// From when on a delivery is a redelivery. Default `"10m"` after the event was accepted.
    pub redelivery_after: Option<Time>,
    /// How long an event is remembered. Default: `store.claim_ttl`. Longer than the provider goes on retrying.
    pub claim_ttl: Option<Ttl>,
    /// How long an event that is known by its content is remembered: equal genuine events within it count as
    /// one. Default: as long as the provider goes on retrying, and never less than `queue.window` and a lease.
    pub content_ttl: Option<Time>,
    /// Whether keys of fewer than 16 bytes are taken. Default `false`.
    pub allow_weak_key: bool,
}

/// A file that is well formed: what it says, and what may be said about it.
pub struct Loaded {
    /// What the gateway is to do.
    pub settings: Settings,
    /// Warnings.
    pub problems: Problems,
    document: Document,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("settings", &self.settings)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// Problems with the lines of what they are about.
    #[must_use]
    pub fn located(&self, mut problems: Problems) -> Problems {
        self.document.locate(&mut problems);
        problems
    }
}

/// Reads a file and checks all that it says by itself, without plugins or secrets. Fails with every problem
/// that was found: such a file is malformed, and nothing can be started from it.
///
/// `env:NAME` in the place of a path is that environment variable, which holds the text itself: a container
/// then needs no file. Paths in it start at the working directory. A file of such a name is `./env:NAME`.
pub fn load(file: &Path, surroundings: &impl Surroundings) -> Result<Loaded, Problems> {
    let mut problems = Problems::of(file);
    let read = match file.to_str().and_then(|path| path.strip_prefix("env:")) {
        Some(name) => problem::set(name, surroundings.variable(name), &mut problems),
        None => problem::readable(surroundings.file(file), &mut problems),
    };
    let Some(text) = read else {
        return Err(problems);
    };
    let Some((document, config)) = Document::read(&text, &mut problems) else {
        return Err(problems);
    };
    let directory = file.parent().unwrap_or(Path::new(""));
    let settings = validate::validate(&config, directory, &mut problems);
    document.locate(&mut problems);
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(Loaded {
        settings,
        problems,
        document,
    })
}

//! From what was written to [`Settings`]: what the file says by itself is checked here, without plugins or
//! secrets.
//!
//! Collects every problem. Settings are plain values: paths are absolute or start at the working directory,
//! times are durations, and what must hold between them holds.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE;

use super::policy::MAX_LEASE;
use super::problem::{KeyPath, Problem, Problems};
use super::secret::SecretRef;
use super::units::{Ttl, shown};
use super::{Config, QueueKind, Redelivery, Source, StoreKind};
use crate::aws::AwsSettings;
use crate::crypto::KeyForm;
use crate::delivery::message::MAX_MESSAGE;
use crate::delivery::{Name, Ordering};
use crate::http::tls::{self, TlsFiles};
use crate::keys::HostPattern;
use crate::pipeline::Timing;
use crate::plugin::registry::Pins;
use crate::queue::sqs::SqsSettings;
use crate::store::dynamodb::DynamoSettings;
use crate::store::redis::{RedisSettings, RedisTimeouts};
use crate::tenants::{ClaimOutage, InFlightPolicy, NoEventId, SameIdOtherBody};
use crate::{http, plugin, pressure};

/// How long SQS FIFO remembers a deduplication id (SQS developer guide, "Exactly-once processing").
const SQS_WINDOW: Duration = Duration::from_secs(300);

/// How old, and how far ahead, a signature may be unless the source says otherwise.
const TOLERANCE: Duration = Duration::from_mins(5);

/// What the gateway is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where providers call.
    pub listen: SocketAddr,
    /// Where health checks and metrics are.
    pub admin_listen: SocketAddr,
    /// The certificate and key for TLS.
    pub tls: Option<TlsFiles>,
    /// What a connection may cost.
    pub http: http::Limits,
    /// How long to serve on after SIGTERM.
    pub drain_delay: Duration,
    /// Where the plugins are.
    pub plugin_directory: PathBuf,
    /// The digests that plugins' files must have.
    pub pins: Pins,
    /// How often files are looked at for changes; none where never.
    pub watch: Option<Duration>,
    /// What a plugin may cost, and where compiled ones are kept.
    pub plugin: plugin::Limits,
    /// The claim store and the queue.
    pub backend: BackendSettings,
    /// When new events are refused because too much waits.
    pub pressure: pressure::Limits,
    /// How keys are fetched.
    pub fetch: FetchSettings,
    /// Where a stand-in for AWS is.
    pub aws_endpoint: Option<String>,
    /// How long events are remembered, where that does not follow the queue.
    pub claim_ttl: Option<Duration>,
    /// The bounds on time, the window among them.
    pub timing: Timing,
    /// The largest message that the queue takes, in bytes.
    pub max_message: usize,
    /// All sources.
    pub sources: Vec<SourceSettings>,
}

impl Settings {
    /// Puts what a running gateway cannot change back to what it was, and tells the sections that this is in.
    pub fn keep_fixed(&mut self, before: &Self) -> Vec<&'static str> {
        let mut sections = Vec::new();
        macro_rules! keep {
            ($($section:literal: $($field:ident),+;)+) => {
                $($(
                    // None of these has a secret's value in it.
                    if format!("{:?}", self.$field) != format!("{:?}", before.$field)
                        && sections.last() != Some(&$section)
                    {
                        sections.push($section);
                    }
                    self.$field.clone_from(&before.$field);
                )+)+
            };
        }
        keep! {
            "[server]": listen, tls, http, drain_delay;
            "[admin]": admin_listen;
            "[plugins]": plugin;
            "[store] and [queue]": backend, timing, max_message;
            "[queue.pressure]": pressure;
            "[aws]": aws_endpoint;
            "[fetch]": fetch;
        }
        sections
    }
}

/// How keys and certificates are fetched from providers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchSettings {
    /// The authorities that are trusted; none takes the system's.
    pub certificate_authorities: Option<PathBuf>,
    /// Where hosts are, by their names in lower case.
    pub addresses: HashMap<String, SocketAddr>,
}

/// The claim store and the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendSettings {
    /// The claim store.
    pub store: StoreSettings,
    /// The queue.
    pub queue: QueueSettings,
}

impl BackendSettings {
    /// Whether any of it is elsewhere.
    pub fn is_remote(&self) -> bool {
        let is_local = matches!(
            self.store,
            StoreSettings::Embedded { .. } | StoreSettings::Memory
        );
        !is_local || matches!(self.queue, QueueSettings::Sqs(_))
    }

    /// The same with nothing in place of what is on this machine.
    #[must_use]
    pub fn remote_only(&self) -> Self {
        let mut remote = self.clone();
        if let StoreSettings::Embedded { .. } = remote.store {
            remote.store = StoreSettings::Memory;
        }
        if let QueueSettings::Embedded { .. } | QueueSettings::Store = remote.queue {
            remote.queue = QueueSettings::Memory;
        }
        remote
    }
}

/// The claim store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreSettings {
    /// A database on this machine.
    Embedded {
        /// Its directory.
        path: PathBuf,
    },
    /// A table of DynamoDB.
    DynamoDb(DynamoSettings),
    /// Servers of Redis.
    Redis(RedisServers),
    /// Nothing durable.
    Memory,
}

/// Servers of Redis, and where their passwords are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisServers {
    /// All but the passwords.
    pub settings: RedisSettings,
    /// Where the user's password is.
    pub password: Option<SecretRef>,
    /// Where the sentinels' password is.
    pub sentinel_password: Option<SecretRef>,
}

/// The queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueSettings {
    /// The store's database.
    Store,
    /// A database on this machine of its own.
    Embedded {
        /// Its directory.
        path: PathBuf,
    },
    /// A FIFO queue of SQS.
    Sqs(SqsSettings),
    /// Nothing durable.
    Memory,
}

/// A source as it was written, with what follows from the file alone.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The tenant's name.
    pub tenant: Name,
    /// The source's name.
    pub name: Name,
    /// The plugin's name.
    pub plugin: String,
    /// Where the active values of its secrets are.
    pub secrets: BTreeMap<String, Vec<SecretRef>>,
    /// How they become keys, where not as the plugin says.
    pub key_forms: BTreeMap<String, KeyForm>,
    /// The URL that the provider is told to call.
    pub public_url: Option<String>,
    /// The plugin's options.
    pub options: BTreeMap<String, String>,
    /// The hosts that keys may be fetched from.
    pub key_hosts: Vec<HostPattern>,
    /// Whether the answer to a handshake may hold a MAC.
    pub sign_challenges: bool,
    /// What stays in order.
    pub ordering: Ordering,
    /// How old a signature may be.
    pub max_age: Duration,
    /// How far ahead a signature may be.
    pub max_future: Duration,
    /// What to do with an event without an id; none leaves it to the plugin.
    pub no_event_id: Option<NoEventId>,
    /// What a known id on another body is; none leaves it to the plugin.
    pub same_id_other_body: Option<SameIdOtherBody>,
    /// What to do about an owner at work; none leaves it to the plugin.
    pub in_flight: Option<InFlightPolicy>,
    /// What to do while the claim store is out of reach.
    pub claim_outage: ClaimOutage,
    /// Whether a late delivery of an accepted event asks for one more message.
    pub redelivery: bool,
    /// How late; none leaves it to the default.
    pub redelivery_after: Option<Duration>,
    /// How long an event is remembered; none follows the queue and the provider.
    pub claim_ttl: Option<Duration>,
    /// How long an event known by its content is remembered; none follows the provider.
    pub content_ttl: Option<Duration>,
    /// Whether short keys are taken.
    pub allow_weak_key: bool,
}

impl SourceSettings {
    /// Where the source stands in the file.
    pub fn path(&self) -> KeyPath {
        source_path(self.tenant.as_str(), self.name.as_str())
    }
}

fn source_path(tenant: &str, source: &str) -> KeyPath {
    KeyPath::new(&["tenants", tenant, "sources", source])
}

/// The settings that the file asks for. Where problems were added they are not to be used.
pub(super) fn validate(config: &Config, directory: &Path, problems: &mut Problems) -> Settings {
    positive(config, problems);
    let settings = Settings {
        listen: address(&config.server.listen, "server", problems),
        admin_listen: address(&config.admin.listen, "admin", problems),
        tls: tls(config, directory, problems),
        http: http_limits(config),
        drain_delay: config.server.drain_delay.0,
        plugin_directory: directory.join(&config.plugins.directory),
        pins: pins(config, problems),
        watch: Some(config.plugins.watch.0).filter(|every| !every.is_zero()),
        plugin: plugin_limits(config, directory),
        backend: backend(config, directory, problems),
        pressure: pressure(config, problems),
        fetch: fetch(config, directory, problems),
        aws_endpoint: config.aws.endpoint.clone(),
        claim_ttl: fixed(config.store.claim_ttl),
        timing: timing(config, problems),
        max_message: config.queue.max_message.0,
        sources: sources(config, directory, problems),
    };
    store_ttl(config, &settings.timing, problems);
    relations(&settings, problems);
    settings
}

fn pins(config: &Config, problems: &mut Problems) -> Pins {
    let mut pins = Pins::new();
    for (name, text) in &config.plugins.pinned {
        let digest = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        match digest.and_then(|digest| digest.try_into().ok()) {
            Some(digest) => {
                pins.insert(name.clone(), digest);
            }
            None => problems.add_new(
                Problem::error(
                    KeyPath::new(&["plugins", "pinned"]).then(name),
                    "it is not the 64 hexadecimal digits of a SHA-256",
                )
                .hint("`sha256sum FILE` prints them"),
            ),
        }
    }
    pins
}

fn fetch(config: &Config, directory: &Path, problems: &mut Problems) -> FetchSettings {
    let mut addresses = HashMap::new();
    for (host, text) in &config.fetch.addresses {
        let path = KeyPath::new(&["fetch", "addresses"]).then(host);
        match text.parse() {
            Ok(address) => {
                addresses.insert(host.to_ascii_lowercase(), address);
            }
            Err(_) => problems.add_new(
                Problem::error(path, format!("{text:?} is not an address and port"))
                    .hint("write it as \"10.0.0.1:443\" or \"[fd00::1]:443\""),
            ),
        }
    }
    let authorities = config.fetch.certificate_authorities.as_ref();
    FetchSettings {
        certificate_authorities: authorities.map(|path| directory.join(path)),
        addresses,
    }
}

/// The certificate and its key, which are of no use without each other.
fn tls(config: &Config, directory: &Path, problems: &mut Problems) -> Option<TlsFiles> {
    let server = &config.server;
    let (given, missing) = match (&server.tls_certificate, &server.tls_key) {
        (None, None) => return None,
        (Some(certificate), Some(key)) => {
            let at = |path: &PathBuf| match tls::variable(path) {
                Some(_) => path.clone(),
                None => directory.join(path),
            };
            let (certificate, key) = (at(certificate), at(key));
            return Some(TlsFiles { certificate, key });
        }
        (Some(_), None) => ("tls_certificate", "tls_key"),
        (None, Some(_)) => ("tls_key", "tls_certificate"),
    };
    let what = format!("`server.{missing}` is missing, without which it is of no use");
    problems.add_new(Problem::error(KeyPath::new(&["server", given]), what));
    None
}

/// Refuses limits that would let nothing through.
fn positive(config: &Config, problems: &mut Problems) {
    let (server, plugins) = (&config.server, &config.plugins);
    let zero = [
        ("server", "max_body", server.max_body.0 == 0),
        ("server", "max_header_bytes", server.max_header_bytes.0 == 0),
        ("server", "max_headers", server.max_headers == 0),
        (
            "server",
            "header_timeout",
            server.header_timeout.0.is_zero(),
        ),
        ("server", "body_timeout", server.body_timeout.0.is_zero()),
        ("server", "max_connections", server.max_connections == 0),
        ("plugins", "fuel", plugins.fuel == 0),
        ("plugins", "memory", plugins.memory.0 == 0),
        ("plugins", "wall_clock", plugins.wall_clock.0.is_zero()),
        ("plugins", "concurrent_calls", plugins.concurrent_calls == 0),
        ("plugins", "output", plugins.output.0 == 0),
        ("queue", "max_message", config.queue.max_message.0 == 0),
    ];
    for (section, key, _) in zero.iter().filter(|(_, _, zero)| *zero) {
        let path = KeyPath::new(&[section, key]);
        problems.add_new(Problem::error(
            path,
            "it is zero, which would let nothing through",
        ));
    }
}

fn address(text: &str, section: &str, problems: &mut Problems) -> SocketAddr {
    text.parse().unwrap_or_else(|_| {
        let problem = Problem::error(
            KeyPath::new(&[section, "listen"]),
            format!("{text:?} is not an IP address and a port"),
        );
        problems.add_new(
            problem.hint("write it as \"0.0.0.0:8080\" or \"[::]:8080\"; names are not looked up"),
        );
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

fn http_limits(config: &Config) -> http::Limits {
    let server = &config.server;
    http::Limits {
        max_body: server.max_body.0,
        max_header_bytes: server.max_header_bytes.0,
        max_headers: server.max_headers,
        header_timeout: server.header_timeout.0,
        body_timeout: server.body_timeout.0,
        max_connections: server.max_connections,
        memory_budget: server.memory_budget.0,
    }
}

fn plugin_limits(config: &Config, directory: &Path) -> plugin::Limits {
    let plugins = &config.plugins;
    plugin::Limits {
        fuel: plugins.fuel,
        memory: plugins.memory.0,
        output: plugins.output.0,
        wall_clock: plugins.wall_clock.0,
        concurrent_calls: plugins.concurrent_calls,
        cache: plugins.cache.as_ref().map(|cache| directory.join(cache)),
        ..plugin::Limits::of(plugins.runtimes)
    }
}

fn backend(config: &Config, directory: &Path, problems: &mut Problems) -> BackendSettings {
    let (store, queue) = (&config.store, &config.queue);
    let kind = |section| KeyPath::new(&[section, "kind"]);
    let both_embedded = (store.kind, queue.kind) == (StoreKind::Embedded, QueueKind::Embedded);
    for (section, is_memory) in [
        ("store", store.kind == StoreKind::Memory),
        ("queue", queue.kind == QueueKind::Memory),
    ] {
        // Said once where both are.
        if is_memory && (section == "store" || store.kind != StoreKind::Memory) {
            let what = "nothing is durable: every event is lost when the gateway stops";
            problems.add_new(
                Problem::warning(kind(section), what)
                    .hint("use \"embedded\" for anything but measuring"),
            );
        }
    }
    let unused = [
        (
            "store",
            store.path.is_some() && store.kind != StoreKind::Embedded,
        ),
        (
            "queue",
            queue.path.is_some() && (queue.kind != QueueKind::Embedded || both_embedded),
        ),
    ];
    for (section, _) in unused.into_iter().filter(|(_, unused)| *unused) {
        let what = if both_embedded {
            "it is not used: store and queue are one database, at `store.path`".to_owned()
        } else {
            format!("it is not used: the {section} is not embedded")
        };
        problems.add_new(Problem::warning(KeyPath::new(&[section, "path"]), what));
    }
    let at = |path: &Option<PathBuf>| directory.join(path.as_deref().unwrap_or(Path::new("data")));
    let store = match store.kind {
        StoreKind::Embedded => StoreSettings::Embedded {
            path: at(&store.path),
        },
        StoreKind::Memory => StoreSettings::Memory,
        StoreKind::DynamoDb => StoreSettings::DynamoDb(dynamodb(config, problems)),
        StoreKind::Redis => StoreSettings::Redis(redis(config, directory, problems)),
    };
    let queue = match queue.kind {
        QueueKind::Embedded if both_embedded => QueueSettings::Store,
        QueueKind::Embedded => QueueSettings::Embedded {
            path: at(&queue.path),
        },
        QueueKind::Memory => QueueSettings::Memory,
        QueueKind::Sqs => QueueSettings::Sqs(sqs(config, problems)),
    };
    BackendSettings { store, queue }
}

fn dynamodb(config: &Config, problems: &mut Problems) -> DynamoSettings {
    let table = config.store.dynamodb.table.clone().unwrap_or_default();
    if table.is_empty() {
        let path = KeyPath::new(&["store", "dynamodb", "table"]);
        let problem = Problem::error(path, "it is missing");
        problems.add_new(problem.hint("name the table, as [store.dynamodb] table = \"NAME\""));
    }
    DynamoSettings {
        aws: aws(config, None, problems),
        table,
        timeout: Timing::default().claim_timeout,
    }
}

fn redis(config: &Config, directory: &Path, problems: &mut Problems) -> RedisServers {
    let redis = &config.store.redis;
    let path = KeyPath::new(&["store", "redis", "nodes"]);
    if redis.nodes.is_empty() && !problems.has_error_at(&path) {
        let problem = Problem::error(path, "it is missing");
        problems.add_new(
            problem.hint("name the servers, as [store.redis] nodes = [\"redis://HOST:6379\"]"),
        );
    }
    let below = |at: &Option<SecretRef>| at.as_ref().map(|at| at.below(directory));
    let authorities = redis.certificate_authorities.as_ref();
    let timing = Timing::default();
    RedisServers {
        password: below(&redis.password),
        sentinel_password: below(&redis.sentinel_password),
        settings: RedisSettings {
            nodes: redis.nodes.clone(),
            cluster: redis.cluster,
            sentinel_master: redis.sentinel_master.clone(),
            sentinel_password: None,
            username: redis.username.clone(),
            password: None,
            certificate_authorities: authorities.map(|path| directory.join(path)),
            allow_eviction: redis.allow_eviction,
            require_persistence: redis.require_persistence,
            wait_replicas: redis.wait_replicas,
            key_prefix: redis.key_prefix.clone(),
            timeouts: RedisTimeouts {
                connect: timing.claim_timeout,
                call: timing.claim_timeout,
                ..RedisTimeouts::default()
            },
        },
    }
}

fn sqs(config: &Config, problems: &mut Problems) -> SqsSettings {
    let sqs = &config.queue.sqs;
    let path = || KeyPath::new(&["queue", "sqs", "url"]);
    let url = sqs.url.clone().unwrap_or_default();
    if url.is_empty() {
        let problem = Problem::error(path(), "it is missing");
        problems.add_new(problem.hint(
            "name the queue, as [queue.sqs] url = \"https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.fifo\"",
        ));
    } else if !url.starts_with("https://") && !url.starts_with("http://") {
        let what = format!("{url:?} is not a queue's URL");
        let hint = "write it as https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.fifo";
        problems.add_new(Problem::error(path(), what).hint(hint));
    } else if url.strip_suffix(".fifo").is_none() {
        let what = "it is a standard queue, which keeps neither order nor one copy: FIFO queues end in .fifo";
        let hint = "make a FIFO queue; a standard queue cannot become one";
        problems.add_new(Problem::error(path(), what).hint(hint));
    }
    if sqs.batches == 0 {
        let path = KeyPath::new(&["queue", "sqs", "batches"]);
        problems.add_new(Problem::error(
            path,
            "it is zero, which would let nothing through",
        ));
    }
    if config.queue.window.0 != SQS_WINDOW {
        let path = KeyPath::new(&["queue", "window"]);
        let problem = Problem::error(path, "SQS FIFO remembers for 300 s, which cannot be chosen");
        problems.add_new(problem.hint("leave it out"));
    }
    SqsSettings {
        aws: aws(config, region_of(&url), problems),
        url,
        timeout: Timing::default().enqueue_timeout,
        linger: sqs.linger.0,
        batches: sqs.batches,
        max_bytes: config.queue.max_message.0.min(MAX_MESSAGE),
    }
}

/// The region in a queue's URL at AWS.
fn region_of(url: &str) -> Option<&str> {
    let host = url.strip_prefix("https://sqs.")?.split('/').next()?;
    host.split_once(".amazonaws.com").map(|(region, _)| region)
}

fn aws(config: &Config, of_url: Option<&str>, problems: &mut Problems) -> AwsSettings {
    let written = config.aws.region.as_deref();
    if let (Some(written), Some(of_url)) = (written, of_url)
        && written != of_url
    {
        let what = format!("{written:?} is not the region of `queue.sqs.url`, which is {of_url:?}");
        problems.add_new(Problem::error(KeyPath::new(&["aws", "region"]), what));
    }
    if let Some(endpoint) = &config.aws.endpoint
        && !endpoint.starts_with("http://")
        && !endpoint.starts_with("https://")
    {
        let what = format!("{endpoint:?} begins with neither http:// nor https://");
        problems.add_new(Problem::error(KeyPath::new(&["aws", "endpoint"]), what));
    }
    AwsSettings {
        region: written.or(of_url).map(str::to_owned),
        endpoint: config.aws.endpoint.clone(),
    }
}

fn pressure(config: &Config, problems: &mut Problems) -> pressure::Limits {
    let written = &config.queue.pressure;
    let at = |key| KeyPath::new(&["queue", "pressure", key]);
    let low_water = written.low_water.unwrap_or(written.high_water / 5 * 4);
    let zero = [
        ("high_water", written.high_water == 0),
        ("poll", written.poll.0.is_zero()),
        ("max_running", written.max_running == 0),
        ("slow_send", written.slow_send.0.is_zero()),
    ];
    for (key, _) in zero.into_iter().filter(|(_, zero)| *zero) {
        problems.add_new(Problem::error(
            at(key),
            "it is zero, which would let nothing through",
        ));
    }
    if low_water > written.high_water {
        let what = "it is above `high_water`";
        problems.add_new(Problem::error(at("low_water"), what));
    }
    pressure::Limits {
        high_water: written.high_water,
        low_water,
        poll: written.poll.0,
        max_running: written.max_running,
        slow_send: written.slow_send.0,
        memory_budget: config.server.memory_budget.0,
    }
}

/// What lives in this process has no clock but its own.
fn timing(config: &Config, problems: &mut Problems) -> Timing {
    let standard = Timing::default();
    let is_local = matches!(config.store.kind, StoreKind::Embedded | StoreKind::Memory)
        && config.queue.kind != QueueKind::Sqs;
    let timing = Timing {
        window: config.queue.window.0,
        skew: if is_local {
            Duration::ZERO
        } else {
            standard.skew
        },
        ..standard
    };
    if !timing.allows(MAX_LEASE) {
        let least = 2 * (MAX_LEASE + 2 * timing.skew + timing.enqueue_timeout);
        let what = format!(
            "{} is too short: a lease of {} and an enqueue timeout of {} must fit into half of it",
            shown(timing.window),
            shown(MAX_LEASE),
            shown(timing.enqueue_timeout),
        );
        let path = KeyPath::new(&["queue", "window"]);
        problems.add_new(Problem::error(path, what).hint(format!("at least \"{}\"", shown(least))));
    }
    timing
}

/// What is too short for any provider is no matter of the sources.
fn store_ttl(config: &Config, timing: &Timing, problems: &mut Problems) {
    let least = timing.window + MAX_LEASE;
    if let Ttl::Fixed(ttl) = config.store.claim_ttl
        && ttl < least
    {
        let (ttl, window, longest) = (shown(ttl), shown(timing.window), shown(MAX_LEASE));
        let what = format!(
            "{ttl} is too short: the queue's window and a lease take {window} and {longest}"
        );
        let problem = Problem::error(KeyPath::new(&["store", "claim_ttl"]), what);
        problems.add_new(problem.hint(format!("use \"auto\", or at least \"{}\"", shown(least))));
    }
}

fn relations(settings: &Settings, problems: &mut Problems) {
    let http = &settings.http;
    if http.memory_budget < http.max_body {
        let what =
            "it is less than `server.max_body`: the largest body would always be answered 503";
        problems.add_new(Problem::error(
            KeyPath::new(&["server", "memory_budget"]),
            what,
        ));
    }
    if settings.listen == settings.admin_listen && settings.listen.port() != 0 {
        let what = "it is the same as `server.listen`";
        problems.add_new(
            Problem::error(KeyPath::new(&["admin", "listen"]), what)
                .hint("give it a port of its own"),
        );
    }
    if settings.sources.is_empty() && !problems.has_errors() {
        let what = "there are no sources: every delivery will be answered 404";
        problems.add_new(
            Problem::warning(KeyPath::new(&["tenants"]), what)
                .hint("add one, as [tenants.TENANT.sources.SOURCE]"),
        );
    }
}

fn sources(config: &Config, directory: &Path, problems: &mut Problems) -> Vec<SourceSettings> {
    let mut all = Vec::new();
    for (tenant, of_tenant) in &config.tenants {
        let tenant_name = name(tenant, &KeyPath::new(&["tenants", tenant]), problems);
        for (source, written) in &of_tenant.sources {
            let path = source_path(tenant, source);
            // First, since a source that could not be read has no other mistakes.
            if !problems.has_error_at(&path) {
                check_source(written, &path, problems);
            }
            let source_name = name(source, &path, problems);
            if let (Some(tenant), Some(name)) = (&tenant_name, source_name) {
                let default_ttl = config.store.claim_ttl;
                all.push(source_settings(
                    tenant.clone(),
                    name,
                    written,
                    default_ttl,
                    directory,
                ));
            }
        }
    }
    all
}

fn name(text: &str, path: &KeyPath, problems: &mut Problems) -> Option<Name> {
    let name = Name::new(text);
    if name.is_none() {
        problems.add_new(Problem::error(path.clone(), format!("{text:?} is not a name")).hint(
            "use lower-case letters, digits and hyphens, at most 63, and none of the hyphens first",
        ));
    }
    name
}

fn check_source(source: &Source, path: &KeyPath, problems: &mut Problems) {
    match source.plugin.as_deref() {
        None => problems.add_new(
            Problem::error(path.then("plugin"), "it is missing").hint("name the provider's plugin"),
        ),
        Some("") => problems.add_new(Problem::error(path.then("plugin"), "it is empty")),
        Some(_) => {}
    }
    for name in source
        .key_forms
        .keys()
        .filter(|name| !source.secrets.contains_key(*name))
    {
        let secret = path.then("secrets").then(name);
        // The secret may be there, but unreadable.
        if !problems.has_error_at(&secret) && !problems.has_error_at(&path.then("secrets")) {
            let path = path.then("key_forms").then(name);
            problems.add_new(Problem::error(
                path,
                format!("the source has no secret {name:?}"),
            ));
        }
    }
    if let Some(url) = &source.public_url
        && !["https://", "http://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
    {
        let what = "it does not begin with https:// or http://, as what providers sign does";
        problems.add_new(
            Problem::warning(path.then("public_url"), what)
                .hint("write it exactly as the provider is told it"),
        );
    }
    for host in source
        .key_hosts
        .iter()
        .filter(|host| HostPattern::new(host).is_none())
    {
        problems.add_new(
            Problem::error(
                path.then("key_hosts"),
                format!("{host:?} is not a host's name"),
            )
            .hint(
                "name it without scheme, port and path; only labels before the last two may be `*`",
            ),
        );
    }
    for (key, time) in [
        ("max_age", source.max_age),
        ("content_ttl", source.content_ttl),
    ] {
        if time.is_some_and(|time| time.0.is_zero()) {
            problems.add_new(Problem::error(
                path.then(key),
                "it is zero, which would let nothing through",
            ));
        }
    }
}

fn source_settings(
    tenant: Name,
    name: Name,
    source: &Source,
    default_ttl: Ttl,
    directory: &Path,
) -> SourceSettings {
    let below = |refs: &super::SecretRefs| refs.0.iter().map(|at| at.below(directory)).collect();
    SourceSettings {
        tenant,
        name,
        plugin: source.plugin.clone().unwrap_or_default(),
        secrets: source
            .secrets
            .iter()
            .map(|(name, refs)| (name.clone(), below(refs)))
            .collect(),
        key_forms: source.key_forms.clone(),
        public_url: source.public_url.clone(),
        options: source
            .options
            .iter()
            .map(|(name, value)| (name.clone(), option(value)))
            .collect(),
        ordering: source.ordering,
        max_age: source.max_age.map_or(TOLERANCE, |time| time.0),
        max_future: source.max_future.map_or(TOLERANCE, |time| time.0),
        no_event_id: source.no_event_id,
        same_id_other_body: source.same_id_other_body,
        in_flight: source.in_flight,
        claim_outage: source.claim_outage,
        redelivery: source.redelivery == Some(Redelivery::Forward),
        redelivery_after: source.redelivery_after.map(|time| time.0),
        claim_ttl: fixed(source.claim_ttl.unwrap_or(default_ttl)),
        content_ttl: source.content_ttl.map(|time| time.0),
        key_hosts: source
            .key_hosts
            .iter()
            .filter_map(|host| HostPattern::new(host))
            .collect(),
        sign_challenges: source.sign_challenges,
        allow_weak_key: source.allow_weak_key,
    }
}

fn fixed(ttl: Ttl) -> Option<Duration> {
    match ttl {
        Ttl::Auto => None,
        Ttl::Fixed(ttl) => Some(ttl),
    }
}

fn option(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => json(other).to_string(),
    }
}

/// TOML's own serialization would make a table of a date.
fn json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.iter().map(json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), json(value)))
            .collect(),
    }
}

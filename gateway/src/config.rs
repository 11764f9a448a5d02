//! What the operator wrote: one TOML file, read strictly.
//!
//! The fields' documentation is the reference (`docs/configuration.md` is made of it). Unknown keys are
//! refused, quantities carry their unit, and a secret's value never stands here: only where it is. Nothing in
//! this file checks one field against another; that is [`validate`]'s, and what needs plugins or secrets is
//! [`sources`]'. Adapters never see these types, only the plain settings that come of them.

mod document;
mod policy;
pub mod problem;
#[cfg(test)]
mod reference;
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
use crate::tenants::{InFlightPolicy, NoEventId, SameIdOtherBody};

use document::Document;
pub use problem::{Problem, Problems, Severity};
use secret::{SecretRefs, Surroundings};
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
    /// The tenants by name: lower-case letters, digits and hyphens, at most 63.
    pub tenants: BTreeMap<String, Tenant>,
}

/// The listener that providers call.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    /// The address and port. Default `"127.0.0.1:8080"`; port 0 takes a free one.
    pub listen: String,
    /// The certificate for TLS and those between it and the authority, as PEM. Default: no TLS. With it HTTP/2
    /// and HTTP/1.1 are served as the client prefers; without it too, in clear.
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's private key, as PEM.
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
        }
    }
}

/// The claim store, which knows what became of every event.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    /// `"embedded"` (default): one database with the queue, on this machine's disk. `"memory"`: for measuring
    /// only, since nothing is durable.
    pub kind: Kind,
    /// The directory of the embedded database. Default `"data"`. For `kind = "embedded"` only.
    pub path: Option<PathBuf>,
    /// How long an event is remembered, so that its deliveries are duplicates: a duration, or `"auto"`
    /// (default): 15 days, and longer than any provider goes on retrying.
    pub claim_ttl: Ttl,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            kind: Kind::Embedded,
            path: None,
            claim_ttl: Ttl::Auto,
        }
    }
}

/// The queue that accepted events go to.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Queue {
    /// `"embedded"` (default) or `"memory"`; the same as `store.kind`.
    pub kind: Kind,
    /// How long the queue remembers a deduplication id. Default `"300s"`, which is SQS FIFO's.
    pub window: Time,
    /// The largest message, body and attributes. Default `"1MiB"`. An event whose message would be larger is
    /// answered 413.
    pub max_message: Size,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            kind: Kind::Embedded,
            window: Time::seconds(300),
            max_message: Size(crate::delivery::message::MAX_MESSAGE),
        }
    }
}

/// What keeps claims or messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Embedded,
    Memory,
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
    /// How the values of a secret become keys, by the secret's name: `"raw"` (its bytes), `"hex"`, `"base64"`,
    /// `"whsec"` (base64 behind an optional `whsec_`), `"whpk"` (a public key in base64 behind an optional
    /// `whpk_`), `"sha1"` or `"sha256"` (its digest). What a public key decodes to is the raw key of Ed25519 or
    /// of an uncompressed P-256 point, or DER. Default: as the plugin says.
    pub key_forms: BTreeMap<String, KeyForm>,
    /// The URL that the provider is told to call, exactly as it is told. Required where the provider signs it.
    pub public_url: Option<String>,
    /// The plugin's options: text as it is, anything else as JSON.
    pub options: BTreeMap<String, toml::Value>,
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

/// Reads a file and checks all that it says by itself, without plugins or secrets. Fails with every problem
/// that was found: such a file is malformed, and nothing can be started from it.
pub fn load(file: &Path, surroundings: &impl Surroundings) -> Result<Loaded, Problems> {
    let mut problems = Problems::of(file);
    let Some(text) = problem::readable(surroundings.file(file), &mut problems) else {
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

//! Keys and certificates by URL: fetched, checked and kept here, for plugins that name them.
//!
//! A plugin is never waited in: one that names a key that is not at hand is ended, the key is fetched, and the
//! plugin runs anew. Only hosts that the manifest names and the operator approved are asked, by HTTPS. What a
//! sender may name at will costs one small request at most, its answer, good or bad, is remembered, and a few
//! are on their way at once. Knows no plugin's runtime and no HTTP client: [`Fetch`] is the seam.

mod host;
pub mod https;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use dashmap::DashMap;
use rustls::RootCertStore;
use tokio::sync::{Mutex, Semaphore};

use crate::clock::SharedClock;
use crate::crypto::PublicKey;
use crate::crypto::certificate::Certificate;
use crate::crypto::jwk::KeySet;
use crate::plugin::manifest::CertificateSpec;
use crate::telemetry::SharedTelemetry;

pub use host::HostPattern;

/// The largest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = 256 << 10;
/// Documents kept at once, failures among them.
const MAX_KEPT: usize = 1024;
/// Requests on their way at once.
const AT_ONCE: usize = 4;
/// How long a document is kept where its answer does not say, and the bounds where it does.
const KEEP: Duration = Duration::from_hours(1);
const KEEP_LEAST: Duration = Duration::from_mins(5);
const KEEP_MOST: Duration = Duration::from_hours(24);
/// For how long the same refusal is not asked for again.
const KEEP_REFUSED: Duration = Duration::from_mins(1);
/// For how long the same failure is not asked for again.
const KEEP_FAILED: Duration = Duration::from_secs(5);
/// How long a document serves on while a newer one cannot be had.
const KEEP_STALE: Duration = Duration::from_hours(24);
/// How old a set must be before a key that it does not have is looked for in a newer one.
const KEEP_SET: Duration = Duration::from_mins(1);

/// A document as it was fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its bytes, at most [`MAX_DOCUMENT`].
    pub body: Bytes,
    /// How long it may be kept, where the answer says.
    pub max_age: Option<Duration>,
}

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Asking again helps nobody.
    #[error("{0}")]
    Refused(String),
    /// Asking again may help.
    #[error("{0}")]
    Unavailable(String),
}

/// A request on its way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, FetchError>> + Send + 'a>>;

/// What asks hosts: one GET by HTTPS, without redirects.
pub trait Fetch: Send + Sync {
    /// The document at a URL.
    fn get<'a>(&'a self, url: &'a str) -> Fetching<'a>;
}

/// A document that is wanted, and as what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    url: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Certificate(CertificateSpec),
    KeySet,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoKey {
    /// It has to be fetched first.
    Needed(Wanted),
    /// What claims to be signed with it is not authentic: the reason.
    Refused(String),
    /// Nobody can tell for now: the reason.
    Unavailable(String),
}

/// A document, read.
enum Document {
    Certificate(Certificate),
    KeySet(KeySet),
}

/// A key of a document.
pub struct KeyRef {
    document: Arc<Document>,
    id: String,
}

impl KeyRef {
    /// The key.
    pub fn key(&self) -> Option<&PublicKey> {
        match &*self.document {
            Document::Certificate(certificate) => Some(&certificate.key),
            Document::KeySet(set) => set.find(&self.id),
        }
    }
}

/// What came of a document, and until when, by the monotonic clock, that holds.
struct Held {
    document: Result<Arc<Document>, FetchError>,
    fetched: Duration,
    /// When it was last asked for.
    asked: Duration,
    /// Why a newer one could not be had then.
    trouble: Option<String>,
    until: Duration,
}

#[derive(Default)]
struct Slot {
    held: ArcSwapOption<Held>,
    /// Held by the one that fetches, so that it is fetched once.
    turn: Mutex<()>,
}

/// All documents of the gateway.
pub struct Keys {
    fetch: Box<dyn Fetch>,
    roots: Arc<RootCertStore>,
    clock: SharedClock,
    telemetry: SharedTelemetry,
    slots: DashMap<Wanted, Arc<Slot>>,
    at_once: Semaphore,
}

impl Keys {
    /// None yet. `roots` vouch for certificates whose manifest demands a chain.
    pub fn new(
        fetch: Box<dyn Fetch>,
        roots: RootCertStore,
        clock: SharedClock,
        telemetry: SharedTelemetry,
    ) -> Arc<Self> {
        Arc::new(Self {
            fetch,
            roots: Arc::new(roots),
            clock,
            telemetry,
            slots: DashMap::new(),
            at_once: Semaphore::new(AT_ONCE),
        })
    }

    fn held(&self, wanted: &Wanted) -> Option<Arc<Held>> {
        self.slots.get(wanted)?.held.load_full()
    }

    fn look(&self, wanted: &Wanted) -> Result<Arc<Document>, NoKey> {
        match self.held(wanted) {
            Some(held) if self.clock.monotonic() < held.until => match &held.document {
                Ok(document) => Ok(Arc::clone(document)),
                Err(FetchError::Refused(reason)) => Err(NoKey::Refused(reason.clone())),
                Err(FetchError::Unavailable(reason)) => Err(NoKey::Unavailable(reason.clone())),
            },
            _ => Err(NoKey::Needed(wanted.clone())),
        }
    }

    /// Fetches a document, or waits for whoever does. Never fails: what came of it is found by the next look.
    async fn fetch(&self, wanted: &Wanted) {
        let Some(slot) = self.slot(wanted) else {
            return;
        };
        let seen = slot.held.load_full();
        let _turn = slot.turn.lock().await;
        let before = slot.held.load_full();
        // Whoever had the turn before has fetched it meanwhile.
        if before.as_ref().map(Arc::as_ptr) != seen.as_ref().map(Arc::as_ptr) {
            return;
        }
        // What anybody can ask for waits its turn; a key that was good does not wait behind that.
        let was_good = before.as_ref().is_some_and(|held| held.document.is_ok());
        let (result, keep) = {
            let _place = match was_good {
                true => None,
                false => self.at_once.acquire().await.ok(),
            };
            self.read(wanted).await
        };
        let now = self.clock.monotonic();
        self.telemetry.key_fetched(match &result {
            Ok(_) => "ok",
            Err(FetchError::Refused(_)) => "refused",
            Err(FetchError::Unavailable(_)) => "unavailable",
        });
        if let Err(error) = &result {
            tracing::warn!(url = %wanted, %error, "no key could be fetched");
        }
        let trouble = match &result {
            Err(FetchError::Unavailable(reason)) => Some(reason.clone()),
            Ok(_) | Err(FetchError::Refused(_)) => None,
        };
        let (document, fetched) = match (result, before) {
            // A document that was good serves on: the keys of others do not wait for this one's host.
            (Err(FetchError::Unavailable(reason)), Some(before)) => {
                let is_young = now < before.fetched + KEEP_STALE;
                match before.document.as_ref().ok().filter(|_| is_young) {
                    Some(document) => (Ok(Arc::clone(document)), before.fetched),
                    None => (Err(FetchError::Unavailable(reason)), now),
                }
            }
            (result, _) => (result.map(Arc::new), now),
        };
        let until = now + keep;
        slot.held.store(Some(Arc::new(Held {
            document,
            fetched,
            asked: now,
            trouble,
            until,
        })));
    }

    /// The place of a document; none where too many are kept.
    fn slot(&self, wanted: &Wanted) -> Option<Arc<Slot>> {
        if let Some(slot) = self.slots.get(wanted) {
            return Some(Arc::clone(&slot));
        }
        if self.slots.len() >= MAX_KEPT {
            // Refusals first, which anybody can cause: keys that are in use stay, and are fetched anew in time.
            let now = self.clock.monotonic();
            let is_of_use = |held: &Held| held.document.is_ok() && now < held.fetched + KEEP_STALE;
            let stays = |slot: &Slot| slot.held.load().as_deref().is_none_or(is_of_use);
            self.slots.retain(|_, slot| stays(slot));
        }
        if self.slots.len() >= MAX_KEPT {
            tracing::warn!(url = %wanted, kept = MAX_KEPT, "too many keys by URL: not fetched");
            return None;
        }
        Some(Arc::clone(&self.slots.entry(wanted.clone()).or_default()))
    }

    async fn read(&self, wanted: &Wanted) -> (Result<Document, FetchError>, Duration) {
        match self.fetch.get(&wanted.url).await {
            Ok(fetched) => match self.document(&wanted.kind, &fetched.body) {
                Ok(document) => {
                    let keep = fetched.max_age.unwrap_or(KEEP);
                    (Ok(document), keep.clamp(KEEP_LEAST, KEEP_MOST))
                }
                Err(reason) => (Err(FetchError::Refused(reason)), KEEP_REFUSED),
            },
            Err(error @ FetchError::Refused(_)) => (Err(error), KEEP_REFUSED),
            Err(error @ FetchError::Unavailable(_)) => (Err(error), KEEP_FAILED),
        }
    }

    fn document(&self, kind: &Kind, body: &[u8]) -> Result<Document, String> {
        match kind {
            Kind::KeySet => KeySet::read(body)
                .map(Document::KeySet)
                .ok_or_else(|| "it is not a JSON Web Key Set".into()),
            Kind::Certificate(spec) => {
                let certificate = Certificate::read(body).map_err(|error| error.to_string())?;
                let patterns: Vec<_> = spec
                    .names
                    .iter()
                    .filter_map(|n| HostPattern::new(n))
                    .collect();
                let is_meant = |name: &&String| patterns.iter().any(|p| p.matches(name));
                let name = certificate.names.iter().find(is_meant);
                let other = || format!("it is for {}", certificate.names.join(", "));
                let name = name.ok_or_else(other)?.to_owned();
                if spec.chain {
                    let now = self.clock.wall_ms();
                    let checked = certificate.check_chain(&self.roots, &name, now);
                    checked.map_err(|error| error.to_string())?;
                }
                Ok(Document::Certificate(certificate))
            }
        }
    }
}

/// The keys by URL of a source.
pub struct Remote {
    origin: Origin,
    approved: Vec<HostPattern>,
    certificates: Option<CertificateSpec>,
}

enum Origin {
    Keys(Arc<Keys>),
    /// One certificate, whatever the URL, never mind its names and when it was valid: for tests of signatures.
    Certificate(Arc<Document>),
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("approved", &self.approved)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Documents of these hosts.
    pub fn new(
        keys: Arc<Keys>,
        approved: Vec<HostPattern>,
        certificates: Option<CertificateSpec>,
    ) -> Self {
        Self {
            origin: Origin::Keys(keys),
            approved,
            certificates,
        }
    }

    /// This certificate at every URL of these hosts; the error says why it is none.
    pub fn of_certificate(pem: &[u8], approved: Vec<HostPattern>) -> Result<Self, String> {
        let certificate = Certificate::read(pem).map_err(|error| error.to_string())?;
        Ok(Self {
            origin: Origin::Certificate(Arc::new(Document::Certificate(certificate))),
            approved,
            certificates: Some(CertificateSpec::default()),
        })
    }

    /// The key of the certificate at this URL, which must be valid at `now`, in ms since 1970.
    pub fn certificate(&self, url: &str, now: u64) -> Result<KeyRef, NoKey> {
        self.check(url)?;
        let spec = self.certificates.clone().unwrap_or_default();
        let document = match &self.origin {
            Origin::Certificate(document) => Arc::clone(document),
            Origin::Keys(keys) => {
                let url = url.to_owned();
                let kind = Kind::Certificate(spec);
                let document = keys.look(&Wanted { url, kind })?;
                if matches!(&*document, Document::Certificate(found) if !found.is_valid_at(now)) {
                    return Err(NoKey::Refused("its certificate is not valid now".into()));
                }
                document
            }
        };
        let id = String::new();
        Ok(KeyRef { document, id })
    }

    /// The key of that id of the JSON Web Key Set at this URL.
    pub fn of_set(&self, url: &str, id: &str) -> Result<KeyRef, NoKey> {
        self.check(url)?;
        let Origin::Keys(keys) = &self.origin else {
            return Err(NoKey::Refused("there is no key set".into()));
        };
        let (url, kind) = (url.to_owned(), Kind::KeySet);
        let wanted = Wanted { url, kind };
        let key = KeyRef {
            document: keys.look(&wanted)?,
            id: id.to_owned(),
        };
        if key.key().is_some() {
            return Ok(key);
        }
        // It may have been published since; where nobody can tell, the sender comes again.
        let held = keys
            .held(&wanted)
            .ok_or_else(|| NoKey::Needed(wanted.clone()))?;
        let again = if held.trouble.is_some() {
            KEEP_FAILED
        } else {
            KEEP_SET
        };
        if keys.clock.monotonic() >= held.asked + again {
            return Err(NoKey::Needed(wanted));
        }
        if let Some(reason) = &held.trouble {
            return Err(NoKey::Unavailable(reason.clone()));
        }
        Err(NoKey::Refused("the key set has no key of that id".into()))
    }

    /// Whether this URL may be asked.
    pub fn is_approved(&self, url: &str) -> bool {
        self.check(url).is_ok()
    }

    fn check(&self, url: &str) -> Result<(), NoKey> {
        let host = host::of_url(url).map_err(|reason| NoKey::Refused(reason.into()))?;
        if self.approved.iter().any(|pattern| pattern.matches(&host)) {
            return Ok(());
        }
        let reason = format!(
            "`key_hosts` does not approve of {:?}",
            host.escape_debug().to_string()
        );
        Err(NoKey::Refused(reason))
    }

    /// Fetches what was found to be needed. Cancel safe: it goes on by itself.
    pub async fn fetch(&self, wanted: Wanted) {
        let Origin::Keys(keys) = &self.origin else {
            return;
        };
        let keys = Arc::clone(keys);
        let fetching = tokio::spawn(async move { keys.fetch(&wanted).await });
        let _ = fetching.await;
    }

    /// Asks this URL, whose answer nobody reads.
    pub async fn confirm(&self, url: &str) -> Result<(), FetchError> {
        match &self.origin {
            Origin::Keys(keys) => {
                let _place = keys.at_once.acquire().await;
                keys.fetch.get(url).await.map(|_| ())
            }
            Origin::Certificate(_) => Ok(()),
        }
    }
}

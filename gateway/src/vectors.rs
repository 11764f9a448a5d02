//! Published signatures as tests of a plugin: reads vectors, and runs each against a source of its own.
//!
//! Knows the plugin seam alone, so it holds the real WebAssembly in the real host to them, and an
//! in-process plugin just as well. A vector passes only if what came out is what it expects: a fault is never
//! a refusal, and a vector whose secret is no key proves nothing.

mod explain;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::crypto::{Key, KeyError, KeyForm, Keyring, PublicKey};
use crate::delivery::{Delivery, Event, RejectKind, Rejection, Response, Verdict};
use crate::keys::{HostPattern, Remote};
use crate::plugin::manifest::{SecretKind, SecretSpec};
use crate::plugin::{Manifest, Plugin, Setup};

pub use explain::explain;

/// How old a signature may be and how far ahead, in ms: what a source has that says nothing else.
const TOLERANCE_MS: u64 = 300_000;
/// When a delivery arrives whose vector gives no time, in ms since 1970: no tolerance is held against it.
const SOME_TIME_MS: u64 = 1_700_000_000_000;
/// The URL of a source whose scheme does not sign it.
const SOME_URL: &str = "https://example.test/";

/// A delivery as a provider published it, and what must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Vector {
    /// The provider.
    pub provider: String,
    /// The signature scheme, as manifests name it.
    pub scheme: String,
    /// What it is.
    pub kind: Kind,
    /// The request's method.
    pub method: Method,
    /// The full URL that the provider called, where the scheme signs it.
    pub url: Option<String>,
    /// The headers as sent.
    pub headers: HeaderMap,
    /// The body's bytes.
    pub body: Bytes,
    /// The values of the options that the manifest requires and nothing else gives, in their order; then the
    /// active values of its first secret, any of which may match.
    pub secrets: Vec<String>,
    /// The value of the manifest's first public key.
    pub public_key: Option<String>,
    /// What is found at the URL of a certificate. Published ones have expired: neither that nor who vouches for
    /// them is held against it.
    pub cert_pem: Option<String>,
    /// The signature header's name, for a plugin that has it as its option `header`.
    pub sig_header: Option<String>,
    /// When to verify, in seconds since 1970; none: the tolerance is off.
    pub timestamp_now: Option<u64>,
    /// What must come of it.
    pub expect: Expect,
    /// The id that must come out, where the delivery is valid.
    pub event_id: Option<String>,
    /// The body of the answer to a handshake.
    pub expected_response: Option<String>,
}

/// What a vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An event's delivery.
    Webhook,
    /// A request that proves who listens at the URL, answered at once.
    Handshake,
}

/// What must come of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// It is authentic.
    Valid,
    /// It is refused.
    Invalid,
}

/// A vector as it is written.
#[derive(Deserialize)]
struct Fields {
    provider: String,
    scheme: String,
    #[serde(default = "webhook")]
    kind: Kind,
    #[serde(default = "post")]
    method: String,
    url: Option<String>,
    #[serde(default)]
    headers: Pairs,
    body: Option<String>,
    body_base64: Option<String>,
    body_repeat: Option<Repeat>,
    #[serde(default)]
    secrets: Vec<String>,
    public_key: Option<String>,
    cert_pem: Option<String>,
    sig_header: Option<String>,
    timestamp_now: Option<u64>,
    expect: Expect,
    event_id: Option<String>,
    expected_response: Option<String>,
}

fn webhook() -> Kind {
    Kind::Webhook
}

fn post() -> String {
    "POST".into()
}

#[derive(Deserialize)]
struct Repeat {
    text: String,
    times: usize,
}

impl TryFrom<Fields> for Vector {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        Ok(Self {
            body: body(&fields)?,
            method: Method::from_bytes(fields.method.as_bytes())
                .map_err(|_| format!("`method` is {:?}", fields.method))?,
            headers: fields.headers.to_map()?,
            provider: fields.provider,
            scheme: fields.scheme,
            kind: fields.kind,
            url: fields.url,
            secrets: fields.secrets,
            public_key: fields.public_key,
            cert_pem: fields.cert_pem,
            sig_header: fields.sig_header,
            timestamp_now: fields.timestamp_now,
            expect: fields.expect,
            event_id: fields.event_id,
            expected_response: fields.expected_response,
        })
    }
}

fn body(fields: &Fields) -> Result<Bytes, String> {
    match (&fields.body, &fields.body_base64, &fields.body_repeat) {
        (body, None, None) => Ok(body.clone().unwrap_or_default().into()),
        (None, Some(text), None) => BASE64
            .decode(text.as_bytes())
            .map(Bytes::from)
            .map_err(|error| format!("`body_base64`: {error}")),
        (None, None, Some(repeat)) => Ok(repeat.text.repeat(repeat.times).into()),
        _ => Err("it has more than one of `body`, `body_base64` and `body_repeat`".into()),
    }
}

/// An object's members in their order, a name any number of times.
#[derive(Default)]
struct Pairs(Vec<(String, String)>);

impl Pairs {
    fn to_map(&self) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.0 {
            let header = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value.as_bytes());
            let (Ok(header), Ok(value)) = (header, value) else {
                return Err(format!("the header {name:?} cannot be sent"));
            };
            map.append(header, value);
        }
        Ok(map)
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers as an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Members)
    }
}

/// How a generic plugin is set up: by `"<scheme>/<provider>"`, else by `"<scheme>"`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Presets(BTreeMap<String, Preset>);

impl Presets {
    fn find(&self, vector: &Vector) -> Option<&Preset> {
        let of_provider = self
            .0
            .get(&format!("{}/{}", vector.scheme, vector.provider));
        of_provider.or_else(|| self.0.get(&vector.scheme))
    }
}

/// A source's setup, beside its secrets.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Preset {
    #[serde(default)]
    options: BTreeMap<String, serde_json::Value>,
    /// By the secret's name in the manifest.
    #[serde(default)]
    key_forms: BTreeMap<String, KeyForm>,
}

/// Why a file of vectors or presets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// It cannot be read.
    #[error("reading {}: {source}\nhint: check that the file exists and that this user may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("reading {}: it is not {what}: {source}\nhint: every field is described in the documentation of plugins", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Where and why it is not.
        source: serde_json::Error,
    },
}

/// Reads a file of vectors: a JSON array.
pub fn read(path: &Path) -> Result<Vec<Vector>, VectorsError> {
    read_json(path, "an array of vectors")
}

/// Reads a file of presets: a JSON object.
pub fn read_presets(path: &Path) -> Result<Presets, VectorsError> {
    read_json(path, "an object of options by scheme")
}

fn read_json<T: serde::de::DeserializeOwned>(
    path: &Path,
    what: &'static str,
) -> Result<T, VectorsError> {
    let text = std::fs::read(path).map_err(|source| VectorsError::Unreadable {
        path: path.into(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| VectorsError::Malformed {
        path: path.into(),
        what,
        source,
    })
}

/// What came of vectors.
#[derive(Debug, Default)]
pub struct Report {
    /// One for each vector that was run, in their order.
    pub lines: Vec<Line>,
    /// How many vectors were not run, by scheme: the manifest does not name it.
    pub skipped: BTreeMap<String, usize>,
}

impl Report {
    /// How many vectors came out as expected.
    pub fn passed(&self) -> usize {
        self.lines.iter().filter(|line| line.passed).count()
    }

    /// How many did not.
    pub fn failed(&self) -> usize {
        self.lines.len() - self.passed()
    }

    /// Whether at least one vector was run, and all that were passed.
    pub fn is_success(&self) -> bool {
        !self.lines.is_empty() && self.failed() == 0
    }
}

/// What came of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its place in the file, from 1.
    pub place: usize,
    /// Its scheme.
    pub scheme: String,
    /// Its provider.
    pub provider: String,
    /// Whether it came out as expected.
    pub passed: bool,
    /// What happened, and where it failed, what should have.
    pub what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passed { "ok    " } else { "FAILED" };
        let Self {
            place,
            scheme,
            provider,
            what,
            ..
        } = self;
        write!(f, "{word} #{place} {scheme}/{provider}: {what}")
    }
}

/// Runs the vectors of the plugin's schemes, each against a source of its own.
pub fn run(plugin: &dyn Plugin, vectors: &[Vector], presets: &Presets) -> Report {
    let mut report = Report::default();
    for (index, vector) in vectors.iter().enumerate() {
        if !plugin.manifest().schemes.contains(&vector.scheme) {
            *report.skipped.entry(vector.scheme.clone()).or_default() += 1;
            continue;
        }
        let (passed, what) = match run_one(plugin, vector, presets) {
            Ok(what) => (true, what),
            Err(what) => (false, what),
        };
        report.lines.push(Line {
            place: index + 1,
            scheme: vector.scheme.clone(),
            provider: vector.provider.clone(),
            passed,
            what,
        });
    }
    report
}

/// The delivery of a vector, and the source that it is for; the error says why there is none.
pub fn source(
    plugin: &dyn Plugin,
    vector: &Vector,
    presets: &Presets,
) -> Result<(Delivery, Setup), String> {
    let preset = presets.find(vector);
    let setup = setup(plugin.manifest(), vector, preset, &mut Vec::new())?;
    Ok((delivery(vector), setup))
}

/// What happened; as an error, where that is not what was expected.
fn run_one(plugin: &dyn Plugin, vector: &Vector, presets: &Presets) -> Result<String, String> {
    let mut notes = Vec::new();
    let setup = setup(plugin.manifest(), vector, presets.find(vector), &mut notes)?;
    let delivery = delivery(vector);
    let handled = plugin.handle(&Arc::new(delivery), &Arc::new(setup));
    let verdict = handled.map_err(|fault| fault.to_string())?.verdict;
    let verdict = hold_to_tolerance(vector, verdict);
    let what = [vec![describe(&verdict)], notes].concat().join("; ");
    match objection(vector, &verdict) {
        None => Ok(what),
        Some(objection) => Err(format!("{what}; {objection}")),
    }
}

fn setup(
    manifest: &Manifest,
    vector: &Vector,
    preset: Option<&Preset>,
    notes: &mut Vec<String>,
) -> Result<Setup, String> {
    let mut options = options(manifest, vector, preset);
    // What a source must have beside its secrets, such as a public half of them, comes first among the vector's.
    let mut secrets = vector.secrets.iter();
    for spec in manifest.options.iter().filter(|spec| spec.required) {
        if !options.contains_key(&spec.name)
            && let Some(value) = secrets.next()
        {
            options.insert(spec.name.clone(), value.clone());
        }
    }
    let secrets = secrets.as_slice();
    for option in manifest
        .options
        .iter()
        .filter(|option| option.names_of.is_some())
    {
        let form = manifest
            .secrets
            .first()
            .map(|spec| spec.form)
            .unwrap_or_default();
        let names: Vec<_> = secrets
            .iter()
            .filter_map(|value| form.name_of(value.as_bytes()))
            .collect();
        if !names.is_empty() {
            options
                .entry(option.name.clone())
                .or_insert(names.join(" "));
        }
    }
    let keys = keyring(manifest, vector, secrets, preset, notes)?;
    let hosts = manifest.key_hosts.iter();
    let hosts = hosts.filter_map(|host| HostPattern::new(host)).collect();
    let remote = vector.cert_pem.as_ref().map(|pem| {
        Remote::of_certificate(pem.as_bytes(), hosts)
            .map_err(|error| format!("its certificate cannot be used: {error}"))
    });
    // Refused for its setup, an invalid delivery would pass without having been looked at.
    let mut required = manifest.options.iter().filter(|spec| spec.required);
    if let Some(spec) = required.find(|spec| !options.contains_key(&spec.name)) {
        return Err(format!(
            "its source has no option {:?}, which the manifest requires",
            spec.name
        ));
    }
    Ok(Setup {
        label: format!("{}/{}", vector.scheme, vector.provider),
        keys,
        options,
        public_url: Some(address(vector).0.to_owned()),
        remote: remote.transpose()?,
        sign_challenges: true,
    })
}

fn keyring(
    manifest: &Manifest,
    vector: &Vector,
    secrets: &[String],
    preset: Option<&Preset>,
    notes: &mut Vec<String>,
) -> Result<Keyring, String> {
    let is_public = |spec: &&SecretSpec| spec.kind == SecretKind::PublicKey;
    let form = |spec: &SecretSpec| {
        let form = preset.and_then(|preset| preset.key_forms.get(&spec.name));
        *form.unwrap_or(&spec.form)
    };
    let missing = "the manifest has no secret for the vector's";
    let mut keys = manifest.keyring();
    for value in secrets {
        let spec = manifest.secrets.first().ok_or(missing)?;
        keys.add(&spec.name, key(form(spec), value, notes)?);
    }
    if let Some(value) = &vector.public_key {
        let spec = manifest.secrets.iter().find(is_public).ok_or(missing)?;
        let key = PublicKey::decode(form(spec), value.as_bytes(), spec.algorithm);
        let key = key.map_err(|error| format!("its public key is none: {error}"))?;
        keys.add_public(&spec.name, key);
    }
    Ok(keys)
}

fn key(form: KeyForm, value: &str, notes: &mut Vec<String>) -> Result<Key, String> {
    let decode = |value: &str, weak| Key::decode(form, value.as_bytes(), weak);
    let key = match decode(value, false) {
        Err(error @ KeyError::TooShort { length }) => {
            notes.push(format!("its key of {length} bytes is weak"));
            decode(value, true).map_err(|_| error)
        }
        // No source can have it, but the delivery must be refused under any other as well.
        Err(KeyError::Empty) => {
            notes.push("another key stands in for its empty one".into());
            Key::decode(KeyForm::Sha256, b"a key that nothing is signed with", true)
        }
        key => key,
    };
    key.map_err(|error| format!("its secret is no key: {error}"))
}

fn options(
    manifest: &Manifest,
    vector: &Vector,
    preset: Option<&Preset>,
) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let defaults = manifest.options.iter();
    let defaults =
        defaults.filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
    let preset = preset.iter().flat_map(|preset| &preset.options);
    let preset = preset.map(|(name, value)| (name.clone(), text(value)));
    let mut options: BTreeMap<_, _> = defaults.chain(preset).collect();
    if let Some(header) = &vector.sig_header {
        options.insert("header".into(), header.clone());
    }
    options
}

fn delivery(vector: &Vector) -> Delivery {
    let (_, path, query) = address(vector);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Delivery {
        id: uuid::Uuid::now_v7(),
        received_at: vector.timestamp_now.map_or(SOME_TIME_MS, |s| s * 1000),
        method: vector.method.clone(),
        target: format!("{path}{query}"),
        rest: String::new(),
        headers: vector.headers.clone(),
        body: vector.body.clone(),
    }
}

/// The URL without its query, its path, and the query.
fn address(vector: &Vector) -> (&str, &str, Option<&str>) {
    let url = vector.url.as_deref().unwrap_or(SOME_URL);
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let host = base.find("://").map_or(0, |at| at + "://".len());
    let path = base[host..].find('/').map_or("/", |at| &base[host + at..]);
    (base, path, query)
}

/// The verdict after the signed time was held against the vector's clock, as the pipeline does.
fn hold_to_tolerance(vector: &Vector, verdict: Verdict) -> Verdict {
    match (&verdict, vector.timestamp_now) {
        (
            Verdict::Accept(Event {
                signed_at: Some(signed),
                ..
            }),
            Some(now),
        ) if signed.abs_diff(now * 1000) > TOLERANCE_MS => {
            let away = signed.abs_diff(now * 1000) / 1000;
            let direction = if *signed > now * 1000 { "ahead" } else { "ago" };
            Verdict::Reject(Rejection::new(
                RejectKind::Stale,
                format!("signed {away} s {direction}"),
            ))
        }
        _ => verdict,
    }
}

fn describe(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accept(Event { id: Some(id), .. }) => format!("accepted {id}"),
        Verdict::Accept(_) => "accepted, without an id".into(),
        Verdict::Respond(response) => format!("answered {} bytes", response.body.len()),
        Verdict::Reject(rejection) => {
            format!(
                "refused as {}: {}",
                rejection.kind.as_str(),
                rejection.reason
            )
        }
    }
}

/// What is wrong with a verdict, if anything.
fn objection(vector: &Vector, verdict: &Verdict) -> Option<String> {
    match (vector.expect, verdict) {
        (Expect::Invalid, Verdict::Reject(_)) => None,
        (Expect::Invalid, _) => Some("it should have been refused".into()),
        (Expect::Valid, Verdict::Reject(_)) => Some("it is valid".into()),
        (Expect::Valid, Verdict::Accept(event)) => accept_objection(vector, event),
        (Expect::Valid, Verdict::Respond(response)) => respond_objection(vector, response),
    }
}

fn accept_objection(vector: &Vector, event: &Event) -> Option<String> {
    if vector.kind == Kind::Handshake {
        return Some("a handshake should have been answered".into());
    }
    let expected = vector.event_id.as_ref()?;
    (event.id.as_ref() != Some(expected)).then(|| format!("the id should have been {expected}"))
}

fn respond_objection(vector: &Vector, response: &Response) -> Option<String> {
    if let Some(id) = &vector.event_id {
        return Some(format!("the event {id} should have been accepted"));
    }
    let expected = vector.expected_response.as_ref()?;
    (response.body != expected.as_bytes())
        .then(|| format!("the answer should have been {expected}"))
}

#[cfg(test)]
mod tests;

//! What the host offers to a plugin at work, and how its verdict is read.
//!
//! Every function charges the delivery's fuel for the bytes it hashes, scans or copies, before it does. Keys
//! are named by the plugin and never leave this side.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode;
use wasmtime::component::Linker;
use wasmtime::{ResourceLimiter, StoreContextMut, Trap};

use super::json::{self, LookupError};
use super::sandbox::Limits;
use super::{Fault, Setup};
use crate::crypto::{self, Hash, Key, Mac, Piece, PublicKey, Scheme};
use crate::delivery::{Delivery, Event, RejectKind, Rejection, Response, Verdict};
use crate::encoding::Encoding;

/// Generated from `wit/`.
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
pub(super) mod bindings {
    wasmtime::component::bindgen!({ path: "../wit", world: "provider" });
}

use bindings::hookgate::provider::source::Level;
use bindings::hookgate::provider::types as wit;

/// The interface that a delivery is read by.
const DELIVERY: &str = "hookgate:provider/delivery@1.0.0";

/// What every call of a host function costs, in units of fuel, beside its bytes.
const CALL: u64 = 200;
/// What an item of a list costs, in units of fuel, beside its bytes.
const ITEM: usize = 64;
/// What setting up a MAC costs, in units of fuel, beside its bytes.
const MAC: usize = 1_000;
/// What checking a public-key signature costs, in units of fuel, beside its bytes.
const SIGNATURE: usize = 100_000;
/// Lines that one delivery may log, and the bytes of each.
const LOG_LINES: u32 = 8;
const LOG_BYTES: usize = 512;

/// A delivery in a sandbox.
pub(super) struct Call {
    delivery: Arc<Delivery>,
    setup: Arc<Setup>,
    pub(super) guard: Guard,
    pub(super) matched: Option<(String, usize)>,
    /// What was asked of the host, where the call is a rehearsal; deliveries keep no such record.
    pub(super) asked: Option<Vec<Asked>>,
    logged: u32,
}

impl Call {
    pub(super) fn new(delivery: Arc<Delivery>, setup: Arc<Setup>, limits: &Limits) -> Self {
        Self {
            delivery,
            setup,
            guard: Guard::new(limits),
            matched: None,
            asked: None,
            logged: 0,
        }
    }

    fn note(&mut self, asked: impl FnOnce() -> Asked) {
        if let Some(all) = &mut self.asked {
            all.push(asked());
        }
    }
}

/// A verification that a plugin asked for while it was rehearsing.
#[derive(Debug)]
pub enum Asked {
    /// A MAC.
    Mac {
        /// The secret's name.
        secret: String,
        /// How the signature is written.
        encoding: Encoding,
        /// What would have fitted under the first active value; none where there is no value.
        fitting: Option<Vec<u8>>,
    },
    /// A token, under this secret's name.
    Token(String),
    /// A signature that only the provider's private key makes, under this public key's name.
    PublicKey(String),
}

/// The delivery that a plugin sees while it is asked for its manifest.
pub(super) fn no_delivery() -> Delivery {
    Delivery {
        id: uuid::Uuid::nil(),
        received_at: 0,
        method: Method::GET,
        target: "/".into(),
        rest: String::new(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    }
}

/// Refuses growth beyond the limits, and remembers it: the plugin's trap that follows says nothing of it.
/// What counts is the sum over all of a component's memories, and over all of its tables.
pub(super) struct Guard {
    memory: Quota,
    table_elements: Quota,
    refused: Option<Fault>,
}

/// How much of something there may be, and is.
struct Quota {
    what: &'static str,
    limit: usize,
    used: usize,
}

impl Quota {
    fn of(limit: usize, what: &'static str) -> Self {
        Self {
            what,
            limit,
            used: 0,
        }
    }

    /// Takes what a memory or table grows by. What its own maximum forbids is not taken: growth fails then.
    fn take(&mut self, from: usize, to: usize, maximum: Option<usize>) -> Result<(), Fault> {
        if maximum.is_some_and(|maximum| to > maximum) {
            return Ok(());
        }
        let asked = self.used.saturating_add(to.saturating_sub(from));
        if asked > self.limit {
            let (what, limit) = (self.what, self.limit);
            return Err(Fault::OutOfMemory { what, asked, limit });
        }
        self.used = asked;
        Ok(())
    }
}

impl Guard {
    fn new(limits: &Limits) -> Self {
        Self {
            memory: Quota::of(limits.memory, "bytes of memory"),
            table_elements: Quota::of(limits.table_elements, "table elements"),
            refused: None,
        }
    }

    fn allow(&mut self, taken: Result<(), Fault>) -> bool {
        let allowed = taken.is_ok();
        self.refused = taken.err().or(self.refused.take());
        allowed
    }
}

impl ResourceLimiter for Guard {
    fn memory_growing(
        &mut self,
        from: usize,
        to: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let taken = self.memory.take(from, to, maximum);
        Ok(self.allow(taken))
    }

    fn table_growing(
        &mut self,
        from: usize,
        to: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let taken = self.table_elements.take(from, to, maximum);
        Ok(self.allow(taken))
    }
}

/// What ended a call: the host's own word, a limit, a trap, or an answer that cannot be read.
pub(super) fn fault(error: &wasmtime::Error, limits: &Limits, guard: &Guard) -> Fault {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    match (error.downcast_ref::<Trap>(), &guard.refused) {
        (Some(Trap::OutOfFuel), _) => Fault::OutOfFuel { limit: limits.fuel },
        (Some(Trap::Interrupt), _) => Fault::WallClock {
            limit: limits.wall_clock,
        },
        (_, Some(refused)) => refused.clone(),
        (Some(trap), None) => Fault::Trap {
            reason: trap.to_string(),
        },
        (None, None) => Fault::Refused {
            what: format!("{error:#}"),
        },
    }
}

type Context<'a> = StoreContextMut<'a, Call>;
type HostResult<T> = wasmtime::Result<(T,)>;

/// Charges for a call and for `bytes`: those of its arguments, which are here already, and those that it is
/// about to touch.
fn charge(context: &mut Context<'_>, bytes: usize) -> wasmtime::Result<()> {
    let cost = CALL.saturating_add(bytes as u64);
    let left = context.get_fuel()?;
    let Some(left) = left.checked_sub(cost) else {
        context.set_fuel(0)?;
        return Err(Trap::OutOfFuel.into());
    };
    context.set_fuel(left)
}

/// Charges for reading `text` as pairs: many short ones cost more than their bytes.
fn charge_pairs(context: &mut Context<'_>, text: &[u8]) -> wasmtime::Result<()> {
    let pairs = text.split(|b| *b == b'&').count();
    charge(context, text.len() + pairs * ITEM)
}

/// Makes the interface's functions known to `linker`.
pub(super) fn add_to_linker(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    add_request(linker)?;
    add_body(linker)?;
    add_source(linker)?;
    add_verification(linker)
}

/// What the request line and the headers say, and when.
fn add_request(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    let mut to = linker.instance(DELIVERY)?;
    to.func_wrap(
        "header",
        |mut cx: Context<'_>, (name,): (String,)| -> HostResult<_> {
            let value = cx.data().delivery.headers.get(&name);
            let value = value.and_then(|value| String::from_utf8(value.as_bytes().to_vec()).ok());
            charge(&mut cx, name.len() + value.as_ref().map_or(0, String::len))?;
            Ok((value,))
        },
    )?;
    to.func_wrap(
        "headers",
        |mut cx: Context<'_>, (name,): (String,)| -> HostResult<_> {
            let all = cx.data().delivery.headers.get_all(&name);
            let all: Vec<_> = all.iter().map(|value| value.as_bytes().to_vec()).collect();
            let bytes: usize = all.iter().map(|value| value.len() + ITEM).sum();
            charge(&mut cx, name.len() + bytes)?;
            Ok((all,))
        },
    )?;
    to.func_wrap("method", |mut cx: Context<'_>, (): ()| -> HostResult<_> {
        charge(&mut cx, 0)?;
        Ok((cx.data().delivery.method.to_string(),))
    })?;
    to.func_wrap("target", |mut cx: Context<'_>, (): ()| -> HostResult<_> {
        let target = cx.data().delivery.target.clone();
        charge(&mut cx, target.len())?;
        Ok((target,))
    })?;
    to.func_wrap(
        "external-url",
        |mut cx: Context<'_>, (): ()| -> HostResult<_> {
            let url = external_url(cx.data());
            charge(&mut cx, url.as_ref().map_or(0, String::len))?;
            Ok((url,))
        },
    )?;
    to.func_wrap("query", |mut cx: Context<'_>, (): ()| -> HostResult<_> {
        let delivery = Arc::clone(&cx.data().delivery);
        let query = delivery.query().unwrap_or_default();
        charge_pairs(&mut cx, query.as_bytes())?;
        Ok((pairs(query.as_bytes()),))
    })?;
    to.func_wrap("now", |mut cx: Context<'_>, (): ()| -> HostResult<_> {
        charge(&mut cx, 0)?;
        Ok((cx.data().delivery.received_at,))
    })
}

/// What the body says.
fn add_body(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    type In = (Vec<u8>, String);
    let mut to = linker.instance(DELIVERY)?;
    to.func_wrap("form", |mut cx: Context<'_>, (): ()| -> HostResult<_> {
        let body = cx.data().delivery.body.clone();
        charge_pairs(&mut cx, &body)?;
        Ok((pairs(&body),))
    })?;
    to.func_wrap(
        "body-length",
        |mut cx: Context<'_>, (): ()| -> HostResult<_> {
            charge(&mut cx, 0)?;
            Ok((cx.data().delivery.body.len() as u64,))
        },
    )?;
    to.func_wrap(
        "body",
        |mut cx: Context<'_>, (from, length): (u64, u64)| -> HostResult<_> {
            let body = cx.data().delivery.body.clone();
            let within = |at: u64| usize::try_from(at).map_or(body.len(), |at| at.min(body.len()));
            let part = &body[within(from)..within(from.saturating_add(length))];
            charge(&mut cx, part.len())?;
            Ok((part.to_vec(),))
        },
    )?;
    to.func_wrap(
        "json",
        |mut cx: Context<'_>, (pointer,): (String,)| -> HostResult<_> {
            let body = cx.data().delivery.body.clone();
            charge(&mut cx, body.len() + pointer.len())?;
            Ok((lookup(&body, &pointer),))
        },
    )?;
    to.func_wrap(
        "json-in",
        |mut cx: Context<'_>, (document, pointer): In| -> HostResult<_> {
            charge(&mut cx, document.len() + pointer.len())?;
            Ok((lookup(&document, &pointer),))
        },
    )
}

fn add_source(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    type Line = (Level, String);
    let mut to = linker.instance("hookgate:provider/source@1.0.0")?;
    to.func_wrap(
        "option",
        |mut cx: Context<'_>, (name,): (String,)| -> HostResult<_> {
            let value = cx.data().setup.options.get(&name).cloned();
            charge(&mut cx, name.len() + value.as_ref().map_or(0, String::len))?;
            Ok((value,))
        },
    )?;
    to.func_wrap(
        "log",
        |mut cx: Context<'_>, (level, line): Line| -> wasmtime::Result<()> {
            charge(&mut cx, line.len())?;
            let call = cx.data_mut();
            call.logged += 1;
            if call.logged <= LOG_LINES {
                log(call, level, &line);
            }
            Ok(())
        },
    )
}

fn add_verification(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    type DigestRequest = (wit::DigestAlgorithm, Vec<wit::Segment>);
    type MacRequest = (wit::MacAlgorithm, String, Vec<wit::Segment>, wit::Signature);
    type TokenRequest = (String, Vec<u8>);
    type SignatureRequest = (
        wit::SignatureScheme,
        wit::Key,
        Vec<wit::Segment>,
        wit::Signature,
    );
    type JwtRequest = (Vec<wit::JwtAlgorithm>, wit::Key, Vec<u8>);
    let mut to = linker.instance("hookgate:provider/verification@1.0.0")?;
    to.func_wrap(
        "digest",
        |mut cx: Context<'_>, (hash, message): DigestRequest| -> HostResult<_> {
            Ok((digest(&mut cx, hash.into(), &message)?,))
        },
    )?;
    to.func_wrap(
        "verify-mac",
        |mut cx: Context<'_>, request: MacRequest| -> HostResult<_> {
            let (algorithm, secret, message, signature) = request;
            Ok((verify_mac(
                &mut cx,
                algorithm.into(),
                secret,
                &message,
                &signature,
            )?,))
        },
    )?;
    to.func_wrap(
        "verify-token",
        |mut cx: Context<'_>, request: TokenRequest| -> HostResult<_> {
            let (secret, value) = request;
            let setup = Arc::clone(&cx.data().setup);
            let keys = keys(&setup, &secret)?;
            charge(&mut cx, secret.len() + keys.len() * (value.len() + MAC))?;
            cx.data_mut().note(|| Asked::Token(secret.clone()));
            let place = crypto::verify_token(keys, &value);
            Ok((remember(&mut cx, secret, place),))
        },
    )?;
    to.func_wrap(
        "verify-signature",
        |mut cx: Context<'_>, request: SignatureRequest| -> HostResult<_> {
            let (scheme, key, message, signature) = request;
            Ok((verify_signature(
                &mut cx,
                scheme.into(),
                key,
                &message,
                &signature,
            )?,))
        },
    )?;
    to.func_wrap(
        "verify-jwt",
        |_: Context<'_>, _: JwtRequest| -> HostResult<Option<String>> {
            Err(not_supported("verify-jwt".into()))
        },
    )
}

fn not_supported(function: String) -> wasmtime::Error {
    Fault::NotSupported { function }.into()
}

fn refused(what: String) -> Fault {
    Fault::Refused { what }
}

fn external_url(call: &Call) -> Option<String> {
    call.setup
        .public_url
        .as_deref()
        .map(|url| call.delivery.external_url(url))
}

/// The decoded pairs of a query or form, in their order.
fn pairs(text: &[u8]) -> Vec<wit::Pair> {
    let decode = |part: &[u8]| {
        let spaced: Cow<'_, [u8]> = if part.contains(&b'+') {
            part.iter()
                .map(|b| if *b == b'+' { b' ' } else { *b })
                .collect()
        } else {
            part.into()
        };
        percent_decode(&spaced).collect::<Vec<u8>>()
    };
    let parts = text.split(|b| *b == b'&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = match part.iter().position(|b| *b == b'=') {
                Some(at) => (&part[..at], &part[at + 1..]),
                None => (part, [].as_slice()),
            };
            wit::Pair {
                name: decode(name),
                value: decode(value),
            }
        })
        .collect()
}

fn lookup(document: &[u8], pointer: &str) -> Result<Option<wit::JsonValue>, wit::JsonError> {
    let value = |value| match value {
        json::Value::Text(text) => wit::JsonValue::Text(text),
        json::Value::Number(text) => wit::JsonValue::Number(text),
        json::Value::Boolean(yes) => wit::JsonValue::Boolean(yes),
        json::Value::Null => wit::JsonValue::Null,
        json::Value::Raw(text) => wit::JsonValue::Raw(text),
    };
    let error = |error| match error {
        LookupError::Malformed => wit::JsonError::Malformed,
        LookupError::DuplicateKey => wit::JsonError::DuplicateKey,
        LookupError::BadPointer => wit::JsonError::BadPointer,
    };
    json::lookup(document, pointer)
        .map(|found| found.map(value))
        .map_err(error)
}

fn log(call: &Call, level: Level, line: &str) {
    let cut = line.floor_char_boundary(LOG_BYTES);
    let (source, delivery) = (&call.setup.label, call.delivery.id);
    let line = line[..cut].escape_debug();
    match level {
        Level::Debug => tracing::debug!(target: "plugin", %source, %delivery, "{line}"),
        Level::Info => tracing::info!(target: "plugin", %source, %delivery, "{line}"),
        Level::Warn => tracing::warn!(target: "plugin", %source, %delivery, "{line}"),
    }
}

fn keys<'a>(setup: &'a Setup, secret: &str) -> Result<&'a [Key], Fault> {
    let unknown = || {
        refused(format!(
            "it names the secret {secret:?}, which the source does not have"
        ))
    };
    setup.keys.get(secret).ok_or_else(unknown)
}

fn remember(context: &mut Context<'_>, secret: String, place: Option<usize>) -> bool {
    if let Some(place) = place {
        context.data_mut().matched = Some((secret, place));
    }
    place.is_some()
}

fn verify_mac(
    context: &mut Context<'_>,
    mac: Mac,
    secret: String,
    message: &[wit::Segment],
    signature: &wit::Signature,
) -> wasmtime::Result<bool> {
    let names_secret = message.iter().any(|s| matches!(s, wit::Segment::Secret(_)));
    if names_secret != matches!(mac, Mac::Plain(_)) {
        let what = "plain digests hash a secret, and only they do";
        return Err(refused(what.to_owned()).into());
    }
    let call = Shared::of(context, message);
    let keys = keys(&call.setup, &secret)?;
    let parts = call.parts(context, message, Some(&secret))?;
    let length: usize = parts.iter().map(Part::length).sum();
    let arguments = secret.len() + signature.text.len();
    charge(context, keys.len() * (length + MAC) + arguments)?;
    let pieces: Vec<_> = parts.iter().map(Part::piece).collect();
    let encoding = Encoding::from(signature.encoding);
    context.data_mut().note(|| Asked::Mac {
        secret: secret.clone(),
        encoding,
        fitting: keys.first().map(|key| crypto::sign(mac, key, &pieces)),
    });
    let signature = encoding.decode(&signature.text);
    let place = signature.and_then(|signature| crypto::verify_mac(mac, keys, &pieces, &signature));
    Ok(remember(context, secret, place))
}

fn public_keys<'a>(setup: &'a Setup, name: &str) -> Result<&'a [PublicKey], Fault> {
    let unknown = || {
        refused(format!(
            "it names the public key {name:?}, which the source does not have"
        ))
    };
    setup.keys.public(name).ok_or_else(unknown)
}

fn verify_signature(
    context: &mut Context<'_>,
    scheme: Scheme,
    key: wit::Key,
    message: &[wit::Segment],
    signature: &wit::Signature,
) -> wasmtime::Result<bool> {
    let wit::Key::Named(name) = key else {
        return Err(not_supported("verify-signature with a key by URL".into()));
    };
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("what a public key signs holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    let keys = public_keys(&call.setup, &name)?;
    let parts = call.parts(context, message, None)?;
    let length: usize = parts.iter().map(Part::length).sum();
    let arguments = name.len() + signature.text.len();
    // Once to put the pieces together, and once for every key.
    charge(
        context,
        length + keys.len() * (length + SIGNATURE) + arguments,
    )?;
    context.data_mut().note(|| Asked::PublicKey(name.clone()));
    let message = whole(&parts);
    let signature = Encoding::from(signature.encoding).decode(&signature.text);
    let place = signature
        .and_then(|signature| crypto::verify_signature(scheme, keys, &message, &signature));
    Ok(remember(context, name, place))
}

fn whole<'a>(parts: &'a [Part<'_>]) -> Cow<'a, [u8]> {
    let bytes = |part: &'a Part<'_>| match part {
        Part::Bytes(bytes) => &**bytes,
        Part::ThisKey | Part::Key(_) => &[],
    };
    match parts {
        [one] => bytes(one).into(),
        many => many.iter().map(bytes).collect::<Vec<_>>().concat().into(),
    }
}

fn digest(
    context: &mut Context<'_>,
    hash: Hash,
    message: &[wit::Segment],
) -> wasmtime::Result<Vec<u8>> {
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("a public digest holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    let parts = call.parts(context, message, None)?;
    charge(context, parts.iter().map(Part::length).sum())?;
    let pieces = parts.iter().filter_map(|part| match part {
        Part::Bytes(bytes) => Some(&**bytes),
        Part::ThisKey | Part::Key(_) => None,
    });
    Ok(hash.of_pieces(pieces))
}

/// What segments are filled in from, shared with the store that is charged meanwhile.
struct Shared {
    delivery: Arc<Delivery>,
    setup: Arc<Setup>,
    url: Option<String>,
}

impl Shared {
    /// The URL is put together only for a message that holds it.
    fn of(context: &Context<'_>, message: &[wit::Segment]) -> Self {
        let call = context.data();
        let is_url = |segment: &wit::Segment| matches!(segment, wit::Segment::ExternalUrl);
        let url = message.iter().any(is_url).then(|| external_url(call));
        Self {
            delivery: Arc::clone(&call.delivery),
            setup: Arc::clone(&call.setup),
            url: url.flatten(),
        }
    }

    /// The message's parts; they, and digests of the body, are charged before they are made.
    fn parts<'a>(
        &'a self,
        context: &mut Context<'_>,
        message: &'a [wit::Segment],
        secret: Option<&str>,
    ) -> wasmtime::Result<Vec<Part<'a>>> {
        let digested = message
            .iter()
            .filter(|s| matches!(s, wit::Segment::BodyDigest(_)))
            .count();
        let bytes = digested.saturating_mul(self.delivery.body.len());
        charge(context, bytes.saturating_add(message.len() * ITEM))?;
        let parts = message.iter().map(|segment| self.part(segment, secret));
        Ok(parts.collect::<Result<_, Fault>>()?)
    }

    fn part<'a>(
        &'a self,
        segment: &'a wit::Segment,
        secret: Option<&str>,
    ) -> Result<Part<'a>, Fault> {
        let bytes = |bytes: &'a [u8]| Ok(Part::Bytes(bytes.into()));
        match segment {
            wit::Segment::Literal(literal) => bytes(literal),
            wit::Segment::Body => bytes(&self.delivery.body),
            wit::Segment::BodyDigest(digest) => {
                let encoding = Encoding::from(digest.encoding);
                let digest = Hash::from(digest.algorithm).of_pieces([&*self.delivery.body]);
                Ok(Part::Bytes(encoding.encode(&digest).into()))
            }
            wit::Segment::Method => bytes(self.delivery.method.as_str().as_bytes()),
            wit::Segment::Target => bytes(self.delivery.target.as_bytes()),
            wit::Segment::ExternalUrl => {
                let none = "it verifies the external URL, but the source has no `public_url`";
                bytes(
                    self.url
                        .as_deref()
                        .ok_or_else(|| refused(none.into()))?
                        .as_bytes(),
                )
            }
            wit::Segment::Secret(name) if Some(name.as_str()) == secret => Ok(Part::ThisKey),
            wit::Segment::Secret(name) => keys(&self.setup, name)?
                .first()
                .map(Part::Key)
                .ok_or_else(|| refused(format!("the secret {name:?} has no value"))),
        }
    }
}

/// A segment, filled in.
enum Part<'a> {
    Bytes(Cow<'a, [u8]>),
    ThisKey,
    Key(&'a Key),
}

impl Part<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::ThisKey | Self::Key(_) => 0,
        }
    }

    fn piece(&self) -> Piece<'_> {
        match self {
            Self::Bytes(bytes) => Piece::Bytes(bytes),
            Self::ThisKey => Piece::ThisKey,
            Self::Key(key) => Piece::Key(key),
        }
    }
}

/// Reads a verdict, within what the protocol allows.
pub(super) fn verdict(verdict: wit::Verdict) -> Result<Verdict, Fault> {
    match verdict {
        wit::Verdict::Accept(events) => match <[wit::Event; 1]>::try_from(events) {
            Ok([event]) => event_of(event).map(Verdict::Accept),
            Err(events) => Err(refused(format!(
                "it accepts {} events in one delivery, not one",
                events.len()
            ))),
        },
        wit::Verdict::Respond(answer) => response(answer).map(Verdict::Respond),
        wit::Verdict::Reject(rejection) => Ok(Verdict::Reject(Rejection {
            kind: rejection.kind.into(),
            reason: shorten(&rejection.reason),
        })),
    }
}

fn shorten(reason: &str) -> String {
    reason[..reason.floor_char_boundary(LOG_BYTES)]
        .escape_debug()
        .to_string()
}

fn event_of(event: wit::Event) -> Result<Event, Fault> {
    Ok(Event {
        id: event.id,
        ordering_key: event.ordering_key.filter(|key| !key.is_empty()),
        event_type: event.event_type,
        signed_at: event.signed_at,
        occurred_at: event.occurred_at,
        sequence: event.sequence,
        response: event.response.map(response).transpose()?,
        extra: event.extra,
    })
}

/// What a response may be: small enough to be kept with a claim, and nothing that changes the connection.
fn response(response: wit::Response) -> Result<Response, Fault> {
    const MAX: usize = 4096;
    if !(200..=599).contains(&response.status) {
        return Err(refused(format!(
            "a response has the status {}",
            response.status
        )));
    }
    let mut body = Vec::new();
    for part in response.body {
        match part {
            wit::Part::Bytes(bytes) => body.extend(bytes),
            wit::Part::Mac(_) => {
                return Err(Fault::NotSupported {
                    function: "a MAC in a response".into(),
                });
            }
        }
    }
    for (name, value) in &response.headers {
        check_header(name, value)?;
    }
    let headers: usize = response
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    match body.len() + headers {
        size if size > MAX => Err(refused(format!(
            "a response has {size} bytes; it may have {MAX}"
        ))),
        _ => Ok(Response {
            status: Some(response.status),
            headers: response.headers,
            body: body.into(),
        }),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), Fault> {
    let is_framing = [
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "set-cookie",
    ]
    .iter()
    .any(|framing| name.eq_ignore_ascii_case(framing));
    let fits =
        http::HeaderName::try_from(name).is_ok() && http::HeaderValue::try_from(value).is_ok();
    if fits && !is_framing {
        return Ok(());
    }
    Err(refused(format!(
        "a response has the header \"{}\", with a name or value that it must not have",
        shorten(name)
    )))
}

impl From<wit::RejectKind> for RejectKind {
    fn from(kind: wit::RejectKind) -> Self {
        match kind {
            wit::RejectKind::MissingSignature => Self::MissingSignature,
            wit::RejectKind::BadSignature => Self::BadSignature,
            wit::RejectKind::Stale => Self::Stale,
            wit::RejectKind::Malformed => Self::Malformed,
            wit::RejectKind::Method => Self::Method,
            wit::RejectKind::Media => Self::Media,
        }
    }
}

impl From<wit::Encoding> for Encoding {
    fn from(encoding: wit::Encoding) -> Self {
        match encoding {
            wit::Encoding::Bytes => Self::Bytes,
            wit::Encoding::Hex => Self::Hex,
            wit::Encoding::HexUpper => Self::HexUpper,
            wit::Encoding::Base64 => Self::Base64,
            wit::Encoding::Base64Url => Self::Base64Url,
        }
    }
}

impl From<wit::DigestAlgorithm> for Hash {
    fn from(algorithm: wit::DigestAlgorithm) -> Self {
        match algorithm {
            wit::DigestAlgorithm::Sha1 => Self::Sha1,
            wit::DigestAlgorithm::Sha256 => Self::Sha256,
            wit::DigestAlgorithm::Sha384 => Self::Sha384,
            wit::DigestAlgorithm::Sha512 => Self::Sha512,
        }
    }
}

impl From<wit::MacAlgorithm> for Mac {
    fn from(algorithm: wit::MacAlgorithm) -> Self {
        match algorithm {
            wit::MacAlgorithm::HmacSha1 => Self::Hmac(Hash::Sha1),
            wit::MacAlgorithm::HmacSha256 => Self::Hmac(Hash::Sha256),
            wit::MacAlgorithm::HmacSha384 => Self::Hmac(Hash::Sha384),
            wit::MacAlgorithm::HmacSha512 => Self::Hmac(Hash::Sha512),
            wit::MacAlgorithm::Sha1 => Self::Plain(Hash::Sha1),
            wit::MacAlgorithm::Sha256 => Self::Plain(Hash::Sha256),
            wit::MacAlgorithm::Sha384 => Self::Plain(Hash::Sha384),
            wit::MacAlgorithm::Sha512 => Self::Plain(Hash::Sha512),
        }
    }
}

impl From<wit::SignatureScheme> for Scheme {
    fn from(scheme: wit::SignatureScheme) -> Self {
        match scheme {
            wit::SignatureScheme::Ed25519 => Self::Ed25519,
            wit::SignatureScheme::EcdsaP256Sha256Der => Self::EcdsaP256Sha256Der,
            wit::SignatureScheme::EcdsaP256Sha256Fixed => Self::EcdsaP256Sha256Fixed,
            wit::SignatureScheme::RsaPkcs1Sha1 => Self::RsaPkcs1Sha1,
            wit::SignatureScheme::RsaPkcs1Sha256 => Self::RsaPkcs1Sha256,
            wit::SignatureScheme::RsaPkcs1Sha512 => Self::RsaPkcs1Sha512,
            wit::SignatureScheme::RsaPssSha256 => Self::RsaPssSha256,
        }
    }
}

//! What the host offers to a plugin at work.
//!
//! Every function charges the delivery's fuel for the bytes it hashes, scans or copies, before it does. Keys
//! are named by the plugin and never leave this side.

mod convert;
mod verdict;
mod verify;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode;
use wasmtime::component::{Linker, LinkerInstance};
use wasmtime::{StoreContextMut, Trap};

use super::json::{self, LookupError};
use super::limits::{Guard, Limits};
use super::{Fault, Setup};

use crate::crypto::Mac;
use crate::delivery::Delivery;
use crate::encoding::Encoding;

/// Generated from `wit/`.
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
pub(super) mod bindings {
    wasmtime::component::bindgen!({ path: "../wit", world: "provider" });
}

use bindings::hookgate::provider::source::Level;
use bindings::hookgate::provider::types as wit;

pub(super) use verdict::verdict;

/// The interface that a delivery is read by.
const DELIVERY: &str = "hookgate:provider/delivery@1.0.0";

/// What every call of a host function costs, in units of fuel, beside its bytes.
const CALL: u64 = 200;
/// What an item of a list costs, in units of fuel, beside its bytes.
const ITEM: usize = 64;
/// What setting up a MAC costs, in units of fuel, beside its bytes.
const SET_UP: usize = 1_000;
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
    /// Whether anything was verified.
    verified: bool,
    /// The URL to ask before a handshake is answered.
    pub(super) confirm: Option<String>,
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
            verified: false,
            confirm: None,
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
        /// How it is computed.
        mac: Mac,
        /// Of what.
        message: Vec<Said>,
        /// The signature as the delivery has it.
        text: Vec<u8>,
        /// How the signature is written.
        encoding: Encoding,
        /// What would have fitted under the first active value; none where there is no value.
        fitting: Option<Vec<u8>>,
    },
    /// A token.
    Token {
        /// The secret's name.
        secret: String,
        /// Its first active value; none where there is no value.
        fitting: Option<Vec<u8>>,
    },
    /// A signature that only the provider's private key makes, under this public key's name.
    PublicKey(String),
    /// A token whose claims are signed, under this secret's or public key's name.
    Jwt(String),
}

/// A piece of a message that a plugin said was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The body.
    Body,
    /// A secret.
    Secret,
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

/// Charges as for each lookup alone: the pass is one, but what they find is copied for each.
fn charge_lookups(
    context: &mut Context<'_>,
    document: &[u8],
    pointers: &[String],
) -> wasmtime::Result<()> {
    let each = |pointer: &String| document.len().saturating_add(pointer.len() + ITEM);
    let bytes = pointers.iter().map(each);
    let bytes = bytes.fold(document.len(), usize::saturating_add);
    charge(context, bytes)
}

/// Makes the interface's functions known to `linker`.
pub(super) fn add_to_linker(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    add_request(linker)?;
    add_body(linker)?;
    add_source(linker)?;
    add_handshake(linker)?;
    verify::add_to(linker)
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
    add_json(&mut to)
}

/// What the body and other documents say as JSON.
fn add_json(to: &mut LinkerInstance<'_, Call>) -> wasmtime::Result<()> {
    type In<T> = (Vec<u8>, T);
    to.func_wrap(
        "json",
        |mut cx: Context<'_>, (pointer,): (String,)| -> HostResult<_> {
            let body = cx.data().delivery.body.clone();
            charge(&mut cx, body.len() + pointer.len())?;
            Ok((lookup(&body, pointer),))
        },
    )?;
    to.func_wrap(
        "json-in",
        |mut cx: Context<'_>, (document, pointer): In<String>| -> HostResult<_> {
            charge(&mut cx, document.len() + pointer.len())?;
            Ok((lookup(&document, pointer),))
        },
    )?;
    to.func_wrap(
        "json-all",
        |mut cx: Context<'_>, (pointers,): (Vec<String>,)| -> HostResult<_> {
            let body = cx.data().delivery.body.clone();
            charge_lookups(&mut cx, &body, &pointers)?;
            Ok((lookup_all(&body, &pointers),))
        },
    )?;
    to.func_wrap(
        "json-all-in",
        |mut cx: Context<'_>, (document, pointers): In<Vec<String>>| -> HostResult<_> {
            charge_lookups(&mut cx, &document, &pointers)?;
            Ok((lookup_all(&document, &pointers),))
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

fn add_handshake(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    let mut to = linker.instance("hookgate:provider/handshake@1.0.0")?;
    to.func_wrap(
        "confirm",
        |mut cx: Context<'_>, (url,): (String,)| -> HostResult<_> {
            charge(&mut cx, url.len())?;
            let call = cx.data_mut();
            if !call.verified || call.confirm.is_some() {
                let what = "it confirms a URL before anything was verified, or a second one";
                return Err(refused(what.into()).into());
            }
            let remote = call.setup.remote.as_ref();
            let approved = remote.is_some_and(|remote| remote.is_approved(&url));
            call.confirm = approved.then_some(url);
            Ok((approved,))
        },
    )
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

type Looked = Result<Option<wit::JsonValue>, wit::JsonError>;

fn lookup(document: &[u8], pointer: String) -> Looked {
    let mut looked = lookup_all(document, &[pointer]);
    looked.pop().unwrap_or(Ok(None))
}

fn lookup_all(document: &[u8], pointers: &[String]) -> Vec<Looked> {
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
    let looked = json::lookup(document, pointers).into_iter();
    looked
        .map(|looked| looked.map(|found| found.map(value)).map_err(error))
        .collect()
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

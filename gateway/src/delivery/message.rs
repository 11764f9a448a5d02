//! The message that stands in the queue for an event: CloudEvents 1.0, binary mode, as SQS message attributes.
//!
//! Every message is checked here (ids, characters, size) before a queue sees it: SQS refuses a whole batch
//! for one bad entry, other tenants' entries included, and stand-ins do not check at all.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::identity::MAX_BROKER_ID;
use super::{Delivery, Event, EventId, EventKey};

/// The largest message of SQS, body and attributes together, in bytes
/// (Amazon SQS message quotas, 1 MiB since August 2025).
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// The largest `hookgate` attribute, in bytes. Headers beyond it are left out, and a flag says so.
const MAX_CONTEXT: usize = 8 * 1024;

/// What is valid UTF-8 but no queue text, and can stand in a header.
const NONCHARACTERS: [char; 2] = ['\u{fffe}', '\u{ffff}'];

/// The version of the `hookgate` attribute's JSON.
const CONTEXT_VERSION: u32 = 1;

/// A message as the queue takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What the broker knows copies by.
    pub deduplication_id: String,
    /// What the broker keeps in order.
    pub group_id: String,
    /// Name and value of each attribute, none empty.
    pub attributes: Vec<(Cow<'static, str>, String)>,
    /// The body: text, never empty.
    #[serde(skip)]
    pub body: Bytes,
}

/// Why a message cannot be sent. Nothing but its size depends on what a provider sends.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MessageError {
    /// Larger than the queue takes.
    #[error("the message has {size} bytes, attributes included; the queue takes {limit}")]
    TooLarge {
        /// Body and attributes together, in bytes.
        size: usize,
        /// The most the queue takes, in bytes.
        limit: usize,
    },
    /// Not what a queue takes at all: a fault of the gateway.
    #[error("the message's {part} is not what the queue takes")]
    Invalid {
        /// The part at fault.
        part: &'static str,
    },
}

/// What a message is made of.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The delivery that was accepted.
    pub delivery: &'a Delivery,
    /// Its event as the plugin named it.
    pub event: &'a Event,
    /// The event's key.
    pub key: &'a EventKey,
    /// The group fixed by the event's claim.
    pub group_id: &'a str,
    /// The plugin's name, which is the provider's.
    pub plugin: &'a str,
    /// The plugin's version.
    pub plugin_version: &'a str,
    /// 0, or higher after a second message was asked for.
    pub generation: u32,
    /// Whether an earlier owner may have sent the same event longer than the broker remembers.
    pub possible_duplicate: bool,
    /// Whether a header carries a secret or a signature and must not travel.
    pub withheld: fn(&HeaderName) -> bool,
    /// The header that carries this source's signature.
    pub signature_header: Option<&'a str>,
}

#[derive(Serialize)]
struct Context<'a> {
    v: u32,
    encoding: &'static str,
    received_at: u64,
    delivery: uuid::Uuid,
    plugin: PluginName<'a>,
    generation: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<&'a str>,
}

#[derive(Serialize)]
struct PluginName<'a> {
    name: &'a str,
    version: &'a str,
}

impl Envelope<'_> {
    /// The message. It still has to be checked against the queue's size limit.
    pub fn message(&self) -> Message {
        let (body, encoding) = encode_body(&self.delivery.body);
        let event = self.event;
        let mut attributes = vec![
            ("ce-specversion".into(), "1.0".to_owned()),
            ("ce-id".into(), self.key.public_id()),
            (
                "ce-source".into(),
                format!("/{}/{}", self.key.tenant(), self.key.source()),
            ),
            ("ce-type".into(), self.event_type()),
            (
                "ce-time".into(),
                rfc3339(event.occurred_at.unwrap_or(self.delivery.received_at)),
            ),
        ];
        let mut optional = |name: &'static str, value: Option<String>| {
            attributes.extend(
                value
                    .filter(|v| !v.is_empty())
                    .map(|value| (name.into(), value)),
            );
        };
        optional(
            "ce-subject",
            event.ordering_key.as_deref().and_then(carried),
        );
        optional("content-type", self.header("content-type"));
        optional(
            "traceparent",
            self.header("traceparent")
                .filter(|value| is_traceparent(value)),
        );
        optional("hookgate", Some(self.context(encoding)));
        Message {
            deduplication_id: self.key.deduplication_id(self.generation),
            group_id: self.group_id.to_owned(),
            attributes,
            body,
        }
    }

    fn event_type(&self) -> String {
        let kind = self.event.event_type.as_deref().and_then(carried);
        format!("{}.{}", self.plugin, kind.as_deref().unwrap_or("event"))
    }

    fn header(&self, name: &str) -> Option<String> {
        let value = self.delivery.headers.get(name)?;
        value.to_str().ok().map(str::to_owned)
    }

    /// The `hookgate` attribute: JSON, written in one pass. Headers are cut where they would pass its limit.
    fn context(&self, encoding: &'static str) -> String {
        const LONGEST_END: &str = r#"],"flags":["possible-duplicate","headers-cut"]}"#;
        let sequence = self.event.sequence.as_deref().and_then(carried);
        let context = Context {
            v: CONTEXT_VERSION,
            encoding,
            received_at: self.delivery.received_at,
            delivery: self.delivery.id,
            plugin: PluginName {
                name: self.plugin,
                version: self.plugin_version,
            },
            generation: self.generation,
            sequence: sequence.as_deref(),
        };
        let mut json = Vec::with_capacity(1024);
        write_json(&mut json, &context);
        json.pop();
        json.extend_from_slice(b",\"headers\":[");
        let is_cut = self.write_headers(&mut json, MAX_CONTEXT - LONGEST_END.len());
        let flags = [
            (self.possible_duplicate, "possible-duplicate"),
            (is_cut, "headers-cut"),
        ];
        let flags = flags.into_iter().filter(|(set, _)| *set);
        json.extend_from_slice(b"],\"flags\":");
        write_json(&mut json, &flags.map(|(_, flag)| flag).collect::<Vec<_>>());
        json.push(b'}');
        // JSON is UTF-8.
        String::from_utf8(json).unwrap_or_default()
    }

    /// Writes `[name,value]` of each header that travels, up to `limit` bytes in all; says whether any was cut.
    fn write_headers(&self, json: &mut Vec<u8>, limit: usize) -> bool {
        let start = json.len();
        for (name, value) in &self.delivery.headers {
            let signature = self.signature_header.unwrap_or_default();
            if name.as_str().eq_ignore_ascii_case(signature) || (self.withheld)(name) {
                continue;
            }
            let before = json.len();
            if before > start {
                json.push(b',');
            }
            write_json(json, &(name.as_str(), header_text(value)));
            if json.len() > limit {
                json.truncate(before);
                return true;
            }
        }
        false
    }
}

/// Strings and numbers always serialise, and memory takes whatever is written to it.
fn write_json(json: &mut Vec<u8>, value: &impl Serialize) {
    let _ = serde_json::to_writer(json, value);
}

/// A header's value as text that a queue carries.
fn header_text(value: &HeaderValue) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.is_ascii() || !text.contains(NONCHARACTERS) {
        return text;
    }
    text.replace(NONCHARACTERS, "\u{fffd}").into()
}

impl Message {
    /// Body and attributes together, as SQS counts them: names, types and values.
    pub fn size(&self) -> usize {
        let attribute =
            |(name, value): &(Cow<'static, str>, String)| name.len() + "String".len() + value.len();
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// Whether a queue that takes `limit` bytes takes this message.
    pub fn check(&self, limit: usize) -> Result<(), MessageError> {
        let is_id = |id: &str| {
            (1..=MAX_BROKER_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
        };
        let invalid = |part| Err(MessageError::Invalid { part });
        if !is_id(&self.deduplication_id) {
            return invalid("deduplication id");
        }
        if !is_id(&self.group_id) {
            return invalid("group id");
        }
        if self.body.is_empty() || !is_queue_text(&self.body) {
            return invalid("body");
        }
        let is_value = |value: &str| !value.is_empty() && is_queue_text(value.as_bytes());
        if self.attributes.len() > 10 || !self.attributes.iter().all(|(_, value)| is_value(value)) {
            return invalid("attributes");
        }
        match self.size() {
            size if size > limit => Err(MessageError::TooLarge { size, limit }),
            _ => Ok(()),
        }
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Whether SQS carries these bytes as text: UTF-8 of #x9, #xA, #xD, #x20-#xD7FF, #xE000-#xFFFD, #x10000-#x10FFFF
/// (SQS API reference, SendMessage, MessageBody).
pub fn is_queue_text(bytes: &[u8]) -> bool {
    let refused = |c: char| {
        (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    // Without a way out of the middle, so that it is done many bytes at once: nearly every body is good.
    let is_control = |b: u8| b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r');
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => !bytes.iter().fold(false, |any, b| any | is_control(*b)),
        Ok(text) => !text.contains(refused),
        Err(_) => false,
    }
}

/// Whether a header of this name carries credentials or concerns one connection only (RFC 9110, 7.6.1).
pub fn is_withheld(name: &HeaderName) -> bool {
    const HOP_BY_HOP: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "expect",
    ];
    const SENSITIVE: [&str; 8] = [
        "signature",
        "hmac",
        "authorization",
        "authenticate",
        "cookie",
        "token",
        "secret",
        "api-key",
    ];
    let name = name.as_str();
    HOP_BY_HOP.contains(&name) || SENSITIVE.iter().any(|part| name.contains(part))
}

fn encode_body(body: &Bytes) -> (Bytes, &'static str) {
    if body.is_empty() {
        (Bytes::from_static(b"-"), "empty")
    } else if is_queue_text(body) {
        (body.clone(), "identity")
    } else {
        (data_encoding::BASE64.encode(body).into(), "base64")
    }
}

/// What a provider wrote, as an attribute can carry it: by the rule of event ids.
fn carried(text: &str) -> Option<String> {
    EventId::from_provider(text).map(|id| id.as_str().to_owned())
}

fn rfc3339(ms: u64) -> String {
    // Beyond the year 9999 there is no RFC 3339; a plugin's nonsense must not end the delivery.
    const LAST: u64 = 253_402_300_799_999;
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms.min(LAST))).to_string()
}

/// `00-` 32 hex digits `-` 16 hex digits `-` 2 hex digits (W3C Trace Context).
fn is_traceparent(value: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let parts: Vec<_> = value.split('-').collect();
    matches!(parts[..], [v, trace, span, flags]
        if hex(v, 2) && hex(trace, 32) && hex(span, 16) && hex(flags, 2))
}

#[cfg(test)]
mod tests;

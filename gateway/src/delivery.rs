//! What flows through the gateway: a delivery as received, a plugin's verdict about it, the event it carries.
//!
//! Data only: no I/O, no async, no clock. Knows nothing of HTTP servers, plugins' runtimes or backends;
//! everything else may know this.

pub mod identity;
pub mod message;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};

pub use identity::{EventId, EventKey, Name, Ordering};
pub use message::{Message, MessageError};

/// One HTTP request from a provider, read whole. The bytes are the bytes received.
#[derive(Debug)]
pub struct Delivery {
    /// The gateway's own id of this delivery, in logs, in the message and in the answer.
    pub id: uuid::Uuid,
    /// When its head arrived, in ms since 1970.
    pub received_at: u64,
    /// The request's method.
    pub method: Method,
    /// Path and query as received.
    pub target: String,
    /// What follows the source's name in the path, with its `/`; empty where nothing does.
    pub rest: String,
    /// All headers, in their order.
    pub headers: HeaderMap,
    /// The body, neither decoded nor decompressed.
    pub body: Bytes,
}

impl Delivery {
    /// The raw query, without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The URL that the provider called, where the source has a public URL: that verbatim, the rest of the
    /// path, and the raw query.
    pub fn external_url(&self, public_url: &str) -> String {
        let mut url = format!("{public_url}{}", self.rest);
        if let Some(query) = self.query() {
            url.push('?');
            url.push_str(query);
        }
        url
    }
}

/// What a plugin makes of a delivery. A "no" is a verdict, never an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Authentic.
    Accept(Event),
    /// A handshake: answered at once, never deduplicated or queued.
    Respond(Response),
    /// Refused.
    Reject(Rejection),
}

/// An authenticated event, as the plugin names it. Times are ms since 1970.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// The provider's id; the same in every delivery of the event.
    pub id: Option<String>,
    /// What events that must stay in order share.
    pub ordering_key: Option<String>,
    /// The provider's name for what happened.
    pub event_type: Option<String>,
    /// When it was signed.
    pub signed_at: Option<u64>,
    /// When it happened.
    pub occurred_at: Option<u64>,
    /// The provider's place of it in an order.
    pub sequence: Option<String>,
    /// The answer the provider demands, where it is not the source's.
    pub response: Option<Response>,
    /// What tells apart events with equal bodies and no id.
    pub extra: Vec<(String, String)>,
}

/// An answer to a provider, small enough to be kept with the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status, where one was demanded; else the outcome's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    /// Headers beside the gateway's own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "body_text")]
    pub body: Bytes,
}

/// A refusal and its reason, which is for the operator's log only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What the sender is told.
    pub kind: RejectKind,
    /// What the operator is told.
    pub reason: String,
}

impl Rejection {
    /// A refusal of `kind` because of `reason`.
    pub fn new(kind: RejectKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
        }
    }
}

/// Why a delivery is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectKind {
    /// No signature of a known form.
    MissingSignature,
    /// A signature that does not fit.
    BadSignature,
    /// Signed too long ago, or in the future.
    Stale,
    /// Not what the provider sends.
    Malformed,
    /// A method that the provider does not use.
    Method,
    /// A content type that the provider does not use.
    Media,
    /// Authentic, but without the id that the source demands.
    NoEventId,
}

impl RejectKind {
    /// The kind's name in logs, metrics and `plugin test`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingSignature => "missing-signature",
            Self::BadSignature => "bad-signature",
            Self::Stale => "stale",
            Self::Malformed => "malformed",
            Self::Method => "method",
            Self::Media => "media",
            Self::NoEventId => "no-event-id",
        }
    }
}

/// Bodies are kept as text where they are text, so that a record can be read by a person.
mod body_text {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(serde::Serialize, Deserialize)]
    #[serde(untagged)]
    enum Body<'a> {
        Text(std::borrow::Cow<'a, str>),
        Base64 { base64: String },
    }

    pub fn serialize<S: Serializer>(body: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        let body = match std::str::from_utf8(body) {
            Ok(text) => Body::Text(text.into()),
            Err(_) => Body::Base64 {
                base64: data_encoding::BASE64.encode(body),
            },
        };
        serde::Serialize::serialize(&body, to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        match Body::deserialize(from)? {
            Body::Text(text) => Ok(text.into_owned().into()),
            Body::Base64 { base64 } => data_encoding::BASE64
                .decode(base64.as_bytes())
                .map(Bytes::from)
                .map_err(serde::de::Error::custom),
        }
    }
}

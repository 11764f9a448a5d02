//! Who an event is: names, event ids, event keys, and their mapping to a broker's deduplication and group ids.
//!
//! The mapping is injective, so that two tenants, two sources or two events never meet in the broker, and it
//! keeps to SQS FIFO's rules itself, since stand-ins do not check them.

use std::fmt;
use std::sync::Arc;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};

use crate::crypto::{self, Sha256};

/// The longest deduplication or group id of SQS FIFO, in characters
/// (SQS API reference, SendMessage, MessageDeduplicationId).
pub const MAX_BROKER_ID: usize = 128;

/// The longest event id, in bytes. A longer one is replaced by its digest.
pub const MAX_EVENT_ID: usize = 512;

/// A tenant's or source's name: `[a-z0-9][a-z0-9-]{0,62}`, so that `.` separates and `~` cannot begin one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The name, or none where the text is not one.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let lower = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = (1..=63).contains(&bytes.len())
            && lower(&bytes[0])
            && bytes.iter().all(|b| lower(b) || *b == b'-');
        fits.then(|| Self(text.into()))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// An event's id: 1 to 512 bytes of text that SQS accepts, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId(String);

impl EventId {
    /// The id that a provider gave; the digest of one that SQS would not carry. Empty text is no id.
    pub fn from_provider(id: &str) -> Option<Self> {
        if id.is_empty() {
            return None;
        }
        let fits = id.len() <= MAX_EVENT_ID
            && super::message::is_queue_text(id.as_bytes())
            && !id.chars().any(char::is_control);
        Some(Self(if fits {
            id.to_owned()
        } else {
            digest_id(crypto::sha256(id.as_bytes()))
        }))
    }

    /// The id of an event that has none: the digest of its raw body and of what the plugin adds.
    pub fn of_content(body: &[u8], body_sha256: [u8; 32], extra: &[(String, String)]) -> Self {
        if extra.is_empty() {
            return Self(digest_id(body_sha256));
        }
        let mut digest = Sha256::new();
        length_prefixed(&mut digest, body);
        for (name, value) in extra {
            length_prefixed(&mut digest, name.as_bytes());
            length_prefixed(&mut digest, value.as_bytes());
        }
        Self(digest_id(digest.finish()))
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn digest_id(digest: [u8; 32]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&digest))
}

/// How a source's events are ordered in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// Events with the same ordering key stay in order; an event without one is ordered with none.
    #[default]
    Key,
    /// All events of the source stay in order.
    Source,
    /// No order is promised.
    None,
}

/// What an event is known by: (tenant, source, event id [, body digest]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventKey {
    tenant: Name,
    source: Name,
    id: EventId,
    distinct: Option<[u8; 32]>,
}

impl EventKey {
    /// The key of an event; with `distinct`, the digest of its body tells it from others of the same id.
    pub fn new(tenant: Name, source: Name, id: EventId, distinct: Option<[u8; 32]>) -> Self {
        Self {
            tenant,
            source,
            id,
            distinct,
        }
    }

    /// The tenant's name.
    pub fn tenant(&self) -> &Name {
        &self.tenant
    }

    /// The source's name.
    pub fn source(&self) -> &Name {
        &self.source
    }

    /// The event's id as consumers see it (`ce-id`): with the body's digest where that is part of the key.
    pub fn public_id(&self) -> String {
        match &self.distinct {
            None => self.id.0.clone(),
            Some(digest) => format!("{}~{}", self.id.0, HEXLOWER.encode(digest)),
        }
    }

    /// The key of the claim record: the deduplication id of generation 0.
    pub fn claim_key(&self) -> String {
        self.deduplication_id(0)
    }

    /// The deduplication id of a generation.
    pub fn deduplication_id(&self, generation: u32) -> String {
        if self.distinct.is_none()
            && let Some(mut id) = plain_id(&self.tenant, &self.source, &self.id.0)
        {
            if generation > 0 {
                id = format!("{id}~{generation}");
            }
            if id.len() <= MAX_BROKER_ID {
                return id;
            }
        }
        let kind = if self.distinct.is_some() {
            "distinct"
        } else {
            "id"
        };
        hashed_id(
            &self.tenant,
            &self.source,
            kind,
            &self.public_id(),
            generation,
        )
    }

    /// The group id that the source's ordering gives the event.
    pub fn group_id(&self, ordering: Ordering, ordering_key: Option<&str>) -> String {
        let (tenant, source) = (&self.tenant, &self.source);
        let value = match (ordering, ordering_key) {
            (Ordering::Source, _) => return format!("{tenant}.{source}"),
            (Ordering::Key, Some(key)) => key.to_owned(),
            (Ordering::Key | Ordering::None, _) => self.public_id(),
        };
        plain_id(tenant, source, &value)
            .filter(|id| id.len() <= MAX_BROKER_ID)
            .unwrap_or_else(|| hashed_id(tenant, source, "group", &value, 0))
    }
}

/// `tenant.source.value`, where SQS takes its characters and it cannot be mistaken for another form.
fn plain_id(tenant: &Name, source: &Name, value: &str) -> Option<String> {
    value
        .bytes()
        .all(|b| b.is_ascii_graphic() && b != b'~')
        .then(|| format!("{tenant}.{source}.{value}"))
}

/// `~` and the digest of the parts, each behind its length.
fn hashed_id(tenant: &Name, source: &Name, kind: &str, value: &str, generation: u32) -> String {
    let mut digest = Sha256::new();
    for part in [
        tenant.as_str(),
        source.as_str(),
        kind,
        value,
        &generation.to_string(),
    ] {
        length_prefixed(&mut digest, part.as_bytes());
    }
    format!("~{}", BASE64URL_NOPAD.encode(&digest.finish()))
}

fn length_prefixed(digest: &mut Sha256, part: &[u8]) {
    // Bodies are bounded far below 4 GiB by configuration.
    digest.update(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
    digest.update(part);
}

#[cfg(test)]
mod tests;

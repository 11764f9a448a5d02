//! What became of a delivery, and the one table that maps it to an answer.
//!
//! Senders see fixed texts that hold no internal name, no reason and no expected value.

use bytes::Bytes;

use crate::delivery::{RejectKind, Response};
use crate::plugin::Manifest;
use crate::telemetry::OutcomeLabel;

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its message is in the queue, durably.
    Accepted(Response),
    /// Its event was accepted before, with this answer.
    Duplicate(Response),
    /// Another delivery of its event is still at work.
    InFlight,
    /// A handshake.
    Handshake(Response),
    /// Refused by the plugin, or by the source's policy about time and ids.
    Rejected(RejectKind),
    /// No such tenant or source: one case for both.
    UnknownSource,
    /// A method that no source takes.
    Method,
    /// A body, or a message made of it, above the limits.
    TooLarge,
    /// A body that did not arrive in time.
    TooSlow,
    /// The queue is too deep, or too much is at work: the sender is told to come again in so many seconds.
    Overloaded {
        /// In how many.
        retry_after: u64,
    },
    /// The memory budget is spent; a store, queue, secret or plugin is unavailable; the gateway drains.
    Unavailable,
    /// The plugin failed in a way that a retry may not.
    PluginSlow,
    /// The plugin failed.
    PluginFault,
}

/// An answer, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers beside the content's and the delivery's.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Outcome {
    /// The outcome in metrics.
    pub fn label(&self) -> OutcomeLabel {
        match self {
            Self::Accepted(_) => OutcomeLabel::Accepted,
            Self::Duplicate(_) => OutcomeLabel::Duplicate,
            Self::InFlight => OutcomeLabel::InFlight,
            Self::Handshake(_) => OutcomeLabel::Handshake,
            Self::Rejected(_) | Self::UnknownSource | Self::Method => OutcomeLabel::Rejected,
            Self::TooLarge => OutcomeLabel::TooLarge,
            Self::TooSlow => OutcomeLabel::TooSlow,
            Self::Overloaded { .. } => OutcomeLabel::Overloaded,
            Self::Unavailable => OutcomeLabel::Unavailable,
            Self::PluginSlow | Self::PluginFault => OutcomeLabel::PluginFault,
        }
    }

    /// What a delivery of the same event, which waited for this outcome, ends as.
    #[must_use]
    pub fn shared(self) -> Self {
        match self {
            Self::Accepted(response) => Self::Duplicate(response),
            other => other,
        }
    }

    /// The answer. The table's status is used for a temporary outcome only where the provider retries on
    /// it; a provider that takes it as final gets 503 (some take any 4xx as final).
    pub fn answer(self, manifest: Option<&Manifest>) -> Answer {
        let temporary = |status: u16| match manifest {
            Some(manifest) if !manifest.retries_on(status) => 503,
            _ => status,
        };
        match self {
            Self::Accepted(response) => replay(response, 202),
            Self::Duplicate(response) => {
                let mut answer = replay(response, 200);
                answer
                    .headers
                    .push(("hookgate-duplicate".into(), "true".into()));
                answer
            }
            Self::Handshake(response) => {
                let mut answer = replay(response, 200);
                answer
                    .headers
                    .push(("x-content-type-options".into(), "nosniff".into()));
                answer
            }
            Self::InFlight => later(temporary(409), "this event is being processed", 1),
            Self::Rejected(kind) => rejected(kind),
            Self::UnknownSource => error(404, "no such source"),
            Self::Method => {
                let mut answer = error(405, "method not allowed");
                answer
                    .headers
                    .push(("allow".into(), "POST, GET, HEAD, OPTIONS".into()));
                answer
            }
            Self::TooLarge => error(413, "too large"),
            Self::TooSlow => error(408, "the body did not arrive in time"),
            Self::Overloaded { retry_after } => {
                later(temporary(429), "too many events wait", retry_after)
            }
            Self::Unavailable | Self::PluginSlow => later(503, "try again later", 5),
            Self::PluginFault => error(temporary(500), "the delivery could not be processed"),
        }
    }
}

fn rejected(kind: RejectKind) -> Answer {
    match kind {
        RejectKind::MissingSignature => error(401, "signature missing"),
        RejectKind::BadSignature => error(401, "signature does not match"),
        RejectKind::Stale => error(401, "signature outside the time tolerance"),
        RejectKind::Malformed => error(400, "malformed delivery"),
        RejectKind::NoEventId => error(400, "event id missing"),
        RejectKind::Method => error(405, "method not allowed"),
        RejectKind::Media => error(415, "unsupported media type"),
    }
}

/// A stored answer again. A status that was asked for is kept, also for duplicates; its body is empty where
/// the status allows none.
fn replay(response: Response, status: u16) -> Answer {
    let status = response.status.unwrap_or(status);
    let body = if status == 204 {
        Bytes::new()
    } else {
        response.body
    };
    Answer {
        status,
        headers: response.headers,
        body,
    }
}

fn error(status: u16, text: &str) -> Answer {
    Answer {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: format!("{{\"error\":\"{text}\"}}").into(),
    }
}

fn later(status: u16, text: &str, seconds: u64) -> Answer {
    let mut answer = error(status, text);
    answer
        .headers
        .push(("retry-after".into(), seconds.to_string()));
    answer
}

#[cfg(test)]
mod tests;

//! Refusals: a kind, which decides what the sender sees, and a reason for the operator's log.
//!
//! A reason says what was wrong with the delivery. It must not quote signatures or the body: whoever
//! reads the log need not be allowed to see them.

use crate::bindings::hookgate::provider::types::{RejectKind, Rejection};

impl Rejection {
    /// No signature, or none of a form that the scheme knows.
    pub fn missing_signature(reason: impl Into<String>) -> Self {
        Self {
            kind: RejectKind::MissingSignature,
            reason: reason.into(),
        }
    }

    /// A signature that does not fit.
    pub fn bad_signature(reason: impl Into<String>) -> Self {
        Self {
            kind: RejectKind::BadSignature,
            reason: reason.into(),
        }
    }

    /// Signed too long ago, by a tolerance of the provider's own: the host holds every signed time against the
    /// source's.
    pub fn stale(reason: impl Into<String>) -> Self {
        Self {
            kind: RejectKind::Stale,
            reason: reason.into(),
        }
    }

    /// Not what the provider sends.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self {
            kind: RejectKind::Malformed,
            reason: reason.into(),
        }
    }
}

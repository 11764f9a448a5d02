//! The claim store seam: the record that says what became of an event key, and the five ways to touch it.
//!
//! Every backend keeps the same rules and passes one suite. Expiry is part of each condition, never left to
//! the store's own deletion; `<= now` is expired. What makes two owners at once harmless is the broker's
//! window with the same deduplication id and group, not the lease: an early takeover is safe, a late send is
//! the danger.

pub mod claims;
pub mod dynamodb;
pub mod memory;
pub mod redis;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Span;
use crate::delivery::Response;

/// The record's format.
pub const RECORD_VERSION: u32 = 1;

/// A lease that ends later than now, plus this, is impossible: its writer's clock was wrong. It counts as
/// lapsed. The longest lease (30 s) and twice the skew at which a gateway is unready (10 s).
pub const IMPOSSIBLE_LEASE: Duration = Duration::from_secs(30 + 2 * 10);

/// Who holds a claim: random, made anew for every delivery that claims.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token(uuid::Uuid);

impl Token {
    /// The token that this text names.
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text).ok().map(Self)
    }

    /// A token that nobody has.
    #[allow(clippy::new_without_default, reason = "two tokens are never equal")]
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

/// What is known of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Somebody works on it, or died doing so.
    Processing,
    /// Its message is in the queue.
    Accepted,
}

/// The claim record. Its key is the deduplication id of generation 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The record's format.
    pub version: u32,
    /// What is known.
    pub state: State,
    /// The owner's token.
    pub token: Token,
    /// Until when others let the owner work, in ms since 1970.
    pub lease_until: u64,
    /// When the generation was first claimed, in ms since 1970.
    pub first_at: u64,
    /// When it was accepted, in ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted_at: Option<u64>,
    /// 0, or higher after a second message was asked for.
    pub generation: u32,
    /// The group that every owner sends with.
    pub group: String,
    /// The queue that the first owner sent to.
    pub queue: String,
    /// The SHA-256 digest of the body, in hexadecimal.
    pub body_sha256: String,
    /// The first answer, for duplicates.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Response>,
    /// From when on the record counts as absent, in seconds since 1970.
    pub expires_at: u64,
}

impl Claim {
    /// Whether the record counts as absent at this moment, in ms since 1970.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at.saturating_mul(1000) <= now_ms
    }

    /// How long the owner's lease still runs at this moment, in ms since 1970; none once it lapsed.
    pub fn lease_left(&self, now_ms: u64) -> Option<Duration> {
        let left = Duration::from_millis(self.lease_until.saturating_sub(now_ms));
        (!left.is_zero() && left <= IMPOSSIBLE_LEASE).then_some(left)
    }
}

/// A moment in ms, as the whole second that does not come before it.
pub fn whole_seconds_up(ms: u64) -> u64 {
    ms.div_ceil(1000)
}

/// What a delivery asks of the store.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The record's key.
    pub key: String,
    /// The delivery's token. A request that is sent again carries the same one.
    pub token: Token,
    /// How long the delivery wants to work.
    pub lease: Duration,
    /// The group, where this is the first claim.
    pub group: String,
    /// The queue, where this is the first claim.
    pub queue: String,
    /// The SHA-256 digest of the body, in hexadecimal.
    pub body_sha256: String,
    /// How long the record lives.
    pub ttl: Duration,
    /// Take the claim over from this owner although its lease runs.
    pub take_over: Option<Token>,
}

/// What one conditional round trip yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The delivery is the owner.
    Owner(Grant),
    /// The event was accepted before.
    Duplicate(Box<Claim>),
    /// Another owner is at work.
    InFlight {
        /// How long others let it work.
        lease_left: Duration,
        /// Its token, for a takeover.
        owner: Token,
    },
}

/// What an owner must send with: the record's facts, which survive any number of takeovers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The generation to send.
    pub generation: u32,
    /// The recorded group.
    pub group: String,
    /// The recorded queue.
    pub queue: String,
    /// When the generation was first claimed, in ms since 1970.
    pub first_at: u64,
    /// Whether another owner may have sent before.
    pub taken_over: bool,
}

/// Leave to send, as long as it runs. Counted from the moment before the claim was sent.
#[must_use = "a lease is settled or released"]
pub struct Lease {
    /// The record's key.
    pub key: String,
    /// The owner's token.
    pub token: Token,
    /// What to send with.
    pub grant: Grant,
    /// When sending ends.
    pub span: Span,
    /// Whether it stands on a claim; else nobody knows what others do.
    pub is_claimed: bool,
}

/// A fact to record: the message is in the queue.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The record's key.
    pub key: String,
    /// The accepted record as it is to stand.
    pub claim: Claim,
}

/// How a claim ends without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// As if it had never been: nothing was sent, by anybody.
    Delete,
    /// The record stays, its lease over: something may have been sent.
    EndLease,
}

/// Why a store did not answer as asked. Always the dependency's fault, and a retry helps.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It refused, so nothing has changed.
    #[error("the claim store refused: {0}")]
    Refused(String),
    /// It asks to be asked later, and nothing has changed.
    #[error("the claim store is busy: {0}")]
    Busy(String),
    /// Nobody knows whether it did what was asked.
    #[error("the claim store did not answer: {0}")]
    Ambiguous(String),
}

/// The claim store.
pub trait ClaimStore: Send + Sync + 'static {
    /// Claims an event with one conditional round trip. A request that meets its own write owns the claim.
    fn claim(
        &self,
        request: &ClaimRequest,
    ) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Records that the message is in the queue. Holds over an absent record, over a lapsed one, and over
    /// another owner's of the same generation; an accepted record and one of a higher generation stay as
    /// they are, which is a success too.
    fn settle(
        &self,
        settlement: &Settlement,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives a claim up, if the token still holds it.
    fn release(
        &self,
        key: &str,
        token: Token,
        how: Release,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Asks for one more message of an event that was accepted in this generation: its record becomes one of
    /// the next generation that waits for an owner. False where the record is another by now, or absent.
    fn forget(
        &self,
        key: &str,
        generation: u32,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Reads without claiming; none where nothing is recorded or it has expired.
    fn look(&self, key: &str) -> impl Future<Output = Result<Option<Claim>, StoreError>> + Send;
}

/// The rules of the five calls as pure functions of the record found, for backends that can run code next to
/// their data. Remote ones say the same in their own conditions.
pub mod rules {
    use super::{Claim, ClaimRequest, Claimed, Grant, RECORD_VERSION, State, Token};

    /// What a claim finds, and the record to write, if any.
    pub fn claim(
        found: Option<Claim>,
        request: &ClaimRequest,
        now: u64,
    ) -> (Claimed, Option<Claim>) {
        let lease_until = now + super::millis(request.lease);
        let expires_at = super::whole_seconds_up(now + super::millis(request.ttl));
        let Some(mut found) = found.filter(|claim| !claim.is_expired(now)) else {
            let fresh = fresh(request, now, lease_until, expires_at);
            return (Claimed::Owner(grant(&fresh, false)), Some(fresh));
        };
        if found.state == State::Accepted {
            return (Claimed::Duplicate(Box::new(found)), None);
        }
        let mine = found.token == request.token;
        match found.lease_left(now) {
            Some(lease_left) if !mine && request.take_over != Some(found.token) => (
                Claimed::InFlight {
                    lease_left,
                    owner: found.token,
                },
                None,
            ),
            // A call that meets its own write may have met its own takeover too.
            _ => {
                found.token = request.token;
                found.lease_until = lease_until;
                found.expires_at = expires_at.max(found.expires_at);
                (Claimed::Owner(grant(&found, true)), Some(found))
            }
        }
    }

    fn fresh(request: &ClaimRequest, now: u64, lease_until: u64, expires_at: u64) -> Claim {
        Claim {
            version: RECORD_VERSION,
            state: State::Processing,
            token: request.token,
            lease_until,
            first_at: now,
            accepted_at: None,
            generation: 0,
            group: request.group.clone(),
            queue: request.queue.clone(),
            body_sha256: request.body_sha256.clone(),
            response: None,
            expires_at,
        }
    }

    fn grant(claim: &Claim, taken_over: bool) -> Grant {
        Grant {
            generation: claim.generation,
            group: claim.group.clone(),
            queue: claim.queue.clone(),
            first_at: claim.first_at,
            taken_over,
        }
    }

    /// Whether a settlement is written over what is found.
    pub fn settles(found: Option<&Claim>, settlement: &Claim, now: u64) -> bool {
        match found.filter(|claim| !claim.is_expired(now)) {
            None => true,
            Some(found) => {
                found.state == State::Processing && found.generation <= settlement.generation
            }
        }
    }

    /// The record of the next generation, where this one was accepted.
    pub fn forget(found: Option<&Claim>, generation: u32, now: u64) -> Option<Claim> {
        let found = found.filter(|claim| !claim.is_expired(now))?;
        let is_it = found.state == State::Accepted && found.generation == generation;
        is_it.then(|| Claim {
            state: State::Processing,
            token: Token::new(),
            lease_until: 0,
            first_at: now,
            accepted_at: None,
            generation: generation.saturating_add(1),
            response: None,
            ..found.clone()
        })
    }

    /// Whether this token may release what is found.
    pub fn releases(found: &Claim, token: Token) -> bool {
        found.state == State::Processing && found.token == token
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! The plugin seam: what authenticates a delivery, and what it is told.
//!
//! A plugin is a pure function of the delivery, the source's setup and the keys that it names but never sees.
//! Its "no" is a verdict; a [`Fault`] is the plugin's or the host's own failure. Only the modules below name
//! wasmtime; the pipeline knows this file alone.

pub mod build;
#[cfg(test)]
pub(crate) mod guests;
mod host;
mod json;
mod limits;
pub mod manifest;
mod preset;
pub mod registry;
pub mod sample;
mod sandbox;
pub mod scaffold;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::crypto::Keyring;
use crate::delivery::{Delivery, Verdict};
use crate::keys::{Remote, Wanted};

pub use host::{Asked, Said};
pub use limits::Limits;
pub use manifest::Manifest;
pub use sandbox::{Sandbox, SandboxError, WasmPlugin};

/// What a plugin is told of a source.
#[derive(Debug, Default)]
pub struct Setup {
    /// `/tenant/source`, for log lines.
    pub label: String,
    /// The source's keys, which stay in the host.
    pub keys: Keyring,
    /// The source's options: text as it is, anything else as JSON.
    pub options: BTreeMap<String, String>,
    /// The URL that the provider is told to call, verbatim.
    pub public_url: Option<String>,
    /// The keys by URL; none where the source fetches none.
    pub remote: Option<Remote>,
    /// Whether the answer to a handshake may hold a MAC.
    pub sign_challenges: bool,
}

/// What came of a call.
#[derive(Debug)]
pub struct Handled {
    /// The verdict.
    pub verdict: Verdict,
    /// Which active value of which secret matched last, by its place.
    pub key: Option<(String, usize)>,
    /// The URL to ask before a handshake is answered.
    pub confirm: Option<String>,
    /// Computation used, in units of fuel.
    pub fuel: u64,
}

/// A provider's plugin, ready to be called from any thread, any number of times at once.
pub trait Plugin: Send + Sync {
    /// What the plugin says of itself.
    fn manifest(&self) -> &Manifest;

    /// Decides about a delivery. Blocks for at most a few milliseconds: computation is bounded by fuel.
    fn handle(&self, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> Result<Handled, Fault>;
}

/// Why there is no verdict. Whose fault it is decides the answer: see [`crate::outcome`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// More computation than a delivery may take.
    #[error("the plugin used up its fuel of {limit} units")]
    OutOfFuel {
        /// The limit in units of fuel.
        limit: u64,
    },
    /// More memory or table elements than a delivery may take.
    #[error("the plugin asked for {asked} {what}, of which it may have {limit}")]
    OutOfMemory {
        /// Bytes of memory, or table elements.
        what: &'static str,
        /// How many it asked for.
        asked: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An unreachable instruction, an overflown stack, a division by zero and the like.
    #[error("the plugin trapped: {reason}")]
    Trap {
        /// The runtime's word for it.
        reason: String,
    },
    /// An answer that the interface does not allow.
    #[error("the plugin's answer is refused: {what}")]
    Refused {
        /// What is wrong with it.
        what: String,
    },
    /// A key by URL is not at hand: once it is fetched, the same call gets further.
    #[error("the plugin needs the key at {0}, which is not at hand")]
    KeyNeeded(Wanted),
    /// A key by URL cannot be had. The same delivery may succeed later.
    #[error("a key by URL cannot be had: {reason}")]
    KeyUnavailable {
        /// Why.
        reason: String,
    },
    /// Longer than any honest call takes. The machine may be overloaded: the same delivery may succeed later.
    #[error("the plugin ran longer than {limit:?}")]
    WallClock {
        /// The limit.
        limit: Duration,
    },
    /// Every sandbox is in use.
    #[error("all {slots} sandboxes are in use")]
    NoSlot {
        /// How many there are.
        slots: u32,
    },
}

impl Fault {
    /// The fault's name in metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OutOfFuel { .. } => "fuel",
            Self::OutOfMemory { .. } => "memory",
            Self::Trap { .. } => "trap",
            Self::Refused { .. } => "refused",
            Self::KeyNeeded(_) | Self::KeyUnavailable { .. } => "key",
            Self::WallClock { .. } => "wall-clock",
            Self::NoSlot { .. } => "no-slot",
        }
    }

    /// Whether the same delivery may well succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::WallClock { .. }
                | Self::NoSlot { .. }
                | Self::KeyNeeded(_)
                | Self::KeyUnavailable { .. }
        )
    }
}

//! What a provider's plugin for Hookgate is written with: safe types over the interface
//! `hookgate:provider@1.0.0`, readers for what signature headers hold, and the memory of the sandbox.
//!
//! A plugin is a type that implements [`Provider`], exported with [`provider!`]. It says what was
//! signed and which signature was sent; keys, hashing and comparison stay in the host. It lives for one
//! delivery, so it keeps no state and frees nothing.
//!
//! The SDK knows no provider, no JSON text and no cryptography.

#[cfg(target_arch = "wasm32")]
mod allocator;
#[doc(hidden)]
pub mod bindings;
pub mod delivery;
mod elements;
pub mod encode;
pub mod family;
mod list;
pub mod pairs;
mod rejection;
mod response;
pub mod time;
pub mod verification;

pub use bindings::hookgate::provider::handshake;
pub use bindings::hookgate::provider::source;
pub use bindings::hookgate::provider::types::{
    BodyDigest, DigestAlgorithm, Encoding, Event, JsonError, JsonValue, JwksKey, JwtAlgorithm, Key,
    MacAlgorithm, MacRequest, Pair, Part, RejectKind, Rejection, Response, Segment, Signature,
    SignatureScheme, Verdict,
};
pub use delivery::Json;
pub use elements::{Ambiguous, Elements};
pub use verification::Message;

/// A provider: what it is, and what it makes of a delivery.
pub trait Provider {
    /// The manifest, as JSON with `"v": 1`. Usually `include_str!("../manifest.json")`.
    const MANIFEST: &'static str;

    /// Decides about the delivery at hand.
    ///
    /// # Errors
    ///
    /// A rejection refuses the delivery. The sender sees a fixed text for its kind, the log the reason.
    fn handle() -> Result<Verdict, Rejection>;
}

/// Exports a [`Provider`] as the component's world.
///
/// ```no_run
/// use hookgate_sdk::{
///     Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery,
/// };
///
/// struct Acme;
///
/// hookgate_sdk::provider!(Acme);
///
/// impl Provider for Acme {
///     const MANIFEST: &'static str = r#"{ "v": 1, "name": "acme" }"#;
///
///     fn handle() -> Result<Verdict, Rejection> {
///         let header = delivery::signature_header("acme-signature")?;
///         let signature = [Signature::hex(&header)];
///         Message::new().body().verify_mac(MacAlgorithm::HmacSha256, "secret", signature)?;
///         Event { id: Json::Body.text("/id")?, ..Event::default() }.accept()
///     }
/// }
/// ```
#[macro_export]
macro_rules! provider {
    ($provider:ident) => {
        $crate::bindings::export_provider!($provider with_types_in $crate::bindings);
    };
}

impl<P: Provider> bindings::Guest for P {
    fn manifest() -> String {
        P::MANIFEST.into()
    }

    fn handle() -> Verdict {
        P::handle().unwrap_or_else(Verdict::Reject)
    }
}

#[allow(
    clippy::derivable_impls,
    reason = "the type is generated, and its derives are shared"
)]
impl Default for Event {
    fn default() -> Self {
        Self {
            id: None,
            ordering_key: None,
            event_type: None,
            signed_at: None,
            occurred_at: None,
            sequence: None,
            response: None,
            extra: Vec::new(),
        }
    }
}

impl Event {
    /// The verdict that the delivery is authentic and is this event.
    ///
    /// # Errors
    ///
    /// Never: the result is what [`Provider::handle`] returns.
    pub fn accept(self) -> Result<Verdict, Rejection> {
        Ok(Verdict::Accept(vec![self]))
    }
}

//! Standard Webhooks, and Svix and Finch, which differ in the headers' names: `<id>.<timestamp>.<body>` is
//! signed with HMAC-SHA256 (`v1,<base64>`) or with Ed25519 (`v1a,<base64>`).
//!
//! The header is a list with spaces: any signature of a known version may fit, others are ignored. A source
//! has the secret, the public key, or both. Each attempt is signed anew, so the time is the attempt's. The
//! body is the sender's own; type, time and order are read where the specification recommends them.

use hookgate_sdk::{
    Elements, Event, Json, Key, MacAlgorithm, Message, Provider, Rejection, Signature,
    SignatureScheme, Verdict, delivery, source, time, verification,
};

struct StandardWebhooks;

hookgate_sdk::provider!(StandardWebhooks);

/// The names of id, timestamp and signature.
const HEADERS: [[&str; 3]; 3] = [
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
    ["svix-id", "svix-timestamp", "svix-signature"],
    ["finch-event-id", "finch-timestamp", "finch-signature"],
];

impl Provider for StandardWebhooks {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed = Signed::read()?;
        signed.verify()?;
        let key = source::option("ordering_key");
        let occurred_at = Json::Body.first_scalar(&["/timestamp", "/created_at"])?;
        Event {
            id: Some(signed.id),
            event_type: Json::Body.first_scalar(&["/type", "/event_type"])?,
            ordering_key: Json::Body.first_scalar(&[key.as_deref().unwrap_or("/data/id")])?,
            signed_at: Some(signed.at),
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// What the headers say.
struct Signed {
    id: String,
    timestamp: String,
    /// The timestamp in milliseconds since 1970.
    at: u64,
    signatures: String,
}

impl Signed {
    fn read() -> Result<Self, Rejection> {
        for [id, timestamp, signature] in HEADERS {
            let Some(signatures) = delivery::header(signature)? else {
                continue;
            };
            let timestamp = delivery::signature_header(timestamp)?;
            let at = time::from_seconds(&timestamp)
                .ok_or_else(|| Rejection::malformed("timestamp: not a number of seconds"))?;
            return Ok(Self {
                id: delivery::signature_header(id)?,
                timestamp,
                at,
                signatures,
            });
        }
        Err(Rejection::missing_signature("no signature header"))
    }

    fn verify(&self) -> Result<(), Rejection> {
        let message = Message::new()
            .literal([self.id.as_str(), ".", &self.timestamp, "."].concat())
            .body();
        let elements = Elements::new(&self.signatures, b' ');
        let asymmetric: Vec<_> = elements
            .with_prefix("v1a,")
            .map(Signature::base64)
            .collect();
        if asymmetric.iter().any(|signature| fits(&message, signature)) {
            return Ok(());
        }
        let symmetric = elements.with_prefix("v1,").map(Signature::base64);
        let verified = message.verify_mac(MacAlgorithm::HmacSha256, "secret", symmetric);
        verified.map_err(|rejection| match asymmetric.as_slice() {
            [] => rejection,
            _ => Rejection::bad_signature("no signature fits"),
        })
    }
}

fn fits(message: &Message, signature: &Signature) -> bool {
    let key = Key::Named("public_key".into());
    let scheme = SignatureScheme::Ed25519;
    verification::verify_signature(scheme, &key, message.segments(), signature)
}

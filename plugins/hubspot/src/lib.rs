//! HubSpot: three versions of a signature under the app's client secret, of which the newest that came counts.
//!
//! v3 is the HMAC-SHA256 in base64 of method, URL, body and timestamp (in milliseconds). v1 and v2 are no
//! HMACs: the SHA-256 of the secret with the body, or with method, URL and body, behind it. HubSpot signs the
//! URL with some of its escapes decoded, so it is tried as called and so decoded. A delivery is a list of
//! events: only a list of one has an id.

mod url;

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Segment, Signature, Verdict, delivery,
    time,
};

struct HubSpot;

hookgate_sdk::provider!(HubSpot);

impl Provider for HubSpot {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = match delivery::header("x-hubspot-signature-v3")? {
            Some(signature) => Some(verify_v3(&signature)?),
            None => verify_older().map(|()| None)?,
        };
        let occurred_at = Json::Body.only_text("", "/occurredAt")?;
        Event {
            id: Json::Body.only_text("", "/eventId")?,
            event_type: Json::Body.only_text("", "/subscriptionType")?,
            ordering_key: Json::Body.only_text("", "/objectId")?,
            signed_at,
            occurred_at: occurred_at.and_then(|text| time::from_millis(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify_v3(signature: &str) -> Result<u64, Rejection> {
    let timestamp = delivery::signature_header("x-hubspot-request-timestamp")?;
    let signed_at = time::from_millis(&timestamp).ok_or_else(|| {
        Rejection::malformed("X-HubSpot-Request-Timestamp: not a number of milliseconds")
    })?;
    let called = delivery::called_url()?;
    let verify = |url: &str| {
        Message::new()
            .segment(Segment::Method)
            .literal(url)
            .body()
            .literal(timestamp.as_str())
            .verify_mac(
                MacAlgorithm::HmacSha256,
                "secret",
                [Signature::base64(signature)],
            )
    };
    verify(&called).or_else(|_| verify(&url::decoded(&called)))?;
    Ok(signed_at)
}

fn verify_older() -> Result<(), Rejection> {
    let signature = delivery::signature_header("x-hubspot-signature")?;
    let version = delivery::signature_header("x-hubspot-signature-version")?;
    let secret = Message::new().segment(Segment::Secret("secret".into()));
    let message = match version.as_str() {
        "v1" => secret.body(),
        "v2" => secret
            .segment(Segment::Method)
            .literal(delivery::called_url()?)
            .body(),
        _ => {
            return Err(Rejection::missing_signature(
                "X-HubSpot-Signature-Version: unknown",
            ));
        }
    };
    message.verify_mac(MacAlgorithm::Sha256, "secret", [Signature::hex(&signature)])
}

//! SendGrid's Event Webhook: `X-Twilio-Email-Event-Webhook-Signature` is the ECDSA P-256 signature, DER in
//! base64, of the timestamp's header and the body, by a key of which SendGrid shows the public half.
//!
//! The body ends in CR LF, which is signed. It is a list of events: only a list of one has an id.

use hookgate_sdk::{
    Event, Json, Key, Message, Provider, Rejection, Signature, SignatureScheme, Verdict, delivery,
    time,
};

struct SendGrid;

hookgate_sdk::provider!(SendGrid);

impl Provider for SendGrid {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        let occurred_at = Json::Body.only_text("", "/timestamp")?;
        Event {
            id: Json::Body.only_text("", "/sg_event_id")?,
            event_type: Json::Body.only_text("", "/event")?,
            ordering_key: Json::Body.only_text("", "/sg_message_id")?,
            signed_at: Some(signed_at),
            occurred_at: occurred_at.and_then(|text| time::from_seconds(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("x-twilio-email-event-webhook-signature")?;
    let timestamp = delivery::signature_header("x-twilio-email-event-webhook-timestamp")?;
    let signed_at = time::from_seconds(&timestamp)
        .ok_or_else(|| Rejection::malformed("timestamp: not a number of seconds"))?;
    Message::new().literal(timestamp).body().verify_signature(
        SignatureScheme::EcdsaP256Sha256Der,
        &Key::Named("public_key".into()),
        [Signature::base64(&header)],
    )?;
    Ok(signed_at)
}

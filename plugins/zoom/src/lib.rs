//! Zoom: `x-zm-signature: v0=<hex>` signs `v0:<timestamp>:<body>` with HMAC-SHA256.
//!
//! `endpoint.url_validation`, which comes when the URL is saved and every 72 hours, is answered with its
//! `plainToken` and that one's HMAC. Events have no id. What must stay in order shares the meeting or user.

use hookgate_sdk::{
    Encoding, Event, Json, MacAlgorithm, Message, Part, Provider, Rejection, Response, Signature,
    Verdict, delivery, encode, time,
};

struct Zoom;

hookgate_sdk::provider!(Zoom);

impl Provider for Zoom {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let event_type = Json::Body.text("/event")?;
        if event_type.as_deref() == Some("endpoint.url_validation") {
            // Some of these come unsigned; a signature that is there must fit.
            if delivery::header("x-zm-signature")?.is_some() {
                verify()?;
            }
            return answer();
        }
        let signed_at = verify()?;
        let occurred_at = Json::Body.text("/event_ts")?;
        Event {
            event_type,
            ordering_key: Json::Body.first_scalar(&[
                "/payload/object/uuid",
                "/payload/object/id",
                "/payload/account_id",
            ])?,
            signed_at: Some(signed_at),
            occurred_at: occurred_at.and_then(|text| time::from_millis(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("x-zm-signature")?;
    let timestamp = delivery::signature_header("x-zm-request-timestamp")?;
    let signed_at = time::from_seconds(&timestamp)
        .ok_or_else(|| Rejection::malformed("x-zm-request-timestamp: not a number of seconds"))?;
    let signature = header.strip_prefix("v0=").map(Signature::hex);
    Message::new()
        .literal(["v0:", &timestamp, ":"].concat())
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signature)?;
    Ok(signed_at)
}

fn answer() -> Result<Verdict, Rejection> {
    let token = Json::Body.required_text("/payload/plainToken")?;
    encode::check_challenge("plainToken", &token)?;
    let before = ["{\"plainToken\":\"", &token, "\",\"encryptedToken\":\""].concat();
    let mac =
        Message::new()
            .literal(token)
            .into_mac(MacAlgorithm::HmacSha256, "secret", Encoding::Hex);
    let parts = vec![
        Part::Bytes(before.into_bytes()),
        mac,
        Part::Bytes(b"\"}".to_vec()),
    ];
    Response::ok("application/json", parts).respond()
}

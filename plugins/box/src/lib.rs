//! Box: `box-signature-primary` and `box-signature-secondary` are the HMAC-SHA256 in base64 of the body with
//! `box-delivery-timestamp` behind it, each under one of the two signature keys.
//!
//! The two keys are there to be rotated one after the other, so either signature is enough. Version and
//! algorithm are named in headers, and no other than the known ones is taken. What must stay in order shares
//! the file or folder.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery, time,
};

struct Box;

hookgate_sdk::provider!(Box);

impl Provider for Box {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        let occurred_at = Json::Body.first_scalar(&["/created_at"])?;
        Event {
            id: delivery::header("box-delivery-id")?,
            event_type: Json::Body.text("/trigger")?,
            ordering_key: Json::Body.first_scalar(&["/source/id"])?,
            signed_at: Some(signed_at),
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies a signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    expect("box-signature-version", "1")?;
    expect("box-signature-algorithm", "HmacSHA256")?;
    let timestamp = delivery::signature_header("box-delivery-timestamp")?;
    let signed_at = time::from_rfc3339(&timestamp)
        .ok_or_else(|| Rejection::malformed("box-delivery-timestamp: not a time"))?;
    let primary = delivery::header("box-signature-primary")?;
    let secondary = delivery::header("box-signature-secondary")?;
    let signatures = [primary, secondary].into_iter().flatten();
    let signatures = signatures.map(|text| Signature::base64(&text));
    Message::new().body().literal(timestamp).verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        signatures,
    )?;
    Ok(signed_at)
}

fn expect(header: &str, known: &str) -> Result<(), Rejection> {
    if delivery::signature_header(header)? == known {
        return Ok(());
    }
    Err(Rejection::missing_signature(
        [header, ": not ", known].concat(),
    ))
}

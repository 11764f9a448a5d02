//! Xero: `x-xero-signature` is the HMAC-SHA256 of the body in base64, under the webhook's key.
//!
//! To see whether signatures are verified, Xero sends deliveries without events, some badly signed: good ones must
//! get an empty 200, bad ones 401. Events have no id but a sequence. What must stay in order shares the resource.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, time,
};

struct Xero;

hookgate_sdk::provider!(Xero);

impl Provider for Xero {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        verify()?;
        if matches!(Json::Body.value("/events/0"), Ok(None)) {
            return Response::empty(200).respond();
        }
        let occurred_at = Json::Body.only_text("/events", "/eventDateUtc")?;
        Event {
            event_type: event_type()?,
            ordering_key: Json::Body.only_text("/events", "/resourceId")?,
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            sequence: Json::Body.first_scalar(&["/lastEventSequence"])?,
            response: Some(Response::empty(200)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let header = delivery::signature_header("x-xero-signature")?;
    Message::new().body().verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        [Signature::base64(&header)],
    )
}

/// Such as `CONTACT.Create`.
fn event_type() -> Result<Option<String>, Rejection> {
    let category = Json::Body.only_text("/events", "/eventCategory")?;
    let kind = Json::Body.only_text("/events", "/eventType")?;
    Ok(category
        .zip(kind)
        .map(|(category, kind)| [category, kind].join(".")))
}

//! Dropbox Sign (HelloSign): `event.event_hash`, in the JSON that the field `json` of a multipart body holds, is
//! the HMAC-SHA256 in hexadecimal of `event_time` and `event_type` under the account's API key.
//!
//! Nothing else is signed: a consumer should fetch what matters. Two events of one second and type share the
//! hash, so the id names the request and the signature too. Dropbox Sign demands a text in the answer.

mod multipart;

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, time,
};

struct DropboxSign;

hookgate_sdk::provider!(DropboxSign);

impl Provider for DropboxSign {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let document = document()?;
        let hash = document
            .text("/event/event_hash")?
            .ok_or_else(|| Rejection::missing_signature("event_hash: absent"))?;
        let event_time = document.required_text("/event/event_time")?;
        let event_type = document.required_text("/event/event_type")?;
        Message::new()
            .literal([event_time.as_str(), &event_type].concat())
            .verify_mac(MacAlgorithm::HmacSha256, "secret", [Signature::hex(&hash)])?;
        let request = document.text("/signature_request/signature_request_id")?;
        let signature = document.text("/event/event_metadata/related_signature_id")?;
        let named = |part: &Option<String>| part.clone().unwrap_or_default();
        Event {
            id: Some([hash, named(&request), named(&signature)].join("/")),
            event_type: Some(event_type),
            ordering_key: request,
            occurred_at: time::from_seconds(&event_time),
            response: Some(Response::text("Hello API Event Received")),
            ..Event::default()
        }
        .accept()
    }
}

fn document() -> Result<Json, Rejection> {
    let absent = || Rejection::malformed("field json: absent, or there twice");
    if delivery::has_content_type("multipart/form-data") {
        let content_type = delivery::header("content-type")?.unwrap_or_default();
        let field = multipart::field(&content_type, &delivery::whole_body(), "json");
        return field.map(Json::Text).ok_or_else(absent);
    }
    if delivery::has_content_type("application/x-www-form-urlencoded") {
        return delivery::form("json")?.map(Json::Text).ok_or_else(absent);
    }
    Ok(Json::Body)
}

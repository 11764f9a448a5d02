//! Mandrill (Mailchimp Transactional): `X-Mandrill-Signature` is the HMAC-SHA1 in base64 of the URL, with the sorted
//! parameters of the form behind it.
//!
//! The form's `mandrill_events` is a list of events as JSON: a message's events share its `_id`, so none of them
//! has an id of its own. HEAD asks whether the URL is there.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, pairs, time,
};

struct Mandrill;

hookgate_sdk::provider!(Mandrill);

impl Provider for Mandrill {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        if delivery::method() == "HEAD" {
            return Response::empty(200).respond();
        }
        verify()?;
        let events = delivery::form("mandrill_events")?
            .map(Json::Text)
            .ok_or_else(|| Rejection::malformed("mandrill_events: absent"))?;
        let occurred_at = events.only_text("", "/ts")?;
        Event {
            event_type: events.only_text("", "/event")?,
            ordering_key: events.only_text("", "/_id")?,
            occurred_at: occurred_at.and_then(|text| time::from_seconds(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let header = delivery::signature_header("x-mandrill-signature")?;
    if !delivery::has_content_type("application/x-www-form-urlencoded") {
        return Err(Rejection::malformed("the body is no form"));
    }
    let mut signed = delivery::called_url()?.into_bytes();
    for (name, value) in pairs::sorted(delivery::form_pairs()) {
        signed.extend([name, value].concat());
    }
    Message::new().literal(signed).verify_mac(
        MacAlgorithm::HmacSha1,
        "secret",
        [Signature::base64(&header)],
    )
}

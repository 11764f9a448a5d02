//! Notion: `X-Notion-Signature` is the HMAC-SHA256 of the body in hexadecimal, after `sha256=`, under the
//! subscription's verification token.
//!
//! The token comes once, unsigned, in the first request. The operator learns it from the log, where the option
//! `log_new_secret` says so, and enters it in Notion's settings. What must stay in order shares the page.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, source, time, verification,
};

struct Notion;

hookgate_sdk::provider!(Notion);

impl Provider for Notion {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let header = delivery::header("x-notion-signature")?;
        let token = Json::Body.first_scalar(&["/verification_token"])?;
        if let (None, Some(token)) = (&header, token) {
            tell("verification_token", &token);
            return Response::empty(200).respond();
        }
        verify(header.as_deref())?;
        let occurred_at = Json::Body.first_scalar(&["/timestamp"])?;
        Event {
            id: Json::Body.text("/id")?,
            event_type: Json::Body.text("/type")?,
            ordering_key: Json::Body.first_scalar(&["/entity/id"])?,
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify(header: Option<&str>) -> Result<(), Rejection> {
    let signature = header.and_then(|header| header.strip_prefix("sha256="));
    Message::new().body().verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        signature.map(Signature::hex),
    )
}

/// Tells the operator of a secret that the source does not have yet; the secret itself where the source says so.
fn tell(place: &str, secret: &str) {
    if verification::verify_token("secret", secret.as_bytes()) {
        return;
    }
    let line = if source::option("log_new_secret").as_deref() == Some("true") {
        ["the new secret of this source is ", secret].concat()
    } else {
        [
            place,
            ": a secret that the source does not have; log_new_secret shows the next one",
        ]
        .concat()
    };
    source::log(source::Level::Warn, &line);
}

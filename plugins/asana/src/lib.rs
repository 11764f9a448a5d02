//! Asana: `X-Hook-Signature` is the HMAC-SHA256 of the body in hexadecimal, under a secret that Asana makes.
//!
//! The secret comes in `X-Hook-Secret` of the first request, which must send it back while the call that makes
//! the webhook waits. It is in that call's own answer, and in the log where the option `log_new_secret` says so.
//! Every eight hours comes a delivery without events, which is answered and no event.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, source, time, verification,
};

struct Asana;

hookgate_sdk::provider!(Asana);

impl Provider for Asana {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        if let Some(secret) = delivery::header("x-hook-secret")? {
            tell("X-Hook-Secret", &secret);
            return Response::empty(200)
                .with_header("x-hook-secret", &secret)
                .respond();
        }
        verify()?;
        if matches!(Json::Body.value("/events/0"), Ok(None)) {
            return Response::empty(200).respond();
        }
        let occurred_at = Json::Body.only_text("/events", "/created_at")?;
        Event {
            event_type: event_type()?,
            ordering_key: Json::Body.only_text("/events", "/resource/gid")?,
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let header = delivery::signature_header("x-hook-signature")?;
    Message::new().body().verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        [Signature::hex(&header)],
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

/// Such as `task.changed`.
fn event_type() -> Result<Option<String>, Rejection> {
    let resource = Json::Body.only_text("/events", "/resource/resource_type")?;
    let action = Json::Body.only_text("/events", "/action")?;
    Ok(resource
        .zip(action)
        .map(|(resource, action)| [resource, action].join(".")))
}

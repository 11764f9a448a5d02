//! Mailgun: `signature`, in the body, is the HMAC-SHA256 in hexadecimal of the timestamp and the token beside it.
//!
//! Webhooks are JSON; older ones, and forwarded messages, are forms with the three as fields. The signature covers
//! nothing else of the body: whoever saw one request can put it on another until it is too old.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery, time,
};

struct Mailgun;

hookgate_sdk::provider!(Mailgun);

/// Text that may be absent.
type Text = Result<Option<String>, Rejection>;

impl Provider for Mailgun {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let is_form = delivery::has_content_type("application/x-www-form-urlencoded");
        let signed = |name: &str| {
            if is_form {
                delivery::form(name)
            } else {
                Json::Body.text(&["/signature/", name].concat())
            }
        };
        let signed_at = verify(signed)?;
        let event = if is_form { of_form()? } else { of_json()? };
        Event {
            signed_at: Some(signed_at),
            ..event
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify(signed: impl Fn(&str) -> Text) -> Result<u64, Rejection> {
    let signature =
        signed("signature")?.ok_or_else(|| Rejection::missing_signature("signature: absent"))?;
    let timestamp =
        signed("timestamp")?.ok_or_else(|| Rejection::missing_signature("timestamp: absent"))?;
    let token = signed("token")?.ok_or_else(|| Rejection::missing_signature("token: absent"))?;
    let signed_at = time::from_seconds(&timestamp)
        .ok_or_else(|| Rejection::malformed("timestamp: not a number of seconds"))?;
    Message::new()
        .literal([timestamp, token].concat())
        .verify_mac(
            MacAlgorithm::HmacSha256,
            "secret",
            [Signature::hex(&signature)],
        )?;
    Ok(signed_at)
}

fn of_json() -> Result<Event, Rejection> {
    let pointers = ["/event-data/message/headers/message-id"];
    Ok(Event {
        id: Json::Body.text("/event-data/id")?,
        event_type: Json::Body.text("/event-data/event")?,
        ordering_key: Json::Body.first_scalar(&pointers)?,
        ..Event::default()
    })
}

fn of_form() -> Result<Event, Rejection> {
    Ok(Event {
        event_type: delivery::form("event")?,
        ordering_key: delivery::form("message-id")?.or(delivery::form("Message-Id")?),
        ..Event::default()
    })
}

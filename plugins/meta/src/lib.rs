//! Meta's Graph webhooks (Facebook, Messenger, Instagram, WhatsApp): `X-Hub-Signature-256` is the HMAC-SHA256 of the
//! body in hexadecimal, under the app's secret.
//!
//! A GET with `hub.verify_token`, the operator's own, asks who listens and gets `hub.challenge` back. A delivery
//! may hold many changes; only one message, or one status of one, has an id: a message's statuses share the
//! message's, so theirs names the status too. What must stay in order shares the sender.

use hookgate_sdk::{
    Event, Json, JsonValue, MacAlgorithm, Message, Provider, Rejection, Response, Signature,
    Verdict, delivery, time, verification,
};

struct Meta;

hookgate_sdk::provider!(Meta);

impl Provider for Meta {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        if delivery::method() == "GET" {
            return subscription();
        }
        verify()?;
        let event = match change() {
            Some(change) => of_change(&change)?,
            None => Event::default(),
        };
        Event {
            event_type: event.event_type.or(Json::Body.text("/object")?),
            ..event
        }
        .accept()
    }
}

fn subscription() -> Result<Verdict, Rejection> {
    let token = delivery::query("hub.verify_token")?;
    verification::check_token("verify_token", "hub.verify_token", token.as_deref())?;
    let challenge = delivery::query("hub.challenge")?
        .ok_or_else(|| Rejection::malformed("hub.challenge: absent"))?;
    Response::text(challenge).respond()
}

fn verify() -> Result<(), Rejection> {
    let header = delivery::signature_header("x-hub-signature-256")?;
    let signature = header.strip_prefix("sha256=").map(Signature::hex);
    Message::new()
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signature)
}

/// The only change of the only entry; none where there are several.
fn change() -> Option<Json> {
    let several = |list: &str| {
        let second = Json::Body.value(&[list, "/1"].concat());
        matches!(second, Ok(Some(_)))
    };
    if several("/entry") {
        return None;
    }
    for list in ["/entry/0/changes", "/entry/0/messaging", "/entry/0/standby"] {
        let only = Json::Body.value(&[list, "/0"].concat());
        if let Ok(Some(JsonValue::Raw(change))) = only {
            return (!several(list)).then_some(Json::Text(change));
        }
    }
    None
}

fn of_change(change: &Json) -> Result<Event, Rejection> {
    let event_type = change.first_scalar(&["/field"])?;
    let event = match (
        only(change, "/value/messages"),
        only(change, "/value/statuses"),
    ) {
        (Some(message), None) => of_message(&message)?,
        (None, Some(status)) => of_status(&status)?,
        _ => Event {
            id: change.first_scalar(&["/message/mid"])?,
            ordering_key: change.first_scalar(&["/sender/id", "/value/from/id"])?,
            ..Event::default()
        },
    };
    Ok(Event {
        event_type,
        ..event
    })
}

/// The only object of a list. Other products have other things at these places: that costs no delivery.
fn only(change: &Json, list: &str) -> Option<Json> {
    let mut objects = change.objects(list).unwrap_or_default();
    let first = objects.pop()?;
    objects.is_empty().then_some(first)
}

fn of_message(message: &Json) -> Result<Event, Rejection> {
    let sent_at = message.first_scalar(&["/timestamp"])?;
    Ok(Event {
        id: message.first_scalar(&["/id"])?,
        ordering_key: message.first_scalar(&["/from"])?,
        occurred_at: sent_at.and_then(|text| time::from_seconds(&text)),
        ..Event::default()
    })
}

fn of_status(status: &Json) -> Result<Event, Rejection> {
    let about = status.first_scalar(&["/id"])?;
    let what = status.first_scalar(&["/status"])?;
    Ok(Event {
        id: about.zip(what).map(|(id, status)| [id, status].join("/")),
        ordering_key: status.first_scalar(&["/recipient_id"])?,
        ..Event::default()
    })
}

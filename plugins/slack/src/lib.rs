//! Slack: `X-Slack-Signature: v0=<hex>` signs `v0:<timestamp>:<body>` with HMAC-SHA256.
//!
//! The Events API sends JSON; `url_verification` is signed like all else and answered with its challenge.
//! Interactions and slash commands are forms, the former with JSON in `payload`; neither has an event id, but
//! each body is one of a kind (a trigger's id, an action's time), and Slack shows what answers them, so they
//! get an empty 200. What must stay in order shares the channel.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery, time,
};

struct Slack;

hookgate_sdk::provider!(Slack);

impl Provider for Slack {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        if !delivery::has_content_type("application/x-www-form-urlencoded") {
            return event_or_handshake(signed_at);
        }
        match delivery::form("payload")? {
            Some(payload) => interaction(signed_at, &Json::Text(payload)),
            None => slash_command(signed_at),
        }
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("x-slack-signature")?;
    let timestamp = delivery::signature_header("x-slack-request-timestamp")?;
    let signed_at = time::from_seconds(&timestamp).ok_or_else(|| {
        Rejection::malformed("X-Slack-Request-Timestamp: not a number of seconds")
    })?;
    let signature = header.strip_prefix("v0=").map(Signature::hex);
    Message::new()
        .literal(["v0:", &timestamp, ":"].concat())
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signature)?;
    Ok(signed_at)
}

fn event_or_handshake(signed_at: u64) -> Result<Verdict, Rejection> {
    let outer = Json::Body.text("/type")?;
    if outer.as_deref() == Some("url_verification") {
        return challenge();
    }
    let event_time = Json::Body.text("/event_time")?;
    Event {
        id: Json::Body.text("/event_id")?,
        event_type: Json::Body.text("/event/type")?.or(outer),
        ordering_key: Json::Body.first_scalar(&[
            "/event/channel",
            "/event/channel/id",
            "/event/channel_id",
            "/event/item/channel",
            "/event/user",
            "/event/user/id",
        ])?,
        signed_at: Some(signed_at),
        occurred_at: event_time.and_then(|text| time::from_seconds(&text)),
        sequence: Json::Body.first_scalar(&["/event/event_ts"])?,
        ..Event::default()
    }
    .accept()
}

fn challenge() -> Result<Verdict, Rejection> {
    let challenge = Json::Body.required_text("/challenge")?;
    Response::text(challenge).respond()
}

fn interaction(signed_at: u64, payload: &Json) -> Result<Verdict, Rejection> {
    Event {
        event_type: payload.text("/type")?,
        ordering_key: payload.first_scalar(&[
            "/channel/id",
            "/container/channel_id",
            "/user/id",
            "/user",
        ])?,
        signed_at: Some(signed_at),
        response: Some(nothing_to_show()),
        ..Event::default()
    }
    .accept()
}

fn slash_command(signed_at: u64) -> Result<Verdict, Rejection> {
    Event {
        event_type: delivery::form("command")?.map(|_| "slash_command".into()),
        ordering_key: delivery::form("channel_id")?,
        signed_at: Some(signed_at),
        response: Some(nothing_to_show()),
        ..Event::default()
    }
    .accept()
}

fn nothing_to_show() -> Response {
    Response::empty(200)
}

//! Discord: `X-Signature-Ed25519` signs `X-Signature-Timestamp` and the body with the application's key.
//!
//! Events and interactions share the scheme. A PING of either is answered; Discord sends them with bad signatures
//! too, and wants those refused with 401. Interactions have an id, and must be answered with something: what a
//! consumer does later is announced as deferred.

use hookgate_sdk::{
    Event, Json, Key, Message, Provider, Rejection, Response, Signature, SignatureScheme, Verdict,
    delivery, time,
};

struct Discord;

hookgate_sdk::provider!(Discord);

impl Provider for Discord {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        let [kind, event, id, channel, guild] =
            Json::Body.texts(["/type", "/event/type", "/id", "/channel_id", "/guild_id"]);
        let (kind, id) = (kind?.unwrap_or_default(), id?);
        let response = match (event?, kind.as_str(), &id) {
            (Some(event), ..) => return occurred(signed_at, event),
            (None, "0", _) => return Response::empty(204).respond(),
            (None, "1", _) => return Response::json("{\"type\":1}").respond(),
            (None, _, Some(_)) => deferred(&kind),
            (None, ..) => return Err(Rejection::malformed("neither an event nor an interaction")),
        };
        Event {
            id,
            event_type: Some(["interaction.", &kind].concat()),
            ordering_key: channel?.or(guild?),
            signed_at: Some(signed_at),
            response: Some(response),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("x-signature-ed25519")?;
    let timestamp = delivery::signature_header("x-signature-timestamp")?;
    Message::new()
        .literal(timestamp.as_str())
        .body()
        .verify_signature(
            SignatureScheme::Ed25519,
            &Key::Named("public_key".into()),
            [Signature::hex(&header)],
        )?;
    time::from_seconds(&timestamp)
        .ok_or_else(|| Rejection::malformed("X-Signature-Timestamp: not a number of seconds"))
}

fn occurred(signed_at: u64, event_type: String) -> Result<Verdict, Rejection> {
    let occurred_at = Json::Body.text("/event/timestamp")?;
    Event {
        event_type: Some(event_type),
        ordering_key: Json::Body.first_scalar(&["/event/data/user/id", "/event/data/user_id"])?,
        signed_at: Some(signed_at),
        occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
        response: Some(Response::empty(204)),
        ..Event::default()
    }
    .accept()
}

/// Commands and submitted forms show that something is coming, components nothing; completion has no choices.
fn deferred(kind: &str) -> Response {
    Response::json(match kind {
        "3" => "{\"type\":6}",
        "4" => "{\"type\":8,\"data\":{\"choices\":[]}}",
        _ => "{\"type\":5}",
    })
}

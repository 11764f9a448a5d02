//! Pusher Channels: `X-Pusher-Signature` is the HMAC-SHA256 of the body in hexadecimal, under the secret of the
//! app's key that `X-Pusher-Key` names.
//!
//! An app may have several keys, hence several secrets; which of them is meant need not be known to try all.
//! The option `key` holds the header to one key. A delivery is a list of events without ids, with one time.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery, source,
    time,
};

struct Pusher;

hookgate_sdk::provider!(Pusher);

impl Provider for Pusher {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        verify()?;
        let time_ms = Json::Body.text("/time_ms")?;
        Event {
            event_type: Json::Body.only_text("/events", "/name")?,
            ordering_key: Json::Body.only_text("/events", "/channel")?,
            occurred_at: time_ms.and_then(|text| time::from_millis(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    if let Some(keys) = source::option("key").filter(|keys| !keys.is_empty()) {
        let key = delivery::signature_header("x-pusher-key")?;
        if !keys.split_ascii_whitespace().any(|known| known == key) {
            return Err(Rejection::bad_signature("X-Pusher-Key: another key"));
        }
    }
    let header = delivery::signature_header("x-pusher-signature")?;
    Message::new().body().verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        [Signature::hex(&header)],
    )
}

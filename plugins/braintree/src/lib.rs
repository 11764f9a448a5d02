//! Braintree: the form field `bt_signature` holds `<public key>|<hexadecimal>` pairs; the one of the source's
//! public key is the HMAC-SHA1 of `bt_payload` under the SHA-1 of the private key.
//!
//! The payload is signed with or without a line break at its end. It is XML in base64, with kind and time but
//! no id. A GET with `bt_challenge` asks who listens: it is answered with the public key and the challenge's
//! HMAC.

use hookgate_sdk::{
    Elements, Encoding, Event, MacAlgorithm, Message, Part, Provider, Rejection, Response,
    Signature, Verdict, delivery, encode, source, time,
};

struct Braintree;

hookgate_sdk::provider!(Braintree);

impl Provider for Braintree {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let public_key = source::option("public_key")
            .filter(|key| !key.is_empty())
            .ok_or_else(|| Rejection::malformed("configuration: public_key is required"))?;
        if let Some(challenge) = delivery::query("bt_challenge")? {
            return answer(&public_key, challenge);
        }
        let payload = payload()?;
        verify(&public_key, &payload)?;
        let xml = decoded(&payload)?;
        Event {
            event_type: element(&xml, "<kind>").map(String::from),
            occurred_at: element(&xml, "<timestamp type=\"datetime\">")
                .and_then(time::from_rfc3339),
            ..Event::default()
        }
        .accept()
    }
}

/// Braintree's challenges are 20 to 32 hexadecimal digits; nothing else is signed.
fn answer(public_key: &str, challenge: String) -> Result<Verdict, Rejection> {
    let is_challenge = (20..=32).contains(&challenge.len())
        && challenge
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_challenge {
        return Err(Rejection::malformed(
            "bt_challenge: not 20 to 32 hexadecimal digits",
        ));
    }
    let mac =
        Message::new()
            .literal(challenge)
            .into_mac(MacAlgorithm::HmacSha1, "secret", Encoding::Hex);
    let prefix = Part::Bytes([public_key, "|"].concat().into_bytes());
    Response::ok("text/plain", vec![prefix, mac]).respond()
}

/// The payload without white space at its ends.
fn payload() -> Result<String, Rejection> {
    let payload =
        delivery::form("bt_payload")?.ok_or_else(|| Rejection::malformed("bt_payload: absent"))?;
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"+=/\n".contains(&byte);
    if payload.bytes().all(is_known) {
        Ok(payload)
    } else {
        Err(Rejection::malformed("bt_payload: not base64"))
    }
}

fn verify(public_key: &str, payload: &str) -> Result<(), Rejection> {
    let pairs = delivery::form("bt_signature")?
        .ok_or_else(|| Rejection::missing_signature("bt_signature: absent"))?;
    let own = [public_key, "|"].concat();
    let verify = |payload: &str| {
        let signatures = Elements::new(&pairs, b'&').with_prefix(&own);
        Message::new().literal(payload).verify_mac(
            MacAlgorithm::HmacSha1,
            "secret",
            signatures.map(Signature::hex),
        )
    };
    verify(payload).or_else(|_| verify(&[payload, "\n"].concat()))
}

fn decoded(payload: &str) -> Result<String, Rejection> {
    let lines: Vec<_> = payload.bytes().filter(|byte| *byte != b'\n').collect();
    encode::from_base64(&lines)
        .and_then(|xml| String::from_utf8(xml).ok())
        .ok_or_else(|| Rejection::malformed("bt_payload: not text in base64"))
}

/// What follows a tag, up to the next one.
fn element<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, behind) = xml.split_once(tag)?;
    let (text, _) = behind.split_once('<')?;
    Some(text).filter(|text| !text.is_empty())
}

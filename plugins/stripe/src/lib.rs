//! Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>` signs `<t>.<body>` with HMAC-SHA256.
//!
//! While a secret is rolled there are several `v1`, any of which may fit; `v0` is a fake for tests. The
//! secret is used as it stands, `whsec_` included. Each attempt is signed anew, so `t` is the attempt's
//! time. What must stay in order shares the object that the event is about: a subscription's or an
//! invoice's states overwrite one another, while one customer's many objects need not wait for each
//! other.

use hookgate_sdk::{
    Elements, Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict,
    delivery, time,
};

struct Stripe;

hookgate_sdk::provider!(Stripe);

impl Provider for Stripe {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        let created = Json::Body.text("/created")?;
        Event {
            id: Some(Json::Body.required_text("/id")?),
            event_type: Json::Body.text("/type")?,
            ordering_key: Json::Body.first_text(&["/data/object/id", "/related_object/id"])?,
            signed_at: Some(signed_at),
            occurred_at: created
                .and_then(|text| time::from_seconds(&text).or_else(|| time::from_rfc3339(&text))),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("stripe-signature")?;
    let elements = Elements::new(&header, b',');
    let text = elements
        .value("t")
        .map_err(|_| Rejection::malformed("Stripe-Signature: two different t"))?
        .ok_or_else(|| Rejection::missing_signature("Stripe-Signature: no t"))?;
    let signed_at = time::from_seconds(text)
        .ok_or_else(|| Rejection::malformed("Stripe-Signature: t is not a number of seconds"))?;
    let signatures = elements.values("v1").map(Signature::hex);
    Message::new()
        .literal(text)
        .literal(".")
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signatures)?;
    Ok(signed_at)
}

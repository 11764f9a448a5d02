//! Mercado Pago: `x-signature: ts=<time>,v1=<hex>` signs, with HMAC-SHA256, `data.id` of the query, `x-request-id`
//! and the time. The body is not covered.
//!
//! What is missing of the first two is left out of what is signed. Documentation writes letters of `data.id` in
//! lower case, its library as they are: both are tried. Whether the time counts in seconds or in milliseconds
//! the two disagree on as well, so it is not held against the source's tolerance.

use hookgate_sdk::{
    Elements, Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict,
    delivery, time,
};

struct MercadoPago;

hookgate_sdk::provider!(MercadoPago);

impl Provider for MercadoPago {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let data_id = delivery::query("data.id")?;
        verify(data_id.as_deref())?;
        let occurred_at = Json::Body.first_scalar(&["/date_created"])?;
        Event {
            id: Json::Body.text("/id")?,
            event_type: Json::Body.first_text(&["/action", "/type"])?,
            ordering_key: data_id,
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify(data_id: Option<&str>) -> Result<(), Rejection> {
    let header = delivery::signature_header("x-signature")?;
    let elements = Elements::new(&header, b',');
    let timestamp = elements
        .value("ts")
        .map_err(|_| Rejection::malformed("x-signature: two different ts"))?
        .ok_or_else(|| Rejection::missing_signature("x-signature: no ts"))?;
    if !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Rejection::malformed("x-signature: ts is not a number"));
    }
    let request_id = delivery::header("x-request-id")?;
    let verify = |data_id: Option<&str>| {
        Message::new()
            .literal(signed(data_id, request_id.as_deref(), timestamp))
            .verify_mac(
                MacAlgorithm::HmacSha256,
                "secret",
                elements.values("v1").map(Signature::hex),
            )
    };
    let lower = data_id.map(str::to_ascii_lowercase);
    verify(data_id).or_else(|_| verify(lower.as_deref()))
}

fn signed(data_id: Option<&str>, request_id: Option<&str>, timestamp: &str) -> String {
    let mut signed = String::new();
    let named = [
        ("id:", data_id),
        ("request-id:", request_id),
        ("ts:", Some(timestamp)),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            signed.extend([name, value, ";"]);
        }
    }
    signed
}

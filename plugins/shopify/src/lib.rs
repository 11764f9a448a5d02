//! Shopify: `X-Shopify-Hmac-Sha256` is the HMAC-SHA256 of the body in base64, under the app's client secret.
//!
//! No time is signed. `X-Shopify-Webhook-Id` names the delivery to one subscription and stays over its
//! retries; `X-Shopify-Event-Id` is one for several topics and subscriptions, so as an id it would swallow all
//! but the first of them, and it counts only where the other is missing. Headers of the Events preview lack
//! the `X-`. What must stay in order shares the resource: the topic's first part and the id.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery, time,
};

struct Shopify;

hookgate_sdk::provider!(Shopify);

impl Provider for Shopify {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        verify()?;
        let topic = header("x-shopify-topic")?;
        Event {
            id: id()?,
            ordering_key: ordering_key(topic.as_deref())?,
            occurred_at: header("x-shopify-triggered-at")?
                .and_then(|text| time::from_rfc3339(&text)),
            event_type: topic,
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let signature = header("x-shopify-hmac-sha256")?;
    let signature = signature.as_deref().map(Signature::base64);
    Message::new()
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signature)
}

/// A header under its name with `x-`, or else without.
fn header(name: &str) -> Result<Option<String>, Rejection> {
    match delivery::header(name)? {
        Some(value) => Ok(Some(value)),
        None => delivery::header(name.trim_start_matches("x-")),
    }
}

fn id() -> Result<Option<String>, Rejection> {
    match header("x-shopify-webhook-id")? {
        Some(id) => Ok(Some(id)),
        None => header("x-shopify-event-id"),
    }
}

/// Such as `products/788032119674292922`: a deletion's body has no other id than the number.
fn ordering_key(topic: Option<&str>) -> Result<Option<String>, Rejection> {
    let id = Json::Body.first_scalar(&["/id", "/inventory_item_id", "/admin_graphql_api_id"])?;
    let resource = topic.map(|topic| topic.split('/').next().unwrap_or_default());
    Ok(match (resource, id) {
        (Some(resource), Some(id)) => Some([resource, &id].join("/")),
        (_, id) => id,
    })
}

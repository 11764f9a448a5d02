//! Adyen's standard notifications: every item carries in `additionalData.hmacSignature` the HMAC-SHA256, in
//! base64, of eight of its fields with colons between them.
//!
//! A delivery holds a list of items, each of which must fit; an item that stands alone, outside the list, is
//! taken too. Nothing else of an item is under its signature, and nothing is escaped: consumers should fetch
//! what matters. What must stay in order shares the payment. Notifications of Adyen's platforms are signed in a
//! header instead: that is the preset `adyen-platform`.

use hookgate_sdk::{
    Event, Json, JsonValue, MacAlgorithm, Message, Provider, Rejection, Response, Signature,
    Verdict, time,
};

struct Adyen;

hookgate_sdk::provider!(Adyen);

/// What is signed, in its order.
const SIGNED: [&str; 8] = [
    "/pspReference",
    "/originalReference",
    "/merchantAccountCode",
    "/merchantReference",
    "/amount/value",
    "/amount/currency",
    "/eventCode",
    "/success",
];

impl Provider for Adyen {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let items = items()?;
        items.iter().try_for_each(verify)?;
        let event = match items.as_slice() {
            [item] => event(item)?,
            _ => Event::default(),
        };
        Event {
            // What Adyen's older servers demand in the place of any 2xx.
            response: Some(Response::text("[accepted]")),
            ..event
        }
        .accept()
    }
}

fn items() -> Result<Vec<Json>, Rejection> {
    let mut items = Vec::new();
    for element in Json::Body.objects("/notificationItems")? {
        match element.value("/NotificationRequestItem") {
            Ok(Some(JsonValue::Raw(item))) => items.push(Json::Text(item)),
            _ => return Err(Rejection::malformed("notificationItems: one is no item")),
        }
    }
    if items.is_empty() && Json::Body.text("/pspReference")?.is_some() {
        items.push(Json::Body);
    }
    if items.is_empty() {
        return Err(Rejection::malformed("notificationItems: no item"));
    }
    Ok(items)
}

fn verify(item: &Json) -> Result<(), Rejection> {
    let signature = item
        .text("/additionalData/hmacSignature")?
        .ok_or_else(|| Rejection::missing_signature("an item without hmacSignature"))?;
    let mut signed = Vec::new();
    for field in item.texts(SIGNED) {
        signed.push(field?.unwrap_or_default());
    }
    Message::new().literal(signed.join(":")).verify_mac(
        MacAlgorithm::HmacSha256,
        "secret",
        [Signature::base64(&signature)],
    )
}

fn event(item: &Json) -> Result<Event, Rejection> {
    let occurred_at = item.first_scalar(&["/eventDate"])?;
    Ok(Event {
        id: item.text("/pspReference")?,
        event_type: item.text("/eventCode")?,
        ordering_key: item
            .text("/originalReference")?
            .filter(|text| !text.is_empty())
            .or(item.text("/pspReference")?),
        occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
        ..Event::default()
    })
}

//! DocuSign Connect: `X-DocuSign-Signature-1`, `-2` and so on are the HMAC-SHA256 of the body in base64, one for
//! each of the account's keys.
//!
//! Any may fit, since which key a source has is not said. There is no id: envelope, event and time make one.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery, time,
};

struct DocuSign;

hookgate_sdk::provider!(DocuSign);

/// How many keys an account may have.
const MAX_KEYS: usize = 100;

impl Provider for DocuSign {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        Message::new()
            .body()
            .verify_mac(MacAlgorithm::HmacSha256, "secret", signatures()?)?;
        let event = Json::Body.text("/event")?;
        let envelope = Json::Body.first_scalar(&["/data/envelopeId", "/envelopeId"])?;
        let generated = Json::Body.first_scalar(&["/generatedDateTime"])?;
        let parts = [&envelope, &event, &generated].map(Option::as_deref);
        let id = match parts {
            [Some(envelope), Some(event), Some(generated)] => {
                Some([envelope, event, generated].join("/"))
            }
            _ => None,
        };
        Event {
            id,
            event_type: event,
            ordering_key: envelope,
            occurred_at: generated.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn signatures() -> Result<Vec<Signature>, Rejection> {
    let mut signatures = Vec::new();
    for place in 1..=MAX_KEYS {
        let name = ["x-docusign-signature-", &place.to_string()].concat();
        match delivery::header(&name)? {
            Some(text) => signatures.push(Signature::base64(&text)),
            None => break,
        }
    }
    Ok(signatures)
}

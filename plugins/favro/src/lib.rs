//! Favro: `X-Favro-Webhook` is the HMAC-SHA1 in base64 of the body's `payloadId` and the URL. No more of the body is
//! covered.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Segment, Signature, Verdict, delivery,
};

struct Favro;

hookgate_sdk::provider!(Favro);

impl Provider for Favro {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let header = delivery::signature_header("x-favro-webhook")?;
        let id = Json::Body.required_text("/payloadId")?;
        delivery::called_url()?;
        Message::new()
            .literal(id.as_str())
            .segment(Segment::ExternalUrl)
            .verify_mac(
                MacAlgorithm::HmacSha1,
                "secret",
                [Signature::base64(&header)],
            )?;
        Event {
            id: Some(id),
            event_type: Json::Body.text("/action")?,
            ordering_key: Json::Body.first_scalar(&["/card/cardId", "/card/cardCommonId"])?,
            ..Event::default()
        }
        .accept()
    }
}

//! GitHub: `X-Hub-Signature-256` is the HMAC-SHA256 of the body in hexadecimal, after `sha256=`.
//!
//! The legacy SHA-1 header does not count. Event id and type are headers, which the signature does not
//! cover. What must stay in order shares the repository's id, which survives its renaming; hooks of an
//! organisation or of an app have that one's id. Hooks set to form encoding carry the JSON in a field.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict, delivery,
};

struct GitHub;

/// Text that may be absent.
type Text = Result<Option<String>, Rejection>;

hookgate_sdk::provider!(GitHub);

impl Provider for GitHub {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        verify()?;
        let [action, repository, organization, installation] = document()?.texts([
            "/action",
            "/repository/id",
            "/organization/id",
            "/installation/id",
        ]);
        Event {
            id: delivery::header("x-github-delivery")?,
            event_type: event_type(action)?,
            ordering_key: first([repository, organization, installation])?,
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let header = delivery::signature_header("x-hub-signature-256")?;
    let signature = header.strip_prefix("sha256=").map(Signature::hex);
    Message::new()
        .body()
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signature)
}

fn document() -> Result<Json, Rejection> {
    if !delivery::has_content_type("application/x-www-form-urlencoded") {
        return Ok(Json::Body);
    }
    Ok(delivery::form("payload")?.map_or(Json::Body, Json::Text))
}

fn event_type(action: Text) -> Text {
    let Some(event) = delivery::header("x-github-event")? else {
        return Ok(None);
    };
    Ok(Some(match action? {
        Some(action) => [event.as_str(), &action].join("."),
        None => event,
    }))
}

/// The first that was found. What is behind it may be anything.
fn first(texts: [Text; 3]) -> Text {
    for text in texts {
        if let Some(text) = text? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

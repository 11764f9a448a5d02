//! Contentful: `x-contentful-signature` is the HMAC-SHA256 in hexadecimal of method, path, chosen headers and
//! body, a line each.
//!
//! `x-contentful-signed-headers` names the headers; the timestamp, in milliseconds, must be among them, or it
//! would prove no age. Contentful escapes the query once more, all of it. What must stay in order shares the
//! entry or asset.

mod uri;

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Segment, Signature, Verdict, delivery,
    time,
};

struct Contentful;

hookgate_sdk::provider!(Contentful);

impl Provider for Contentful {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        Event {
            id: delivery::header("x-contentful-idempotency-key")?,
            event_type: delivery::header("x-contentful-topic")?,
            ordering_key: Json::Body.first_scalar(&["/sys/id"])?,
            sequence: Json::Body.first_scalar(&["/sys/version", "/sys/revision"])?,
            signed_at: Some(signed_at),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let signature = delivery::signature_header("x-contentful-signature")?;
    let timestamp = delivery::signature_header("x-contentful-timestamp")?;
    let signed_at = time::from_millis(&timestamp).ok_or_else(|| {
        Rejection::malformed("x-contentful-timestamp: not a number of milliseconds")
    })?;
    let headers = signed_headers()?;
    Message::new()
        .segment(Segment::Method)
        .literal(["\n", &uri::normalised(&target()), "\n", &headers, "\n"].concat())
        .body()
        .verify_mac(
            MacAlgorithm::HmacSha256,
            "secret",
            [Signature::hex(&signature)],
        )?;
    Ok(signed_at)
}

/// Path and query as Contentful called them.
fn target() -> String {
    let called = delivery::external_url().and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.find('/')
            .and_then(|at| rest.get(at..))
            .map(String::from)
    });
    called.unwrap_or_else(delivery::target)
}

/// The signed headers as `name:value`, sorted by name, with `;` between them.
fn signed_headers() -> Result<String, Rejection> {
    let names = delivery::signature_header("x-contentful-signed-headers")?.to_ascii_lowercase();
    let mut names: Vec<_> = names.split(',').map(str::trim_ascii).collect();
    if !names.contains(&"x-contentful-timestamp") {
        return Err(Rejection::missing_signature(
            "x-contentful-signed-headers: without the timestamp",
        ));
    }
    names.sort_unstable();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        if let Some(value) = delivery::header(name)? {
            lines.push([name, ":", &value].concat());
        }
    }
    Ok(lines.join(";"))
}

//! Plivo: `X-Plivo-Signature-V3` is a list of HMAC-SHA256 in base64, under the account's auth token, of the URL
//! without its query, the sorted query, the sorted parameters of a form, and a nonce.
//!
//! V2 covers the URL without its query, and the nonce, alone: it is taken only where the newer one did not come.
//! Neither signs a time, and calls and messages have no event id but their own and a state.

use hookgate_sdk::{
    Elements, Event, MacAlgorithm, Message, Provider, Rejection, Response, Signature, Verdict,
    delivery,
    pairs::{self, NameValue},
};

struct Plivo;

hookgate_sdk::provider!(Plivo);

impl Provider for Plivo {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        match delivery::header("x-plivo-signature-v3")? {
            Some(signatures) => verify_v3(&signatures)?,
            None => verify_v2()?,
        }
        Event {
            event_type: first(&["Event", "MessageType", "CallStatus"])?,
            ordering_key: first(&["CallUUID", "MessageUUID"])?,
            // Plivo takes an answer for instructions.
            response: Some(Response::empty(200)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify_v3(signatures: &str) -> Result<(), Rejection> {
    let nonce = delivery::signature_header("x-plivo-signature-v3-nonce")?;
    let form = if delivery::has_content_type("application/x-www-form-urlencoded") {
        pairs::sorted(delivery::form_pairs())
    } else if delivery::body_length() == 0 {
        Vec::new()
    } else {
        return Err(Rejection::bad_signature(
            "the body is no form: nothing covers it",
        ));
    };
    let url = delivery::called_url()?;
    let signed = signed_v3(&url, &pairs::sorted(delivery::query_pairs()), &form);
    verify(
        [signed.as_slice(), b".", nonce.as_bytes()].concat(),
        signatures,
    )
}

fn signed_v3(url: &str, query: &[NameValue], form: &[NameValue]) -> Vec<u8> {
    let mut signed = without_query(url).as_bytes().to_vec();
    if !query.is_empty() || !form.is_empty() {
        signed.push(b'?');
    }
    for (place, (name, value)) in query.iter().enumerate() {
        if place > 0 {
            signed.push(b'&');
        }
        signed.extend([name.as_slice(), b"=", value].concat());
    }
    if !query.is_empty() && !form.is_empty() {
        signed.push(b'.');
    }
    for (name, value) in form {
        signed.extend([name.as_slice(), value].concat());
    }
    signed
}

fn verify_v2() -> Result<(), Rejection> {
    let signature = delivery::signature_header("x-plivo-signature-v2")?;
    let nonce = delivery::signature_header("x-plivo-signature-v2-nonce")?;
    let url = delivery::called_url()?;
    verify(
        [without_query(&url), &nonce].concat().into_bytes(),
        &signature,
    )
}

fn verify(signed: Vec<u8>, signatures: &str) -> Result<(), Rejection> {
    let signatures = Elements::new(signatures, b',')
        .iter()
        .map(Signature::base64);
    Message::new()
        .literal(signed)
        .verify_mac(MacAlgorithm::HmacSha256, "secret", signatures)
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The first of these parameters, of a form or of a GET's query.
fn first(names: &[&str]) -> Result<Option<String>, Rejection> {
    for name in names {
        if let Some(value) = delivery::form(name)?.or(delivery::query(name)?) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(query: &[(&str, &str)], form: &[(&str, &str)]) -> String {
        let pairs = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            pairs.collect::<Vec<NameValue>>()
        };
        String::from_utf8(signed_v3(
            "https://a.example/b?c",
            &pairs(query),
            &pairs(form),
        ))
        .unwrap()
    }

    #[test]
    fn query_and_form_are_told_apart() {
        assert_eq!(signed(&[], &[]), "https://a.example/b");
        assert_eq!(
            signed(&[("a", "1"), ("b", "")], &[]),
            "https://a.example/b?a=1&b="
        );
        assert_eq!(
            signed(&[], &[("a", "1"), ("b", "2")]),
            "https://a.example/b?a1b2"
        );
        assert_eq!(
            signed(&[("q", "0")], &[("a", "1")]),
            "https://a.example/b?q=0.a1"
        );
    }
}

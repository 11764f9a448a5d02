//! MessageBird (Bird): `MessageBird-Signature-JWT` is a JSON Web Token under the signing key, whose claims hold
//! the SHA-256 of the URL and of the body.
//!
//! A body without `payload_hash` is refused, and so is that claim without a body: it covers what came or the
//! token is another request's. The token is valid for a minute from `nbf` on, so each attempt has its own.

use hookgate_sdk::{
    DigestAlgorithm, Event, Json, JwtAlgorithm, Key, Provider, Rejection, Verdict, delivery,
    encode, time, verification,
};

struct MessageBird;

hookgate_sdk::provider!(MessageBird);

impl Provider for MessageBird {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let claims = claims()?;
        check_issuer(&claims)?;
        check_url(&claims)?;
        check_body(&claims)?;
        let signed_at = claims.required_text("/nbf")?;
        Event {
            id: Json::Body.first_scalar(&["/id"])?,
            event_type: Json::Body.first_scalar(&["/type"])?,
            ordering_key: Json::Body.first_scalar(&["/conversation/id", "/message/id"])?,
            signed_at: time::from_seconds(&signed_at),
            ..Event::default()
        }
        .accept()
    }
}

fn claims() -> Result<Json, Rejection> {
    let token = delivery::signature_header("messagebird-signature-jwt")?;
    let algorithms = [
        JwtAlgorithm::Hs256,
        JwtAlgorithm::Hs384,
        JwtAlgorithm::Hs512,
    ];
    let key = Key::Named("secret".into());
    verification::verify_jwt(&algorithms, &key, token.as_bytes())
        .map(Json::Text)
        .ok_or_else(|| Rejection::bad_signature("the token does not fit, or not now"))
}

fn check_issuer(claims: &Json) -> Result<(), Rejection> {
    match claims.text("/iss")?.as_deref() {
        Some("MessageBird") => Ok(()),
        _ => Err(Rejection::bad_signature("iss: not MessageBird")),
    }
}

fn check_url(claims: &Json) -> Result<(), Rejection> {
    let url = delivery::called_url()?;
    let message = hookgate_sdk::Message::new().literal(url);
    let digest = verification::digest(DigestAlgorithm::Sha256, message.segments());
    if claims.text("/url_hash")?.as_deref() == Some(&encode::hex(&digest)) {
        return Ok(());
    }
    Err(Rejection::bad_signature("url_hash: not the URL's"))
}

fn check_body(claims: &Json) -> Result<(), Rejection> {
    match claims.text("/payload_hash")? {
        None if delivery::body_length() == 0 => Ok(()),
        None => Err(Rejection::bad_signature(
            "payload_hash: absent, but there is a body",
        )),
        Some(_) if delivery::body_length() == 0 => {
            Err(Rejection::bad_signature("payload_hash: there is no body"))
        }
        Some(hash) if hash == verification::body_digest(DigestAlgorithm::Sha256) => Ok(()),
        Some(_) => Err(Rejection::bad_signature("payload_hash: not the body's")),
    }
}

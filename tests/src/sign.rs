//! Signatures as providers make them, independent of the gateway's own code.

use data_encoding::HEXLOWER;
use ring::hmac;

use crate::provider::Signed;

/// HMAC-SHA256 in hexadecimal.
pub fn hmac_sha256_hex(secret: &str, pieces: &[&[u8]]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    for piece in pieces {
        context.update(piece);
    }
    HEXLOWER.encode(context.sign().as_ref())
}

/// A GitHub delivery of an issue event in a repository.
pub fn github(source: &str, secret: &str, id: &str, body: &str) -> Signed {
    let signature = format!("sha256={}", hmac_sha256_hex(secret, &[body.as_bytes()]));
    let headers = [
        ("content-type", "application/json"),
        ("x-github-event", "issues"),
        ("x-github-delivery", id),
        ("x-hub-signature-256", &signature),
    ];
    Signed::post(source, &headers, body.to_owned())
}

/// A Stripe delivery signed at a time, in seconds since 1970.
pub fn stripe(source: &str, secret: &str, at: u64, body: &str) -> Signed {
    let at = at.to_string();
    let signature = hmac_sha256_hex(secret, &[at.as_bytes(), b".", body.as_bytes()]);
    let header = format!("t={at},v1={signature}");
    let headers = [
        ("content-type", "application/json"),
        ("stripe-signature", header.as_str()),
    ];
    Signed::post(source, &headers, body.to_owned())
}

//! Cloudinary: `X-Cld-Signature` is the digest in hexadecimal of the body, `X-Cld-Timestamp` and the account's
//! API secret, one behind the other.
//!
//! No HMAC: SHA-1, or SHA-256 where the account is set to it, which the signature's length tells. What must
//! stay in order shares the asset. Notifications have no id.

use hookgate_sdk::{
    Event, Json, MacAlgorithm, Message, Provider, Rejection, Segment, Signature, Verdict, delivery,
    time,
};

struct Cloudinary;

hookgate_sdk::provider!(Cloudinary);

/// The digits of a SHA-256 digest in hexadecimal.
const SHA256_DIGITS: usize = 64;

impl Provider for Cloudinary {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed_at = verify()?;
        Event {
            event_type: Json::Body.text("/notification_type")?,
            ordering_key: Json::Body.first_scalar(&["/public_id"])?,
            signed_at: Some(signed_at),
            ..Event::default()
        }
        .accept()
    }
}

/// Verifies the signature and returns when it was made, in milliseconds since 1970.
fn verify() -> Result<u64, Rejection> {
    let header = delivery::signature_header("x-cld-signature")?;
    let timestamp = delivery::signature_header("x-cld-timestamp")?;
    let signed_at = time::from_seconds(&timestamp)
        .ok_or_else(|| Rejection::malformed("X-Cld-Timestamp: not a number of seconds"))?;
    let algorithm = match header.len() {
        SHA256_DIGITS => MacAlgorithm::Sha256,
        _ => MacAlgorithm::Sha1,
    };
    Message::new()
        .body()
        .literal(timestamp)
        .segment(Segment::Secret("secret".into()))
        .verify_mac(algorithm, "secret", [Signature::hex(&header)])?;
    Ok(signed_at)
}

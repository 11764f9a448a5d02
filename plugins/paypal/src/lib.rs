//! PayPal: `PAYPAL-TRANSMISSION-SIG` is the RSA signature (PKCS#1, SHA-256), in base64, of the transmission's id
//! and time, the webhook's id and the body's CRC-32, with `|` between them.
//!
//! The key is in the certificate at `PAYPAL-CERT-URL`, which the host fetches from PayPal's hosts alone and
//! holds to PayPal's names. A CRC is no digest: whoever holds a signature can make another body for it, so it
//! is TLS that keeps bodies as they are.

use hookgate_sdk::{
    Event, Json, Key, Message, Provider, Rejection, Segment, Signature, SignatureScheme, Verdict,
    delivery, source, time, verification,
};

struct PayPal;

hookgate_sdk::provider!(PayPal);

impl Provider for PayPal {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        verify()?;
        let occurred_at = Json::Body.first_scalar(&["/create_time"])?;
        Event {
            id: Json::Body.text("/id")?,
            event_type: Json::Body.text("/event_type")?,
            ordering_key: Json::Body.first_scalar(&["/resource/id"])?,
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let webhook_id = source::option("webhook_id")
        .filter(|id| !id.is_empty())
        .ok_or_else(|| Rejection::malformed("configuration: webhook_id is required"))?;
    let signature = delivery::signature_header("paypal-transmission-sig")?;
    if delivery::signature_header("paypal-auth-algo")? != "SHA256withRSA" {
        return Err(Rejection::missing_signature(
            "PAYPAL-AUTH-ALGO: not SHA256withRSA",
        ));
    }
    let signed = [
        delivery::signature_header("paypal-transmission-id")?,
        delivery::signature_header("paypal-transmission-time")?,
        webhook_id,
        verification::crc32(&[Segment::Body]).to_string(),
    ];
    let certificate = delivery::signature_header("paypal-cert-url")?;
    Message::new().literal(signed.join("|")).verify_signature(
        SignatureScheme::RsaPkcs1Sha256,
        &Key::CertificateUrl(certificate),
        [Signature::base64(&signature)],
    )
}

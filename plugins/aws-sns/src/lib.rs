//! AWS SNS: the JSON body carries in `Signature` the RSA signature (PKCS#1; SHA-1 in version 1, SHA-256 in 2),
//! in base64, of some of its fields, each with its name, a line each.
//!
//! The key is in the certificate at `SigningCertURL`, which the host fetches from SNS's hosts alone. Everybody
//! with an account gets such signatures, so the option `topics` says whose count. A subscription of one of
//! those is confirmed by the host, which calls `SubscribeURL`. The time is the event's: retries go on for days.

mod url;

use hookgate_sdk::{
    Event, Json, Key, Message, Provider, Rejection, Response, Signature, SignatureScheme, Verdict,
    delivery, handshake, source, time,
};

struct Sns;

hookgate_sdk::provider!(Sns);

/// What is signed of a notification, in its order.
const NOTIFICATION: [&str; 6] = [
    "Message",
    "MessageId",
    "Subject",
    "Timestamp",
    "TopicArn",
    "Type",
];
/// What is signed of a confirmation.
const CONFIRMATION: [&str; 7] = [
    "Message",
    "MessageId",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
];

impl Provider for Sns {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        if delivery::header("x-amz-sns-rawdelivery")?.as_deref() == Some("true") {
            return Err(Rejection::missing_signature(
                "raw message delivery is not signed: switch it off in the subscription",
            ));
        }
        let kind = Json::Body.text("/Type")?;
        match kind.as_deref() {
            Some("Notification") => notification(),
            Some("SubscriptionConfirmation") => subscription(),
            Some("UnsubscribeConfirmation") => unsubscription(),
            _ => Err(Rejection::malformed("Type: not one of SNS")),
        }
    }
}

fn notification() -> Result<Verdict, Rejection> {
    verify(&NOTIFICATION)?;
    if !check_topic()? {
        source::log(
            source::Level::Warn,
            "the option topics is not set: anybody's topic is taken",
        );
    }
    let occurred_at = Json::Body.text("/Timestamp")?;
    Event {
        id: Some(Json::Body.required_text("/MessageId")?),
        event_type: Some("Notification".into()),
        occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
        sequence: Json::Body.first_scalar(&["/SequenceNumber"])?,
        ..Event::default()
    }
    .accept()
}

fn subscription() -> Result<Verdict, Rejection> {
    verify(&CONFIRMATION)?;
    if !check_topic()? {
        return Err(Rejection::malformed(
            "configuration: topics is required before a subscription is confirmed",
        ));
    }
    let url = Json::Body.required_text("/SubscribeURL")?;
    if !url::is_of_sns(&url) || !handshake::confirm(&url) {
        return Err(Rejection::malformed(
            "SubscribeURL: not of a host that is approved",
        ));
    }
    Response::empty(200).respond()
}

/// Its `SubscribeURL` would undo what the operator just did, so it is not called.
fn unsubscription() -> Result<Verdict, Rejection> {
    verify(&CONFIRMATION)?;
    check_topic()?;
    source::log(source::Level::Warn, "the subscription was ended");
    Response::empty(200).respond()
}

/// Whether the topic is one of those that are configured; false where none is.
fn check_topic() -> Result<bool, Rejection> {
    let topics = source::option("topics").unwrap_or_default();
    let mut topics = topics.split_ascii_whitespace().peekable();
    if topics.peek().is_none() {
        return Ok(false);
    }
    let topic = Json::Body.required_text("/TopicArn")?;
    let is_it = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => topic.starts_with(beginning),
        None => topic == known,
    };
    if topics.any(is_it) {
        return Ok(true);
    }
    Err(Rejection::bad_signature(
        "TopicArn: not one of the option topics",
    ))
}

fn verify(fields: &[&str]) -> Result<(), Rejection> {
    let signature = Json::Body
        .text("/Signature")?
        .ok_or_else(|| Rejection::missing_signature("Signature: absent"))?;
    let scheme = match Json::Body.text("/SignatureVersion")?.as_deref() {
        Some("1") => SignatureScheme::RsaPkcs1Sha1,
        Some("2") => SignatureScheme::RsaPkcs1Sha256,
        _ => return Err(Rejection::missing_signature("SignatureVersion: unknown")),
    };
    // Lambda gets the second spelling.
    let certificate = Json::Body.first_text(&["/SigningCertURL", "/SigningCertUrl"])?;
    let certificate = certificate
        .filter(|url| url::is_certificate(url))
        .ok_or_else(|| Rejection::bad_signature("SigningCertURL: not of SNS"))?;
    signed(fields)?.verify_signature(
        scheme,
        &Key::CertificateUrl(certificate),
        [Signature::base64(&signature)],
    )
}

/// The fields that are there: a `Subject` that is null is not.
fn signed(fields: &[&str]) -> Result<Message, Rejection> {
    let mut message = Message::new();
    for field in fields {
        let text = Json::Body.text(&["/", field].concat())?;
        if let Some(text) = text {
            message = message.literal([field, "\n", &text, "\n"].concat());
        } else if *field != "Subject" {
            return Err(Rejection::malformed([field, ": absent"].concat()));
        }
    }
    Ok(message)
}

//! Twilio: `X-Twilio-Signature` is the HMAC-SHA1 in base64, under the account's Auth Token, of the URL that
//! was called, with the parameters of a form behind it.
//!
//! Any other body is covered by its SHA-256 in the URL, as the parameter `bodySHA256`; a body that nothing
//! covers is refused. Twilio signs the URL with or without its port, depending on time and service, so both
//! are tried. Nothing is signed of the time or of `I-Twilio-Idempotency-Token`, which is the only id that all
//! kinds of requests share. What must stay in order shares the conference, call or message.

mod form;
mod url;

use hookgate_sdk::{
    DigestAlgorithm, Event, MacAlgorithm, Message, Part, Provider, Rejection, Response, Signature,
    Verdict, delivery, verification,
};

use form::Form;

struct Twilio;

hookgate_sdk::provider!(Twilio);

impl Provider for Twilio {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let form = Form::read();
        verify(&form)?;
        // Parameters come in the body, or, of a GET, in the URL.
        let parameters = if form.is_empty() {
            Form::of_query()
        } else {
            form
        };
        Event {
            id: delivery::header("i-twilio-idempotency-token")?,
            event_type: event_type(&parameters),
            ordering_key: parameters
                .first(&["ConferenceSid", "CallSid", "MessageSid", "SmsSid"])
                .map(String::from),
            sequence: parameters.first(&["SequenceNumber"]).map(String::from),
            response: Some(no_instructions()),
            ..Event::default()
        }
        .accept()
    }
}

fn verify(form: &Form) -> Result<(), Rejection> {
    let signature = [Signature::base64(&delivery::signature_header(
        "x-twilio-signature",
    )?)];
    let url = delivery::called_url()?;
    check_body(form)?;
    let with_parameters = |url: &str| Message::new().literal(url).literal(form.signed());
    let verify = |url: &str| {
        with_parameters(url).verify_mac(MacAlgorithm::HmacSha1, "secret", signature.clone())
    };
    verify(&url).or_else(|rejection| match url::with_port_changed(&url) {
        Some(other) => verify(&other),
        None => Err(rejection),
    })
}

/// Whether something that is signed covers the body: its parameters or, in the URL, its digest.
fn check_body(form: &Form) -> Result<(), Rejection> {
    match delivery::query("bodySHA256")? {
        Some(digest)
            if digest.eq_ignore_ascii_case(&verification::body_digest(DigestAlgorithm::Sha256)) =>
        {
            Ok(())
        }
        Some(_) => Err(Rejection::bad_signature("bodySHA256: not the body's")),
        None if delivery::body_length() == 0 || form.is_body() => Ok(()),
        None => Err(Rejection::bad_signature(
            "bodySHA256: absent, and the body is no form",
        )),
    }
}

/// Such as `message.delivered` or `call.completed`.
fn event_type(parameters: &Form) -> Option<String> {
    let kinds: [(&str, &str, &[&str]); 4] = [
        ("ConferenceSid", "conference", &["StatusCallbackEvent"]),
        ("CallSid", "call", &["CallStatus"]),
        ("MessageSid", "message", &["MessageStatus", "SmsStatus"]),
        ("SmsSid", "message", &["MessageStatus", "SmsStatus"]),
    ];
    let (_, kind, status) = kinds
        .into_iter()
        .find(|(sid, ..)| parameters.first(&[sid]).is_some())?;
    Some(match parameters.first(status) {
        Some(status) => [kind, status].join("."),
        None => kind.into(),
    })
}

/// Twilio takes an answer for instructions, and any other format than `TwiML` for an error.
fn no_instructions() -> Response {
    Response {
        status: 200,
        headers: vec![("content-type".into(), "text/xml".into())],
        body: vec![Part::Bytes(b"<Response/>".to_vec())],
    }
}

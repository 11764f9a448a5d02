//! A plugin's verdict, read within what the protocol allows.

use super::{Call, LOG_BYTES, refused, verify, wit};
use crate::crypto::{self, Mac, Piece};
use crate::delivery::{Event, RejectKind, Rejection, Response, Verdict};
use crate::encoding::Encoding;
use crate::plugin::{Fault, Setup};

/// The longest message of a MAC in an answer, in bytes.
const MAX_CHALLENGE: usize = 256;

/// Reads a verdict, within what the protocol allows.
pub(in crate::plugin) fn verdict(verdict: wit::Verdict, call: &Call) -> Result<Verdict, Fault> {
    let setup = &*call.setup;
    match verdict {
        wit::Verdict::Accept(_) if call.confirm.is_some() => Err(refused(
            "it accepts an event and confirms a handshake".into(),
        )),
        wit::Verdict::Accept(events) => match <[wit::Event; 1]>::try_from(events) {
            Ok([event]) => event_of(event, setup).map(Verdict::Accept),
            Err(events) => Err(refused(format!(
                "it accepts {} events in one delivery, not one",
                events.len()
            ))),
        },
        wit::Verdict::Respond(answer) => match forbidden(&answer, setup) {
            Some(reason) => Ok(Verdict::Reject(Rejection::new(
                RejectKind::Malformed,
                reason,
            ))),
            None => response(answer, setup).map(Verdict::Respond),
        },
        wit::Verdict::Reject(rejection) => Ok(Verdict::Reject(Rejection {
            kind: rejection.kind.into(),
            reason: shorten(&rejection.reason),
        })),
    }
}

fn shorten(reason: &str) -> String {
    reason[..reason.floor_char_boundary(LOG_BYTES)]
        .escape_debug()
        .to_string()
}

/// An accepted event is answered with a 2xx: it is in the queue, and any other status, which duplicates would
/// get too, would have the provider send it again and again.
fn event_of(event: wit::Event, setup: &Setup) -> Result<Event, Fault> {
    let answer = event.response.as_ref();
    if answer.is_some_and(|answer| macs(answer).next().is_some()) {
        return Err(refused(
            "an event's answer holds a MAC; only a handshake's may".into(),
        ));
    }
    let status = event.response.as_ref().map(|response| response.status);
    if let Some(status) = status.filter(|status| !(200..=299).contains(status)) {
        return Err(refused(format!(
            "it accepts an event with the status {status}, which is no 2xx"
        )));
    }
    Ok(Event {
        id: event.id,
        ordering_key: event.ordering_key.filter(|key| !key.is_empty()),
        event_type: event.event_type,
        signed_at: event.signed_at,
        occurred_at: event.occurred_at,
        sequence: event.sequence,
        response: event
            .response
            .map(|answer| response(answer, setup))
            .transpose()?,
        extra: event.extra,
    })
}

fn macs(response: &wit::Response) -> impl Iterator<Item = &wit::MacRequest> {
    response.body.iter().filter_map(|part| match part {
        wit::Part::Mac(request) => Some(request),
        wit::Part::Bytes(_) => None,
    })
}

/// Why the handshake is not answered: who asks chooses what is signed, so it must be of no other use.
fn forbidden(response: &wit::Response, setup: &Setup) -> Option<String> {
    let mut macs = macs(response).peekable();
    macs.peek()?;
    if !setup.sign_challenges {
        return Some(
            "the answer to this handshake holds a MAC, and the source has no `sign_challenges`"
                .into(),
        );
    }
    let is_challenge = |request: &wit::MacRequest| {
        let literals = request.message.iter().map(|segment| match segment {
            wit::Segment::Literal(literal) => Some(literal.as_slice()),
            _ => None,
        });
        let message = literals
            .collect::<Option<Vec<_>>>()
            .map(|pieces| pieces.concat());
        let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-".contains(b);
        message.is_some_and(|m| (1..=MAX_CHALLENGE).contains(&m.len()) && m.iter().all(is_plain))
    };
    let all = macs.all(is_challenge);
    (!all).then(|| {
        format!(
            "a challenge is not 1 to {MAX_CHALLENGE} letters, digits and +/=_- : it is not signed"
        )
    })
}

/// The MAC under the secret's first active value, as text.
fn mac(request: &wit::MacRequest, setup: &Setup) -> Result<Vec<u8>, Fault> {
    let name = &request.secret;
    let mac = Mac::from(request.algorithm);
    if matches!(mac, Mac::Plain(_)) {
        return Err(refused(
            "a challenge is signed by an HMAC, not by a plain digest".into(),
        ));
    }
    let key = verify::keys(setup, name)?.first();
    let key = key.ok_or_else(|| refused(format!("the secret {name:?} has no value")))?;
    let pieces = request.message.iter().filter_map(|segment| match segment {
        wit::Segment::Literal(literal) => Some(Piece::Bytes(literal)),
        _ => None,
    });
    let mac = crypto::sign(mac, key, &pieces.collect::<Vec<_>>());
    Ok(Encoding::from(request.encoding).encode(&mac))
}

/// What a response may be: small enough to be kept with a claim, and nothing that changes the connection.
fn response(response: wit::Response, setup: &Setup) -> Result<Response, Fault> {
    const MAX: usize = 4096;
    if !(200..=599).contains(&response.status) {
        return Err(refused(format!(
            "a response has the status {}",
            response.status
        )));
    }
    let mut body = Vec::new();
    for part in response.body {
        match part {
            wit::Part::Bytes(bytes) => body.extend(bytes),
            wit::Part::Mac(request) => body.extend(mac(&request, setup)?),
        }
    }
    for (name, value) in &response.headers {
        check_header(name, value)?;
    }
    let headers: usize = response
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    match body.len() + headers {
        size if size > MAX => Err(refused(format!(
            "a response has {size} bytes; it may have {MAX}"
        ))),
        _ => Ok(Response {
            status: Some(response.status),
            headers: response.headers,
            body: body.into(),
        }),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), Fault> {
    let is_framing = [
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "set-cookie",
    ]
    .iter()
    .any(|framing| name.eq_ignore_ascii_case(framing));
    let fits =
        http::HeaderName::try_from(name).is_ok() && http::HeaderValue::try_from(value).is_ok();
    if fits && !is_framing {
        return Ok(());
    }
    Err(refused(format!(
        "a response has the header \"{}\", with a name or value that it must not have",
        shorten(name)
    )))
}

impl From<wit::RejectKind> for RejectKind {
    fn from(kind: wit::RejectKind) -> Self {
        match kind {
            wit::RejectKind::MissingSignature => Self::MissingSignature,
            wit::RejectKind::BadSignature => Self::BadSignature,
            wit::RejectKind::Stale => Self::Stale,
            wit::RejectKind::Malformed => Self::Malformed,
            wit::RejectKind::Method => Self::Method,
            wit::RejectKind::Media => Self::Media,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn accepting(status: u16) -> wit::Verdict {
        wit::Verdict::Accept(vec![wit::Event {
            id: Some("e1".into()),
            ordering_key: None,
            event_type: None,
            signed_at: None,
            occurred_at: None,
            sequence: None,
            response: Some(wit::Response {
                status,
                headers: vec![],
                body: vec![],
            }),
            extra: vec![],
        }])
    }

    fn verdict(verdict: wit::Verdict) -> Result<Verdict, Fault> {
        let delivery = Arc::new(super::super::no_delivery());
        let limits = crate::plugin::Limits::default();
        let call = Call::new(delivery, Arc::default(), &limits);
        super::verdict(verdict, &call)
    }

    fn challenged(message: Vec<wit::Segment>, signs: bool) -> Result<Verdict, Fault> {
        let mut setup = Setup {
            sign_challenges: signs,
            ..Setup::default()
        };
        let key = crypto::Key::decode(crypto::KeyForm::Raw, b"secretValueTest", true).unwrap();
        setup.keys.add("secret", key);
        let request = wit::MacRequest {
            algorithm: wit::MacAlgorithm::HmacSha256,
            secret: "secret".into(),
            message,
            encoding: wit::Encoding::Hex,
        };
        let answer = wit::Response {
            status: 200,
            headers: vec![],
            body: vec![wit::Part::Bytes(b"<".into()), wit::Part::Mac(request)],
        };
        let delivery = Arc::new(super::super::no_delivery());
        let limits = crate::plugin::Limits::default();
        let call = Call::new(delivery, Arc::new(setup), &limits);
        super::verdict(wit::Verdict::Respond(answer), &call)
    }

    fn literal(text: &str) -> Vec<wit::Segment> {
        vec![wit::Segment::Literal(text.as_bytes().into())]
    }

    /// HMAC-SHA256 of a token that Zoom documents, under a secret of a validator's tests.
    #[test]
    fn a_challenge_is_signed_where_the_source_allows_it() {
        let answered = challenged(literal("qgg8vlvZRS6UYooatFL8Aw"), true);
        let Ok(Verdict::Respond(answer)) = answered else {
            panic!("{answered:?}");
        };
        let mac = "<70c1f2e2e6ca2d39297490d1f9142c7d701415ea8e6151f6562a08fa657a40ff";
        assert_eq!(answer.body, mac.as_bytes());
    }

    #[test]
    fn what_a_delivery_could_consist_of_is_never_signed() {
        let reason = |answered: Result<Verdict, Fault>| match answered {
            Ok(Verdict::Reject(rejection)) => rejection.reason,
            other => panic!("{other:?}"),
        };
        let closed = reason(challenged(literal("abc"), false));
        assert!(closed.contains("has no `sign_challenges`"), "{closed}");
        let long = "a".repeat(MAX_CHALLENGE + 1);
        let with_body = [literal("abc"), vec![wit::Segment::Body]].concat();
        let refused = [
            r#"{"id":1}"#,
            "v0:1:a",
            "1.a",
            "a=1&b=2",
            "a b",
            "ä",
            "",
            &long,
        ];
        let refused = refused.iter().map(|text| literal(text)).chain([with_body]);
        for message in refused {
            let reason = reason(challenged(message, true));
            assert!(reason.contains("it is not signed"), "{reason}");
        }
    }

    #[test]
    fn an_event_is_accepted_with_a_2xx_or_not_at_all() {
        for status in [200, 204, 299] {
            assert!(verdict(accepting(status)).is_ok(), "{status}");
        }
        for status in [199, 300, 404, 500] {
            let fault = verdict(accepting(status)).unwrap_err().to_string();
            assert!(fault.contains("which is no 2xx"), "{fault}");
        }
    }
}

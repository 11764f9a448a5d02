//! A plugin's verdict, read within what the protocol allows.

use super::{LOG_BYTES, refused, wit};
use crate::delivery::{Event, RejectKind, Rejection, Response, Verdict};
use crate::plugin::Fault;

/// Reads a verdict, within what the protocol allows.
pub(in crate::plugin) fn verdict(verdict: wit::Verdict) -> Result<Verdict, Fault> {
    match verdict {
        wit::Verdict::Accept(events) => match <[wit::Event; 1]>::try_from(events) {
            Ok([event]) => event_of(event).map(Verdict::Accept),
            Err(events) => Err(refused(format!(
                "it accepts {} events in one delivery, not one",
                events.len()
            ))),
        },
        wit::Verdict::Respond(answer) => response(answer).map(Verdict::Respond),
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
fn event_of(event: wit::Event) -> Result<Event, Fault> {
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
        response: event.response.map(response).transpose()?,
        extra: event.extra,
    })
}

/// What a response may be: small enough to be kept with a claim, and nothing that changes the connection.
fn response(response: wit::Response) -> Result<Response, Fault> {
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
            wit::Part::Mac(_) => {
                return Err(Fault::NotSupported {
                    function: "a MAC in a response".into(),
                });
            }
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

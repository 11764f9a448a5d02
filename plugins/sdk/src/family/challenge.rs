//! Handshakes by options: a value that is echoed, with or without its MAC, and methods that are tried.
//!
//! The option `challenge` says where the value is, `answer` what to make of it. An echo proves nothing but that
//! somebody listens, so it needs no signature; what is echoed is plain text or within a JSON string.

use super::locator::{Given, Locator};
use super::options;
use crate::{Encoding, MacAlgorithm, Message, Part, Rejection, Response, delivery, encode};

/// The longest challenge, in bytes.
const LONGEST: usize = 2048;

/// How a handshake is answered.
pub struct Challenge {
    locator: Option<Locator>,
    /// What must be where for a delivery to be a handshake.
    condition: Option<(Locator, String)>,
    answer: Vec<Piece>,
    is_json: bool,
    /// The header that carries the answer, in the body's place.
    header: Option<String>,
    /// Whether only a signed one is answered.
    pub is_signed: bool,
    probe: String,
}

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Challenge,
    Mac,
}

/// How the MAC of a challenge is made.
#[derive(Clone, Copy)]
pub struct Mac {
    /// The algorithm.
    pub algorithm: MacAlgorithm,
    /// How it is written.
    pub encoding: Encoding,
}

impl Challenge {
    /// Reads the options `challenge`, `challenge_if`, `answer`, `answer_header`, `challenge_signed` and `probe`.
    ///
    /// # Errors
    ///
    /// Where one is bad.
    pub fn read() -> Result<Self, Rejection> {
        let answer = options::text("answer").unwrap_or_else(|| "{challenge}".into());
        Ok(Self {
            locator: options::locator("challenge")?,
            condition: condition()?,
            is_json: answer.starts_with('{') && answer != "{challenge}",
            answer: pieces(&answer),
            header: options::text("answer_header"),
            is_signed: options::flag("challenge_signed")?,
            probe: options::text("probe").unwrap_or_default(),
        })
    }

    /// No handshake at all.
    #[cfg(test)]
    pub(super) fn nothing() -> Self {
        Self {
            locator: None,
            condition: None,
            answer: Vec::new(),
            is_json: false,
            header: None,
            is_signed: false,
            probe: String::new(),
        }
    }

    /// The answer where this delivery is a handshake. `mac` is none where the plugin's keys make none.
    ///
    /// # Errors
    ///
    /// Malformed where the challenge is none that may be echoed or signed.
    pub fn answered(&self, mac: Option<Mac>) -> Result<Option<Response>, Rejection> {
        let method = delivery::method();
        if self
            .probe
            .split_ascii_whitespace()
            .any(|probe| probe == method)
        {
            return Ok(Some(Response::empty(200)));
        }
        let Some(locator) = &self.locator else {
            return Ok(None);
        };
        if let Some((locator, value)) = &self.condition
            && locator.find(Given::nothing())?.as_deref() != Some(value)
        {
            return Ok(None);
        }
        let Some(challenge) = locator.find(Given::nothing())? else {
            return Ok(None);
        };
        self.response(&challenge, mac).map(Some)
    }

    fn response(&self, challenge: &str, mac: Option<Mac>) -> Result<Response, Rejection> {
        if challenge.len() > LONGEST {
            return Err(Rejection::malformed("challenge: longer than 2048 bytes"));
        }
        if let Some(header) = &self.header {
            let is_plain = challenge.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if !is_plain {
                return Err(Rejection::malformed("challenge: not printable ASCII"));
            }
            return Ok(Response::empty(200).with_header(header, challenge));
        }
        let parts = self.answer.iter().map(|piece| match piece {
            Piece::Literal(text) => Ok(Part::Bytes(text.clone().into_bytes())),
            Piece::Challenge => Ok(Part::Bytes(self.echo(challenge))),
            Piece::Mac => sign(challenge, mac),
        });
        let parts = parts.collect::<Result<_, Rejection>>()?;
        let media_type = if self.is_json {
            "application/json"
        } else {
            "text/plain"
        };
        Ok(Response::ok(media_type, parts))
    }

    /// The challenge, escaped where it stands within JSON.
    fn echo(&self, challenge: &str) -> Vec<u8> {
        let text = encode::json_string(challenge);
        match text.get(1..text.len() - 1) {
            Some(inner) if self.is_json => inner.into(),
            _ => challenge.into(),
        }
    }
}

/// The option `challenge_if`: a locator and the value that is to be there.
fn condition() -> Result<Option<(Locator, String)>, Rejection> {
    let wrong = |problem: &str| options::wrong("challenge_if", problem);
    let Some(text) = options::text("challenge_if") else {
        return Ok(None);
    };
    let (locator, value) = text
        .split_once('=')
        .ok_or_else(|| wrong("is not LOCATOR=VALUE"))?;
    let locator = Locator::parse(locator).map_err(wrong)?;
    Ok(Some((locator, value.into())))
}

fn sign(challenge: &str, mac: Option<Mac>) -> Result<Part, Rejection> {
    let mac =
        mac.ok_or_else(|| options::wrong("answer", "holds {mac}, which this plugin cannot make"))?;
    encode::check_challenge("challenge", challenge)?;
    let message = Message::new().literal(challenge);
    Ok(message.into_mac(mac.algorithm, "secret", mac.encoding))
}

/// Other braces than those of the two placeholders are the answer's own: most are JSON.
fn pieces(answer: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = answer;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        let (piece, length) = if from.starts_with("{challenge}") {
            (Piece::Challenge, "{challenge}".len())
        } else if from.starts_with("{mac}") {
            (Piece::Mac, "{mac}".len())
        } else {
            (Piece::Literal("{".into()), 1)
        };
        pieces.push(Piece::Literal(before.into()));
        pieces.push(piece);
        rest = from.get(length..).unwrap_or_default();
    }
    pieces.push(Piece::Literal(rest.into()));
    pieces.retain(|piece| *piece != Piece::Literal(String::new()));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_placeholders_are_replaced() {
        let literal = |text: &str| Piece::Literal(text.into());
        let expected = [
            literal("{"),
            literal("\"a\":\""),
            Piece::Challenge,
            literal("\",\"b\":\"x="),
            Piece::Mac,
            literal("\"}"),
        ];
        assert_eq!(pieces(r#"{"a":"{challenge}","b":"x={mac}"}"#), expected);
        assert_eq!(pieces("{challenge}"), [Piece::Challenge]);
    }
}

//! The options of the generic plugins whose providers sign in a header: what is signed, how the signature is
//! written, and where the time of signing is.
//!
//! Checked as a whole before the delivery is looked at. Knows nothing of keys and algorithms.

use super::challenge::{Challenge, Mac};
use super::locator::{Given, Locator};
use super::options::{self, Facts, Timestamp, wrong};
use super::template::{self, Piece};
use crate::{
    BodyDigest, DigestAlgorithm, Elements, Encoding, Message, Rejection, Segment, Signature,
    Verdict, delivery, encode,
};

/// How providers that sign a digest of the body write it.
const BODY_SHA256: BodyDigest = BodyDigest {
    algorithm: DigestAlgorithm::Sha256,
    encoding: Encoding::Hex,
};

/// How a signature is written.
#[derive(Clone, Copy)]
pub enum Form {
    /// Encoded once.
    Plain(Encoding),
    /// Hexadecimal digits, which are in base64 once more.
    HexInBase64,
}

/// All options.
pub struct Signed {
    header: String,
    form: Form,
    prefix: String,
    separator: Option<u8>,
    template: Vec<Piece>,
    constant: Option<String>,
    timestamp: Timestamp,
    facts: Facts,
    challenge: Challenge,
}

impl Signed {
    /// Reads and checks the options.
    ///
    /// # Errors
    ///
    /// Where one is bad, or two do not fit one another.
    pub fn read() -> Result<Self, Rejection> {
        let timestamp = Timestamp::read()?;
        let options = Self {
            header: options::required("header")?,
            form: form()?,
            prefix: options::text("prefix").unwrap_or_default(),
            separator: separator()?,
            template: signed()?,
            constant: options::text("constant"),
            facts: Facts::read(timestamp.unit)?,
            timestamp,
            challenge: Challenge::read()?,
        };
        options.check()?;
        Ok(options)
    }

    /// Answers a handshake, or has `verify` look at the message and the signatures and accepts the event.
    ///
    /// # Errors
    ///
    /// The refusal of `verify`, or that of a delivery that lacks something.
    pub fn handle(
        &self,
        mac: Option<Mac>,
        verify: impl Fn(&Message, Vec<Signature>) -> Result<(), Rejection>,
    ) -> Result<Verdict, Rejection> {
        let answer = self.challenge.answered(mac)?;
        if let Some(response) = answer.clone().filter(|_| !self.challenge.is_signed) {
            return response.respond();
        }
        let header = delivery::signature_header(&self.header)?;
        let given = Given {
            elements: match self.separator {
                Some(separator) => Elements::new(&header, separator),
                None => Elements::single(&header),
            },
            claims: None,
        };
        verify(&self.message(given)?, self.signatures(given))?;
        if let Some(response) = answer {
            return response.respond();
        }
        let signed_at = self.timestamp.signed_at(given)?;
        self.facts.event(given, signed_at)?.accept()
    }

    /// Whether the secret itself is in what is signed.
    pub fn holds_secret(&self) -> bool {
        self.template.contains(&Piece::Secret)
    }

    fn signatures(&self, given: Given<'_>) -> Vec<Signature> {
        let texts = given.elements.with_prefix(&self.prefix);
        texts.map(|text| signature(self.form, text)).collect()
    }

    fn message(&self, given: Given<'_>) -> Result<Message, Rejection> {
        let segments = self.template.iter().map(|piece| self.segment(piece, given));
        segments.collect()
    }

    fn segment(&self, piece: &Piece, given: Given<'_>) -> Result<Segment, Rejection> {
        Ok(match piece {
            Piece::Literal(text) => literal(text.clone()),
            Piece::Body => Segment::Body,
            Piece::BodySha256 => Segment::BodyDigest(BODY_SHA256),
            Piece::Method => Segment::Method,
            Piece::Target => Segment::Target,
            Piece::Url => delivery::called_url().map(|_| Segment::ExternalUrl)?,
            Piece::Secret => Segment::Secret("secret".into()),
            Piece::Constant => literal(options::required("constant")?),
            Piece::Timestamp => literal(required(self.timestamp.locator.as_ref(), given)?),
            Piece::Id => literal(required(self.facts.id.as_ref(), given)?),
            Piece::Located(locator) => literal(locator.require(given)?),
        })
    }

    fn check(&self) -> Result<(), Rejection> {
        if self.template.contains(&Piece::Constant) && self.constant.is_none() {
            return Err(wrong(
                "constant",
                "is required, since signed holds {constant}",
            ));
        }
        if self.template.contains(&Piece::Id) && self.facts.id.is_none() {
            return Err(wrong("signed", "holds {id}, but the option id is not set"));
        }
        if self.separator.is_none() && self.locators().any(Locator::is_in_signature) {
            return Err(wrong(
                "separator",
                "is required where a locator is signature: or element:",
            ));
        }
        match &self.timestamp.locator {
            None if self.template.contains(&Piece::Timestamp) => Err(wrong(
                "signed",
                "holds {timestamp}, but the option timestamp is not set",
            )),
            Some(timestamp) if !self.covers(timestamp) => Err(wrong(
                "timestamp",
                "is not under the signature; put {timestamp} into signed",
            )),
            _ => Ok(()),
        }
    }

    fn locators(&self) -> impl Iterator<Item = &Locator> {
        let located = self.template.iter().filter_map(|piece| match piece {
            Piece::Located(locator) => Some(locator),
            _ => None,
        });
        let own = self.timestamp.locator.iter().chain(self.facts.locators());
        own.chain(located)
    }

    /// Whether the signature covers the timestamp: one that a sender may change proves no age.
    fn covers(&self, timestamp: &Locator) -> bool {
        self.template.iter().any(|piece| match piece {
            Piece::Timestamp => true,
            Piece::Body | Piece::BodySha256 => {
                matches!(timestamp, Locator::Json(_) | Locator::Form(_))
            }
            Piece::Target | Piece::Url => matches!(timestamp, Locator::Query(_)),
            Piece::Located(locator) => locator == timestamp,
            Piece::Literal(_) | Piece::Method | Piece::Id | Piece::Secret | Piece::Constant => {
                false
            }
        })
    }
}

fn signature(form: Form, text: &str) -> Signature {
    match form {
        Form::Plain(encoding) => Signature::encoded(encoding, text),
        // Digits that are not in base64 once more are as good.
        Form::HexInBase64 => match encode::from_base64(text.as_bytes()) {
            Some(digits) if digits.is_ascii() => Signature {
                encoding: Encoding::Hex,
                text: digits,
            },
            _ => Signature::hex(text),
        },
    }
}

fn literal(text: String) -> Segment {
    Segment::Literal(text.into_bytes())
}

fn required(locator: Option<&Locator>, given: Given<'_>) -> Result<String, Rejection> {
    locator
        .ok_or_else(|| wrong("signed", "needs a locator"))?
        .require(given)
}

fn signed() -> Result<Vec<Piece>, Rejection> {
    let Some(template) = options::text("signed") else {
        return Ok(vec![Piece::Body]);
    };
    template::parse(&template).map_err(|problem| wrong("signed", &problem))
}

fn separator() -> Result<Option<u8>, Rejection> {
    let Some(text) = options::text("separator") else {
        return Ok(None);
    };
    match text.as_bytes() {
        [separator] if separator.is_ascii() => Ok(Some(*separator)),
        _ => Err(wrong(
            "separator",
            "is not one ASCII character; spaces around elements never count",
        )),
    }
}

fn form() -> Result<Form, Rejection> {
    Ok(Form::Plain(match options::text("encoding").as_deref() {
        None | Some("hex") => Encoding::Hex,
        Some("hex-upper") => Encoding::HexUpper,
        Some("base64") => Encoding::Base64,
        Some("base64-url") => Encoding::Base64Url,
        Some("hex-in-base64") => return Ok(Form::HexInBase64),
        Some(_) => {
            return Err(wrong(
                "encoding",
                "is none of hex, hex-upper, base64, base64-url, hex-in-base64",
            ));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time;

    fn options(signed: &str, timestamp: Option<&str>) -> Signed {
        Signed {
            header: "x-signature".into(),
            form: Form::Plain(Encoding::Hex),
            prefix: String::new(),
            separator: None,
            template: template::parse(signed).unwrap(),
            constant: None,
            timestamp: Timestamp {
                locator: timestamp.map(|text| Locator::parse(text).unwrap()),
                unit: time::from_seconds,
                max_age: None,
            },
            facts: Facts::nothing(),
            challenge: Challenge::nothing(),
        }
    }

    #[test]
    fn a_timestamp_under_the_signature_is_taken() {
        let cases = [
            ("{timestamp}{body}", "header:x-time"),
            ("{body}{header:x-time}", "header:x-time"),
            ("{body}", "json:/time"),
            ("{body-sha256}", "form:time"),
            ("{url}{body}", "query:time"),
            ("{body}", "json:/t"),
        ];
        for (signed, timestamp) in cases {
            assert!(
                options(signed, Some(timestamp)).check().is_ok(),
                "{signed} {timestamp}"
            );
        }
    }

    #[test]
    fn a_timestamp_that_a_sender_may_change_is_refused() {
        for (signed, timestamp) in [
            ("{body}", "header:x-time"),
            ("{body}{header:x-other}", "header:x-time"),
            ("{body}", "query:time"),
            ("{url}", "json:/time"),
        ] {
            let refusal = options(signed, Some(timestamp)).check().unwrap_err();
            assert!(
                refusal.reason.starts_with("configuration: timestamp "),
                "{}",
                refusal.reason
            );
        }
    }

    #[test]
    fn placeholders_need_their_options() {
        for signed in ["{timestamp}.{body}", "{id}.{body}"] {
            let refusal = options(signed, None).check().unwrap_err();
            assert!(
                refusal.reason.starts_with("configuration: signed "),
                "{}",
                refusal.reason
            );
        }
    }

    #[test]
    fn elements_of_the_header_need_a_separator() {
        let refusal = options("{signature:t}.{body}", None).check().unwrap_err();
        assert!(
            refusal.reason.starts_with("configuration: separator "),
            "{}",
            refusal.reason
        );
    }
}

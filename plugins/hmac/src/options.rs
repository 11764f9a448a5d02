//! The source's options, checked as a whole before the delivery is looked at.
//!
//! A bad option refuses every delivery, with a reason that begins with `configuration:` and names it.
//! Knows nothing of the delivery.

use hookgate_sdk::{Encoding, MacAlgorithm, Rejection, source, time};

use crate::locator::Locator;
use crate::template::{self, Piece};

/// Reads a time's text into milliseconds since 1970.
pub(crate) type TimeUnit = fn(&str) -> Option<u64>;

/// All options.
pub(crate) struct Options {
    pub(crate) header: String,
    pub(crate) algorithm: MacAlgorithm,
    pub(crate) encoding: Encoding,
    pub(crate) prefix: String,
    pub(crate) separator: Option<u8>,
    pub(crate) signed: Vec<Piece>,
    pub(crate) timestamp: Option<Locator>,
    pub(crate) timestamp_unit: TimeUnit,
    pub(crate) id: Option<Locator>,
    pub(crate) event_type: Option<Locator>,
    pub(crate) ordering_key: Option<Locator>,
    pub(crate) sequence: Option<Locator>,
    pub(crate) occurred_at: Option<Locator>,
    pub(crate) occurred_at_unit: TimeUnit,
}

impl Options {
    /// Reads and checks the options.
    pub(crate) fn read() -> Result<Self, Rejection> {
        let timestamp_unit = unit("timestamp_unit", time::from_seconds)?;
        let options = Self {
            header: option("header").ok_or_else(|| wrong("header", "is required"))?,
            algorithm: algorithm()?,
            encoding: encoding()?,
            prefix: option("prefix").unwrap_or_default(),
            separator: separator()?,
            signed: signed()?,
            timestamp: locator("timestamp")?,
            timestamp_unit,
            id: locator("id")?,
            event_type: locator("type")?,
            ordering_key: locator("ordering_key")?,
            sequence: locator("sequence")?,
            occurred_at: locator("occurred_at")?,
            occurred_at_unit: unit("occurred_at_unit", timestamp_unit)?,
        };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Rejection> {
        if self.signed.contains(&Piece::Id) && self.id.is_none() {
            return Err(wrong("signed", "holds {id}, but the option id is not set"));
        }
        if self.separator.is_none() && self.locators().any(|l| matches!(l, Locator::Signature(_))) {
            return Err(wrong(
                "separator",
                "is required where a locator is signature:",
            ));
        }
        match &self.timestamp {
            None if self.signed.contains(&Piece::Timestamp) => Err(wrong(
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
        let own = [
            &self.timestamp,
            &self.id,
            &self.event_type,
            &self.ordering_key,
        ];
        let rest = [&self.sequence, &self.occurred_at];
        let located = self.signed.iter().filter_map(|piece| match piece {
            Piece::Located(locator) => Some(locator),
            _ => None,
        });
        own.into_iter().chain(rest).flatten().chain(located)
    }

    /// Whether the signature covers the timestamp: one that a sender may change proves no age.
    fn covers(&self, timestamp: &Locator) -> bool {
        self.signed.iter().any(|piece| match piece {
            Piece::Timestamp => true,
            Piece::Body | Piece::BodySha256 => {
                matches!(timestamp, Locator::Json(_) | Locator::Form(_))
            }
            Piece::Target | Piece::Url => matches!(timestamp, Locator::Query(_)),
            Piece::Located(locator) => locator == timestamp,
            Piece::Literal(_) | Piece::Method | Piece::Id => false,
        })
    }
}

/// The refusal for a bad option.
pub(crate) fn wrong(option: &str, problem: &str) -> Rejection {
    Rejection::malformed(["configuration: ", option, " ", problem].concat())
}

/// An option's text; none where it is absent or empty.
fn option(name: &str) -> Option<String> {
    source::option(name).filter(|text| !text.is_empty())
}

fn locator(name: &str) -> Result<Option<Locator>, Rejection> {
    let Some(text) = option(name) else {
        return Ok(None);
    };
    Locator::parse(&text)
        .map(Some)
        .map_err(|problem| wrong(name, problem))
}

fn signed() -> Result<Vec<Piece>, Rejection> {
    let Some(template) = option("signed") else {
        return Ok(vec![Piece::Body]);
    };
    template::parse(&template).map_err(|problem| wrong("signed", &problem))
}

fn separator() -> Result<Option<u8>, Rejection> {
    let Some(text) = option("separator") else {
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

fn algorithm() -> Result<MacAlgorithm, Rejection> {
    match option("algorithm").as_deref() {
        None | Some("hmac-sha256") => Ok(MacAlgorithm::HmacSha256),
        Some("hmac-sha1") => Ok(MacAlgorithm::HmacSha1),
        Some("hmac-sha384") => Ok(MacAlgorithm::HmacSha384),
        Some("hmac-sha512") => Ok(MacAlgorithm::HmacSha512),
        Some(_) => Err(wrong(
            "algorithm",
            "is none of hmac-sha1, hmac-sha256, hmac-sha384, hmac-sha512",
        )),
    }
}

fn encoding() -> Result<Encoding, Rejection> {
    match option("encoding").as_deref() {
        None | Some("hex") => Ok(Encoding::Hex),
        Some("hex-upper") => Ok(Encoding::HexUpper),
        Some("base64") => Ok(Encoding::Base64),
        Some("base64-url") => Ok(Encoding::Base64Url),
        Some(_) => Err(wrong(
            "encoding",
            "is none of hex, hex-upper, base64, base64-url",
        )),
    }
}

fn unit(name: &str, default: TimeUnit) -> Result<TimeUnit, Rejection> {
    match option(name).as_deref() {
        None => Ok(default),
        Some("s") => Ok(time::from_seconds),
        Some("ms") => Ok(time::from_millis),
        Some("rfc3339") => Ok(time::from_rfc3339),
        Some(_) => Err(wrong(name, "is none of s, ms, rfc3339")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(signed: &str, timestamp: Option<&str>) -> Options {
        Options {
            header: "x-signature".into(),
            algorithm: MacAlgorithm::HmacSha256,
            encoding: Encoding::Hex,
            prefix: String::new(),
            separator: None,
            signed: template::parse(signed).unwrap(),
            timestamp: timestamp.map(|text| Locator::parse(text).unwrap()),
            timestamp_unit: time::from_seconds,
            id: None,
            event_type: None,
            ordering_key: None,
            sequence: None,
            occurred_at: None,
            occurred_at_unit: time::from_seconds,
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

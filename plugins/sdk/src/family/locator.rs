//! Where a value of the delivery is: `header:X-Id`, `json:/a/b`, `query:x`, `form:x`, `signature:t`,
//! `element:1`, `claim:/a`.
//!
//! Reads one value as text. Knows nothing of what the value means or which option asked for it.

use crate::{Elements, Json, Rejection, delivery};

/// The place of one value.
#[derive(Debug, PartialEq, Eq)]
pub enum Locator {
    /// A header's name.
    Header(String),
    /// An RFC 6901 pointer into the body.
    Json(String),
    /// The name of a parameter of the query.
    Query(String),
    /// The name of a field of a form-encoded body.
    Form(String),
    /// The name of a `name=value` element of the signature's header.
    Signature(String),
    /// The place of an element of the signature's header, from 1.
    Element(usize),
    /// An RFC 6901 pointer into the token's claims.
    Claim(String),
}

/// What values are read from beside the delivery itself.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The elements of the signature's header.
    pub elements: Elements<'a>,
    /// The token's claims.
    pub claims: Option<&'a Json>,
}

impl Given<'_> {
    /// Neither.
    pub fn nothing() -> Self {
        Self {
            elements: Elements::single(""),
            claims: None,
        }
    }
}

impl Locator {
    /// Reads `kind:name`.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (kind, name) = text.split_once(':').ok_or("is not `kind:name`")?;
        if name.is_empty() {
            return Err("has no name after the colon");
        }
        match kind {
            "header" => Ok(Self::Header(name.into())),
            "json" | "claim" if !name.starts_with('/') => {
                Err("has a JSON pointer that does not begin with /")
            }
            "json" => Ok(Self::Json(name.into())),
            "claim" => Ok(Self::Claim(name.into())),
            "query" => Ok(Self::Query(name.into())),
            "form" => Ok(Self::Form(name.into())),
            "signature" => Ok(Self::Signature(name.into())),
            "element" => match name.parse() {
                Ok(place) if place > 0 => Ok(Self::Element(place)),
                _ => Err("has no place after the colon, counted from 1"),
            },
            _ => Err("is none of header:, json:, query:, form:, signature:, element:, claim:"),
        }
    }

    /// Whether it is in the signature's header.
    pub fn is_in_signature(&self) -> bool {
        matches!(self, Self::Signature(_) | Self::Element(_))
    }

    /// The value in this delivery; never empty.
    ///
    /// # Errors
    ///
    /// Malformed where two values differ, or the value is no text.
    pub fn find(&self, given: Given<'_>) -> Result<Option<String>, Rejection> {
        let found = match self {
            Self::Header(name) => delivery::header(name),
            Self::Json(pointer) => Json::Body.text(pointer),
            Self::Query(name) => delivery::query(name),
            Self::Form(name) => delivery::form(name),
            Self::Claim(pointer) => given.claims.map_or(Ok(None), |claims| claims.text(pointer)),
            Self::Element(place) => Ok(given.elements.iter().nth(place - 1).map(String::from)),
            Self::Signature(name) => match given.elements.value(name) {
                Ok(value) => Ok(value.map(String::from)),
                Err(_) => Err(Rejection::malformed(
                    "signature header: two different values of one name",
                )),
            },
        }?;
        Ok(found.filter(|text| !text.is_empty()))
    }

    /// The value, which the signature needs.
    ///
    /// What is absent refuses the delivery: empty in its place, it would let a sender shift bytes of
    /// the signed content from one field into the next.
    ///
    /// # Errors
    ///
    /// Missing signature or malformed where it is absent, and as for [`Locator::find`].
    pub fn require(&self, given: Given<'_>) -> Result<String, Rejection> {
        self.find(given)?.ok_or_else(|| match self {
            Self::Header(name) => {
                Rejection::missing_signature(["header ", name, ": absent"].concat())
            }
            Self::Signature(name) => {
                Rejection::missing_signature(["signature header: no ", name].concat())
            }
            Self::Element(_) => Rejection::missing_signature("signature header: too few elements"),
            Self::Json(name) | Self::Query(name) | Self::Form(name) | Self::Claim(name) => {
                Rejection::malformed([name, ": absent"].concat())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read() {
        let cases = [
            ("header:X-Id", Locator::Header("X-Id".into())),
            ("json:/a/b:c", Locator::Json("/a/b:c".into())),
            ("query:x", Locator::Query("x".into())),
            ("form:x", Locator::Form("x".into())),
            ("signature:t", Locator::Signature("t".into())),
            ("element:2", Locator::Element(2)),
            ("claim:/jti", Locator::Claim("/jti".into())),
        ];
        for (text, locator) in cases {
            assert_eq!(Locator::parse(text), Ok(locator));
        }
    }

    #[test]
    fn what_is_no_locator_is_refused() {
        for text in [
            "",
            "X-Id",
            "header:",
            "cookie:x",
            "json:a",
            "json:",
            "Header:x",
            "element:0",
            "element:x",
            "claim:jti",
        ] {
            assert!(Locator::parse(text).is_err(), "{text:?}");
        }
    }
}

//! Where a value of the delivery is: `header:X-Id`, `json:/a/b`, `query:x`, `form:x`, `signature:t`.
//!
//! Reads one value as text. Knows nothing of what the value means or which option asked for it.

use hookgate_sdk::{Elements, Json, Rejection, delivery};

/// The place of one value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Locator {
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
}

impl Locator {
    /// Reads `kind:name`. The error says what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (kind, name) = text.split_once(':').ok_or("is not `kind:name`")?;
        if name.is_empty() {
            return Err("has no name after the colon");
        }
        match kind {
            "header" => Ok(Self::Header(name.into())),
            "json" if !name.starts_with('/') => {
                Err("has a JSON pointer that does not begin with /")
            }
            "json" => Ok(Self::Json(name.into())),
            "query" => Ok(Self::Query(name.into())),
            "form" => Ok(Self::Form(name.into())),
            "signature" => Ok(Self::Signature(name.into())),
            _ => Err("is none of header:, json:, query:, form:, signature:"),
        }
    }

    /// The value in this delivery, whose signature header has these elements; never empty.
    pub(crate) fn find(&self, signature: Elements<'_>) -> Result<Option<String>, Rejection> {
        let found = match self {
            Self::Header(name) => delivery::header(name),
            Self::Json(pointer) => Json::Body.text(pointer),
            Self::Query(name) => delivery::query(name),
            Self::Form(name) => delivery::form(name),
            Self::Signature(name) => match signature.value(name) {
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
    pub(crate) fn require(&self, signature: Elements<'_>) -> Result<String, Rejection> {
        self.find(signature)?.ok_or_else(|| match self {
            Self::Header(name) => {
                Rejection::missing_signature(["header ", name, ": absent"].concat())
            }
            Self::Signature(name) => {
                Rejection::missing_signature(["signature header: no ", name].concat())
            }
            Self::Json(name) | Self::Query(name) | Self::Form(name) => {
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
        ];
        for (text, locator) in cases {
            assert_eq!(Locator::parse(text), Ok(locator));
        }
    }

    #[test]
    fn what_is_no_locator_is_refused() {
        for text in [
            "", "X-Id", "header:", "cookie:x", "json:a", "json:", "Header:x",
        ] {
            assert!(Locator::parse(text).is_err(), "{text:?}");
        }
    }
}

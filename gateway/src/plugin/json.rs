//! A JSON pointer lookup that walks the document once and keeps nothing of it but the value found.
//!
//! The document is read to its end: malformed text behind the value, or a second key of the same name on the
//! path, must not go unnoticed, since another reader could see another value.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a pointer found. Text has its escapes resolved; numbers and containers are their source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A number as it is written: `100.50` is not `100.5`, and ids are larger than a double's 53 bits.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    /// `null`.
    Null,
    /// An object or array.
    Raw(String),
}

/// Why a lookup has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupError {
    /// The document is not one JSON value.
    Malformed,
    /// A key on the path stands twice in its object.
    DuplicateKey,
    /// The pointer is not RFC 6901.
    BadPointer,
}

/// The value in the document that the RFC 6901 pointer names.
pub fn lookup(document: &[u8], pointer: &str) -> Result<Option<Value>, LookupError> {
    let path = parse_pointer(pointer).ok_or(LookupError::BadPointer)?;
    let mut from = serde_json::Deserializer::from_slice(document);
    let mut duplicate = false;
    let found = Walk {
        path: &path,
        duplicate: &mut duplicate,
    }
    .deserialize(&mut from);
    if duplicate {
        return Err(LookupError::DuplicateKey);
    }
    let found = found.and_then(|found| from.end().map(|()| found));
    let raw = found.map_err(|_| LookupError::Malformed)?;
    raw.map(|raw| value(raw.get())).transpose()
}

fn parse_pointer(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    pointer
        .strip_prefix('/')?
        .split('/')
        .map(unescape)
        .collect()
}

/// `~1` is `/` and `~0` is `~`; any other `~` is an error.
fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        out.push(match part.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        });
        out.push_str(&part[1..]);
    }
    Some(out)
}

fn value(raw: &str) -> Result<Value, LookupError> {
    Ok(match raw.as_bytes().first() {
        Some(b'"') => Value::Text(serde_json::from_str(raw).map_err(|_| LookupError::Malformed)?),
        Some(b'{' | b'[') => Value::Raw(raw.to_owned()),
        Some(b't' | b'f') => Value::Boolean(raw == "true"),
        Some(b'n') => Value::Null,
        _ => Value::Number(raw.to_owned()),
    })
}

struct Walk<'a> {
    path: &'a [String],
    duplicate: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if self.path.is_empty() {
            serde::Deserialize::deserialize(from).map(Some)
        } else {
            from.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut seen) = (None, false);
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key != self.path[0] {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if std::mem::replace(&mut seen, true) {
                *self.duplicate = true;
                return Err(A::Error::custom("duplicate key"));
            }
            found = map.next_value_seed(Walk {
                path: &self.path[1..],
                duplicate: self.duplicate,
            })?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        // An index has no leading zero (RFC 6901, 4).
        let wanted = Some(&self.path[0]).filter(|token| *token == "0" || !token.starts_with('0'));
        let wanted = wanted.and_then(|token| token.parse::<usize>().ok());
        let mut found = None;
        for index in 0.. {
            if Some(index) == wanted {
                let walk = Walk {
                    path: &self.path[1..],
                    duplicate: self.duplicate,
                };
                match seq.next_element_seed(walk)? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unnecessary_wraps, reason = "what a lookup is compared with")]
    fn text(value: &str) -> Result<Option<Value>, LookupError> {
        Ok(Some(Value::Text(value.into())))
    }

    #[test]
    fn pointers_find_strings_numbers_and_containers_as_written() {
        let document = br#"{"a":{"b":["x",{"c~/d":"\u00e9"}]},"n":100.50,"big":9007199254740993,
            "t":true,"z":null,"o":{"k": [1, 2]}}"#;
        assert_eq!(lookup(document, "/a/b/0"), text("x"));
        assert_eq!(lookup(document, "/a/b/1/c~0~1d"), text("é"));
        assert_eq!(
            lookup(document, "/n"),
            Ok(Some(Value::Number("100.50".into())))
        );
        assert_eq!(
            lookup(document, "/big"),
            Ok(Some(Value::Number("9007199254740993".into())))
        );
        assert_eq!(lookup(document, "/t"), Ok(Some(Value::Boolean(true))));
        assert_eq!(lookup(document, "/z"), Ok(Some(Value::Null)));
        assert_eq!(
            lookup(document, "/o"),
            Ok(Some(Value::Raw(r#"{"k": [1, 2]}"#.into())))
        );
        assert_eq!(lookup(b"\"x\"", ""), text("x"));
    }

    #[test]
    fn what_is_not_there_is_none_whatever_stands_in_the_way() {
        let document = br#"{"a":1,"b":"s","c":[1],"d":true,"e":null,"f":-1.5}"#;
        for pointer in [
            "/x", "/a/x", "/b/x", "/c/1", "/c/00", "/c/-", "/c/x", "/d/x", "/e/x", "/f/x", "/",
        ] {
            assert_eq!(lookup(document, pointer), Ok(None), "{pointer}");
        }
    }

    #[test]
    fn a_duplicate_key_on_the_path_is_an_error_and_elsewhere_is_not() {
        let document = br#"{"a":{"id":1,"id":2},"b":{"id":1}}"#;
        assert_eq!(lookup(document, "/a/id"), Err(LookupError::DuplicateKey));
        assert_eq!(
            lookup(document, "/b/id"),
            Ok(Some(Value::Number("1".into())))
        );
        assert_eq!(
            lookup(br#"{"a":1,"\u0061":2}"#, "/a"),
            Err(LookupError::DuplicateKey)
        );
    }

    #[test]
    fn malformed_text_before_or_behind_the_value_is_an_error() {
        for document in [
            "",
            "{",
            r#"{"a":1"#,
            r#"{"a":1}x"#,
            r#"{"a":1,}"#,
            "{\"a\":\"\u{1}\"}",
            "[1",
        ] {
            assert_eq!(
                lookup(document.as_bytes(), "/a"),
                Err(LookupError::Malformed),
                "{document}"
            );
        }
        assert_eq!(
            lookup(b"{\"a\":\"\xff\"}", "/a"),
            Err(LookupError::Malformed)
        );
        let deep = "[".repeat(100_000);
        assert_eq!(lookup(deep.as_bytes(), "/0/0"), Err(LookupError::Malformed));
    }

    #[test]
    fn pointers_that_are_not_rfc_6901_are_refused() {
        for pointer in ["a", "/~", "/~2", "/a~"] {
            assert_eq!(
                lookup(b"{}", pointer),
                Err(LookupError::BadPointer),
                "{pointer}"
            );
        }
    }
}

//! JSON pointer lookups that walk the document once, however many they are, and keep nothing of it but the
//! values found.
//!
//! The document is read to its end: malformed text behind a value, or a second key of the same name on its
//! path, must not go unnoticed, since another reader could see another value. What one pointer finds in a
//! document does not depend on the others; which error a malformed one is may.

use std::fmt;

use serde::Deserialize as _;
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

/// What a pointer finds: a value, nothing, or no answer.
pub type Looked = Result<Option<Value>, LookupError>;

/// The values in the document that the RFC 6901 pointers name, in one pass.
pub fn lookup(document: &[u8], pointers: &[impl AsRef<str>]) -> Vec<Looked> {
    let pointers = pointers.iter().map(|at| -> &str { at.as_ref() });
    let wanted = pointers.clone().enumerate();
    let mut found: Vec<_> = pointers.map(|_| Found::Nothing).collect();
    let (good, bad): (Vec<_>, _) = wanted.partition(|(_, pointer)| is_pointer(pointer));
    for (pointer, _) in bad {
        found[pointer] = Found::BadPointer;
    }
    let walk = Walk {
        wanted: good,
        found: &mut found,
    };
    let mut from = serde_json::Deserializer::from_slice(document);
    let walked = walk.deserialize(&mut from).and_then(|()| from.end());
    let answer = |found| match found {
        Found::BadPointer => Err(LookupError::BadPointer),
        Found::Twice => Err(LookupError::DuplicateKey),
        _ if walked.is_err() => Err(LookupError::Malformed),
        Found::Nothing => Ok(None),
        Found::Raw(raw) => value(raw.get()).map(Some),
    };
    found.into_iter().map(answer).collect()
}

/// Whether it is empty or begins with `/`, and each `~` in it is `~0` or `~1`.
fn is_pointer(pointer: &str) -> bool {
    let mut behind_tildes = pointer.split('~').skip(1);
    (pointer.is_empty() || pointer.starts_with('/'))
        && behind_tildes.all(|part| part.starts_with(['0', '1']))
}

/// The first token of a path that is not at its end.
fn token(path: &str) -> &str {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').next().unwrap_or_default()
}

/// The path behind its first token.
fn behind(path: &str) -> &str {
    &path[1 + token(path).len()..]
}

/// Whether a token names a key: `~1` is `/` and `~0` is `~`.
fn is_key(token: &str, key: &str) -> bool {
    if token.contains('~') {
        token.replace("~1", "/").replace("~0", "~") == key
    } else {
        token == key
    }
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

/// What is known of a pointer's value.
#[derive(Clone, Copy)]
enum Found<'de> {
    Nothing,
    Raw(&'de RawValue),
    BadPointer,
    /// A key on the path stands twice in its object.
    Twice,
}

/// A walk into a value, for those pointers that lead through it or to it.
struct Walk<'w, 'de> {
    /// Which pointer, and what is left of its path.
    wanted: Vec<(usize, &'w str)>,
    /// By pointer.
    found: &'w mut [Found<'de>],
}

impl<'w, 'de> Walk<'w, 'de> {
    /// The walk into an element, for the pointers whose next token names it.
    fn behind(&mut self, wanted: Vec<(usize, &'w str)>) -> Walk<'_, 'de> {
        let rests = wanted
            .into_iter()
            .map(|(pointer, path)| (pointer, behind(path)));
        Walk {
            wanted: rests.collect(),
            found: self.found,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(mut self, from: D) -> Result<(), D::Error> {
        if self.wanted.iter().all(|(_, path)| !path.is_empty()) {
            return from.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(from)?;
        for (pointer, _) in self.wanted.iter().filter(|(_, path)| path.is_empty()) {
            self.found[*pointer] = Found::Raw(raw);
        }
        // Others lead on into what these end at.
        self.wanted.retain(|(_, path)| !path.is_empty());
        if self.wanted.is_empty() {
            return Ok(());
        }
        let mut within = serde_json::Deserializer::from_str(raw.get());
        self.deserialize(&mut within).map_err(D::Error::custom)
    }
}

/// Which of the paths begin with a key. Compared where it stands, since nearly all keys are nobody's.
struct Key<'k, 'w>(&'k [(usize, &'w str)]);

impl<'de, 'w> DeserializeSeed<'de> for Key<'_, 'w> {
    type Value = Vec<(usize, &'w str)>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'w> Visitor<'_> for Key<'_, 'w> {
    type Value = Vec<(usize, &'w str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let leading = self.0.iter();
        let leading = leading.filter(|(_, path)| is_key(token(path), key));
        Ok(leading.copied().collect())
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<usize> = Vec::new();
        while let Some(mut leading) = map.next_key_seed(Key(&self.wanted))? {
            leading.retain(|(pointer, _)| {
                let is_second = seen.contains(pointer);
                if is_second {
                    self.found[*pointer] = Found::Twice;
                }
                !is_second
            });
            if leading.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            seen.extend(leading.iter().map(|(pointer, _)| *pointer));
            map.next_value_seed(self.behind(leading))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        for index in 0.. {
            let leading = self
                .wanted
                .iter()
                .filter(|(_, path)| is_index(token(path), index));
            let leading: Vec<_> = leading.copied().collect();
            let element = if leading.is_empty() {
                seq.next_element::<IgnoredAny>()?.map(drop)
            } else {
                seq.next_element_seed(self.behind(leading))?
            };
            if element.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Whether a token names that element: an index has no leading zero (RFC 6901, 4).
fn is_index(token: &str, index: usize) -> bool {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    is_plain && token.parse::<usize>() == Ok(index)
}

#[cfg(test)]
mod tests {
    use super::{lookup as lookup_all, *};

    fn lookup(document: &[u8], pointer: &str) -> Looked {
        lookup_all(document, &[pointer]).remove(0)
    }

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

    #[test]
    fn many_pointers_find_what_each_finds_alone() {
        let pointers = [
            "/a", "/a/b", "/a/b/c", "/d/1/e", "/d/1", "/d/00", "/d/+1", "/n", "/n/x", "", "/0/a",
            "/a/b", "bad", "/~2",
        ];
        for document in [
            r#"{"a":{"b":{"c":1}},"d":["x",{"e":2}],"n":null}"#,
            r#"{"a":{"b":{"c":1},"b":{}},"d":[],"n":1}"#,
            r#"{"a":{"b":1},"a":{"b":{"c":2}},"d":[1,2,3]}"#,
            r#"[{"a":1},{"a":2}]"#,
            r#""text""#,
            "",
        ] {
            let together = lookup_all(document.as_bytes(), &pointers);
            let alone = pointers.map(|pointer| lookup(document.as_bytes(), pointer));
            assert_eq!(together, alone, "{document}");
        }
        let malformed = lookup_all(br#"{"a":{"b":1,"b":2},"d":[1,2"#, &pointers);
        assert!(malformed.iter().all(Result::is_err), "{malformed:?}");
        assert_eq!(lookup_all(b"{}", &[""; 0]), []);
    }
}

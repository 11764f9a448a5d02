//! The delivery, read with the refusals that every provider needs.
//!
//! A value that two readers could read differently (a header or a parameter with two values, a JSON
//! object with a key twice) refuses the delivery. Only what is asked for is copied out of the host.

use crate::bindings::hookgate::provider::delivery as host;
use crate::bindings::hookgate::provider::types::{JsonError, JsonValue, Pair, Rejection};
use crate::elements::same;
use crate::list;

pub use host::{body, body_length, external_url, method, now, target};
pub use host::{form as form_pairs, headers as header_values, query as query_pairs};

/// The one value of a header, spaces around it cut. None where the header is absent or empty.
///
/// # Errors
///
/// Malformed where two values differ, or the value is not UTF-8.
pub fn header(name: &str) -> Result<Option<String>, Rejection> {
    let values = host::headers(name);
    let Ok(value) = same(values.into_iter()) else {
        return Err(malformed(&["header ", name, ": two different values"]));
    };
    value
        .map(|value| text_of(&value, name))
        .transpose()
        .map(Option::flatten)
}

/// The one value of the signature's header.
///
/// # Errors
///
/// Missing signature where it is absent or empty; malformed as for [`header`].
pub fn signature_header(name: &str) -> Result<String, Rejection> {
    header(name)?
        .ok_or_else(|| Rejection::missing_signature(["header ", name, ": absent"].concat()))
}

/// The one value of a parameter of the query, decoded.
///
/// # Errors
///
/// Malformed where two values differ, or the value is not UTF-8.
pub fn query(name: &str) -> Result<Option<String>, Rejection> {
    parameter(host::query(), name)
}

/// The one value of a field of a form-encoded body, decoded.
///
/// # Errors
///
/// Malformed where two values differ, or the value is not UTF-8.
pub fn form(name: &str) -> Result<Option<String>, Rejection> {
    parameter(host::form(), name)
}

/// The URL that the provider called, which its scheme signs.
///
/// # Errors
///
/// Malformed where the source has no `public_url`: only the operator knows how the outside calls it.
pub fn called_url() -> Result<String, Rejection> {
    external_url().ok_or_else(|| {
        malformed(&["configuration: public_url is required, since the URL is signed"])
    })
}

/// All of the body. Only for bodies that are read as a whole, such as a token.
pub fn whole_body() -> Vec<u8> {
    body(0, body_length())
}

/// Whether the body's content type is this one, whatever its case and parameters.
pub fn has_content_type(media_type: &str) -> bool {
    let Some(found) = host::header("content-type") else {
        return false;
    };
    let essence = found.split(';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(media_type)
}

/// A JSON document, looked into by the host.
pub enum Json {
    /// The body.
    Body,
    /// Another text, such as a form field's value.
    Text(String),
}

impl Json {
    /// The value at an RFC 6901 pointer as it is; an object or an array as its source text.
    ///
    /// # Errors
    ///
    /// The document is not JSON, an object on the path has the key twice, or the pointer is not one.
    pub fn value(&self, pointer: &str) -> Result<Option<JsonValue>, JsonError> {
        match self {
            Json::Body => host::json(pointer),
            Json::Text(document) => host::json_in(document.as_bytes(), pointer),
        }
    }

    /// What each of the pointers finds, as [`Json::value`] finds it, in one pass over the document.
    pub fn values<const N: usize>(&self, pointers: [&str; N]) -> [Looked; N] {
        let pointers = pointers.map(String::from);
        let found = match self {
            Json::Body => host::json_all(&pointers),
            Json::Text(document) => host::json_all_in(document.as_bytes(), &pointers),
        };
        let mut found = found.into_iter();
        [(); N].map(|()| found.next().unwrap_or(Ok(None)))
    }

    /// The string, number or boolean at an RFC 6901 pointer, as text; a number as the source spells it.
    ///
    /// None where there is nothing, `null`, or no JSON document at all: an authentic delivery that is
    /// not JSON merely lacks the value.
    ///
    /// # Errors
    ///
    /// Malformed where an object on the path has the key twice, the value is an object or an array, or
    /// the pointer is not one.
    pub fn text(&self, pointer: &str) -> Result<Option<String>, Rejection> {
        scalar(pointer, self.value(pointer))
    }

    /// What each of the pointers finds, as [`Json::text`] finds it, in one pass over the document. An error
    /// of one is no error of the others: one that is not asked for costs no delivery.
    pub fn texts<const N: usize>(
        &self,
        pointers: [&str; N],
    ) -> [Result<Option<String>, Rejection>; N] {
        let mut names = pointers.into_iter();
        let found = self.values(pointers);
        found.map(|found| scalar(names.next().unwrap_or_default(), found))
    }

    /// The first of the pointers that finds a value, as [`Json::text`] finds it.
    ///
    /// # Errors
    ///
    /// As for [`Json::text`].
    pub fn first_text(&self, pointers: &[&str]) -> Result<Option<String>, Rejection> {
        for pointer in pointers {
            if let Some(text) = self.text(pointer)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// The first of the pointers that finds a string or a number. Passes over whatever else is there: a
    /// place that holds an object in some events and its id in others costs no delivery.
    ///
    /// # Errors
    ///
    /// Malformed where an object on a path has the key twice, or a pointer is not one.
    pub fn first_scalar(&self, pointers: &[&str]) -> Result<Option<String>, Rejection> {
        for pointer in pointers {
            match self.value(pointer) {
                Ok(Some(JsonValue::Text(text) | JsonValue::Number(text))) => {
                    return Ok(Some(text));
                }
                Ok(_) | Err(JsonError::Malformed) => {}
                Err(_) => {
                    return Err(malformed(&[
                        "json ",
                        pointer,
                        ": duplicate key or no pointer",
                    ]));
                }
            }
        }
        Ok(None)
    }

    /// The objects of the list at the pointer, in their order; none where there is no list, or one without
    /// elements. Costs one pass over the document, however many they are.
    ///
    /// # Errors
    ///
    /// Malformed where the document is not JSON, there is something else than a list, or an element is no object.
    pub fn objects(&self, pointer: &str) -> Result<Vec<Json>, Rejection> {
        let raw = match self.value(pointer) {
            Ok(Some(JsonValue::Raw(raw))) => raw,
            Ok(None | Some(JsonValue::Null)) => return Ok(Vec::new()),
            Ok(Some(_)) => return Err(malformed(&["json ", pointer, ": not a list"])),
            Err(JsonError::Malformed) => return Err(malformed(&["the body is not JSON"])),
            Err(_) => return Err(malformed(&["json ", pointer, ": duplicate key"])),
        };
        let elements =
            list::elements(&raw).ok_or_else(|| malformed(&["json ", pointer, ": not a list"]))?;
        let object = |element: &str| {
            let is_object = element.as_bytes().first() == Some(&b'{');
            is_object.then(|| Json::Text(element.into()))
        };
        let objects: Option<_> = elements.into_iter().map(object).collect();
        objects.ok_or_else(|| malformed(&["json ", pointer, ": an element is no object"]))
    }

    /// The string or number in a field of a list's only element, where `list` is the list's pointer. None where
    /// the list has several (what is true of the first is not true of the batch), or something else is there.
    ///
    /// # Errors
    ///
    /// As for [`Json::first_scalar`].
    pub fn only_text(&self, list: &str, field: &str) -> Result<Option<String>, Rejection> {
        let second = self.value(&[list, "/1"].concat());
        if matches!(second, Ok(Some(_))) {
            return Ok(None);
        }
        self.first_scalar(&[&[list, "/0", field].concat()])
    }

    /// The value at the pointer, which every delivery of this provider has.
    ///
    /// # Errors
    ///
    /// Malformed where it is absent, and as for [`Json::text`].
    pub fn required_text(&self, pointer: &str) -> Result<String, Rejection> {
        self.text(pointer)?
            .ok_or_else(|| malformed(&["json ", pointer, ": absent"]))
    }
}

/// What a pointer found.
pub type Looked = Result<Option<JsonValue>, JsonError>;

fn scalar(pointer: &str, found: Looked) -> Result<Option<String>, Rejection> {
    match found {
        Ok(None | Some(JsonValue::Null)) | Err(JsonError::Malformed) => Ok(None),
        Ok(Some(JsonValue::Text(text) | JsonValue::Number(text))) => Ok(Some(text)),
        Ok(Some(JsonValue::Boolean(value))) => {
            Ok(Some(if value { "true" } else { "false" }.into()))
        }
        Ok(Some(JsonValue::Raw(_))) => Err(malformed(&["json ", pointer, ": not a scalar"])),
        Err(JsonError::DuplicateKey) => Err(malformed(&["json ", pointer, ": duplicate key"])),
        Err(JsonError::BadPointer) => Err(malformed(&["json ", pointer, ": not a pointer"])),
    }
}

fn parameter(pairs: Vec<Pair>, name: &str) -> Result<Option<String>, Rejection> {
    let values = pairs
        .into_iter()
        .filter(|pair| pair.name == name.as_bytes());
    match same(values.map(|pair| pair.value)) {
        Ok(value) => value
            .map(|value| text_of(&value, name))
            .transpose()
            .map(Option::flatten),
        Err(_) => Err(malformed(&["parameter ", name, ": two different values"])),
    }
}

fn text_of(value: &[u8], name: &str) -> Result<Option<String>, Rejection> {
    match core::str::from_utf8(value) {
        Ok(text) => Ok(Some(text.trim_ascii())
            .filter(|text| !text.is_empty())
            .map(String::from)),
        Err(_) => Err(malformed(&[name, ": not UTF-8"])),
    }
}

fn malformed(parts: &[&str]) -> Rejection {
    Rejection::malformed(parts.concat())
}

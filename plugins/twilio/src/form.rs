//! The parameters of a request, and what of them is signed.
//!
//! Twilio sorts by key alone, then by value, and counts equal pairs once; sorting key and value as one text
//! would differ where one key begins with another. Decoded, and bytes all along.

use hookgate_sdk::{Pair, delivery, pairs};

/// The parameters, sorted, equal ones once.
pub(crate) struct Form {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    is_body: bool,
}

impl Form {
    /// Those of the body; none where it is no form.
    pub(crate) fn read() -> Self {
        let is_body = delivery::has_content_type("application/x-www-form-urlencoded");
        let pairs = if is_body {
            delivery::form_pairs()
        } else {
            Vec::new()
        };
        Self {
            pairs: sorted(pairs),
            is_body,
        }
    }

    /// Those of the query.
    pub(crate) fn of_query() -> Self {
        Self {
            pairs: sorted(delivery::query_pairs()),
            is_body: false,
        }
    }

    /// Whether the body is a form, so that all of it is signed.
    pub(crate) fn is_body(&self) -> bool {
        self.is_body
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// What is signed behind the URL: keys and values, one behind the other.
    pub(crate) fn signed(&self) -> Vec<u8> {
        let mut signed = Vec::new();
        for (key, value) in &self.pairs {
            signed.extend_from_slice(key);
            signed.extend_from_slice(value);
        }
        signed
    }

    /// The first of these parameters that is there, is text and is not empty.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| {
            let found = self.pairs.iter().find(|(name, _)| name == key.as_bytes());
            let value = core::str::from_utf8(&found?.1).ok()?;
            Some(value).filter(|value| !value.is_empty())
        })
    }
}

fn sorted(pairs: Vec<Pair>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = pairs::sorted(pairs);
    pairs.dedup();
    pairs
}

//! Signature headers that are lists: `t=1,v1=ab,v1=cd`, `ts=1;h1=ab`, `v1,ab v1,cd`.
//!
//! Spaces around elements never count, empty elements are skipped and unknown ones left to the reader:
//! proxies join and re-space headers, and providers add versions. Knows nothing of what is in them.

/// A list in a header's value.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    text: &'a str,
    separator: Option<u8>,
}

impl<'a> Elements<'a> {
    /// The elements of `text` between the separators, each one ASCII character.
    pub fn new(text: &'a str, separator: u8) -> Self {
        Self {
            text,
            separator: Some(separator),
        }
    }

    /// All of `text` as the one element.
    pub fn single(text: &'a str) -> Self {
        Self {
            text,
            separator: None,
        }
    }

    /// All elements that are not empty, trimmed, in their order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut rest = Some(self.text);
        let elements = core::iter::from_fn(move || {
            let text = rest?;
            let cut = self
                .separator
                .and_then(|separator| split_once(text, separator));
            rest = cut.map(|(_, after)| after);
            Some(cut.map_or(text, |(before, _)| before))
        });
        elements
            .map(str::trim_ascii)
            .filter(|element| !element.is_empty())
    }

    /// What follows `prefix` in the elements that begin with it, such as `v1=`; never empty.
    pub fn with_prefix(self, prefix: &str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter_map(move |element| element.strip_prefix(prefix))
            .map(str::trim_ascii_start)
            .filter(|rest| !rest.is_empty())
    }

    /// The values of the elements `name=value`, spaces around the `=` allowed; never empty.
    pub fn values(self, name: &str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter_map(|element| split_once(element, b'='))
            .filter(move |(found, _)| found.trim_ascii_end() == name)
            .map(|(_, value)| value.trim_ascii_start())
            .filter(|value| !value.is_empty())
    }

    /// The one value of `name`; none where there is none.
    ///
    /// # Errors
    ///
    /// Ambiguous where two differ.
    pub fn value(self, name: &str) -> Result<Option<&'a str>, Ambiguous> {
        same(self.values(name))
    }
}

/// Two different values where one was expected: two readers could see two different deliveries.
#[derive(Debug, PartialEq, Eq)]
pub struct Ambiguous;

/// The one value of all that `values` yields.
pub(crate) fn same<T: PartialEq>(
    mut values: impl Iterator<Item = T>,
) -> Result<Option<T>, Ambiguous> {
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.all(|value| value == first) {
        Ok(Some(first))
    } else {
        Err(Ambiguous)
    }
}

/// Cuts at the first byte like this one. Over bytes, since `str` searches cost modules kilobytes.
fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == separator)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signatures(text: &str) -> Vec<&str> {
        Elements::new(text, b',').values("v1").collect()
    }

    #[test]
    fn every_signature_is_found_whatever_the_spacing() {
        for text in [
            "t=1,v1=a,v1=b",
            " t=1 , v1=a ,\tv1 = b ",
            "v1=a,v0=x,v1=b,t=1",
            ",v1=a,,v1=b,",
        ] {
            assert_eq!(signatures(text), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn a_value_keeps_its_equals_signs() {
        assert_eq!(signatures("v1=ab=="), ["ab=="]);
    }

    #[test]
    fn malformed_lists_have_no_signatures() {
        for text in ["", "t", "t,v1=,v0", ",,", "t=", "t,,", "v1", "v10=a", "=a"] {
            assert!(signatures(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn equal_values_are_one_and_different_ones_an_error() {
        assert_eq!(Elements::new("t=1,t=1", b',').value("t"), Ok(Some("1")));
        assert_eq!(Elements::new("t=1,t=2", b',').value("t"), Err(Ambiguous));
        assert_eq!(Elements::new("v1=a", b',').value("t"), Ok(None));
    }

    #[test]
    fn a_prefix_may_end_in_the_separator_of_other_lists() {
        let found: Vec<_> = Elements::new("v1,a= v2,b v1,c", b' ')
            .with_prefix("v1,")
            .collect();
        assert_eq!(found, ["a=", "c"]);
    }

    #[test]
    fn without_a_separator_all_is_one_element() {
        let found: Vec<_> = Elements::single(" sha256=a,b ")
            .with_prefix("sha256=")
            .collect();
        assert_eq!(found, ["a,b"]);
    }
}

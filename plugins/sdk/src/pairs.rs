//! Names and values of a query or a form, in the order that schemes sign them in.

use crate::bindings::hookgate::provider::types::Pair;

/// A decoded name and its value.
pub type NameValue = (Vec<u8>, Vec<u8>);

/// The pairs, sorted bytewise by name and then by value, equal ones kept.
pub fn sorted(pairs: Vec<Pair>) -> Vec<NameValue> {
    let mut pairs: Vec<_> = pairs
        .into_iter()
        .map(|pair| (pair.name, pair.value))
        .collect();
    // Insertion: the library's sort would be most of the module.
    for end in 1..pairs.len() {
        let mut at = end;
        while at > 0 && pairs.get(at) < pairs.get(at - 1) {
            pairs.swap(at, at - 1);
            at -= 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_before_values() {
        let pair = |name: &str, value: &str| Pair {
            name: name.into(),
            value: value.into(),
        };
        let pairs = vec![
            pair("ab", "a"),
            pair("a", "c"),
            pair("a", "b"),
            pair("a", "b"),
        ];
        let text = |pair: &NameValue| {
            let (name, value) = pair;
            [name.as_slice(), b"=", value].concat()
        };
        let sorted: Vec<_> = sorted(pairs).iter().map(text).collect();
        assert_eq!(sorted, [b"a=b".as_slice(), b"a=b", b"a=c", b"ab=a"]);
    }
}

//! The elements of a JSON list, cut out of its source text.
//!
//! For batches: one pass over the list, where a pointer for each element would have the host read all of the
//! document for each. The text comes from the host, so that it is one JSON value is known.

/// The source texts of the elements of a list; none where the text is no list.
pub(crate) fn elements(list: &str) -> Option<Vec<&str>> {
    let inner = list.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
    let mut elements = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    let mut within_text = false;
    let mut bytes = inner.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => within_text = !within_text,
            b'\\' if within_text => _ = bytes.next(),
            _ if within_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                elements.push(inner.get(start..at)?.trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
    }
    let rest = inner.get(start..)?.trim_ascii();
    if !rest.is_empty() {
        elements.push(rest);
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn elements_end_at_their_own_commas() {
        let cases: [(&str, &[&str]); 6] = [
            ("[]", &[]),
            ("[ ]", &[]),
            ("[1]", &["1"]),
            (" [ 1 , \"a,b\", null ] ", &["1", "\"a,b\"", "null"]),
            (
                r#"[{"a":[1,2],"b":"]},"},[{},[]]]"#,
                &[r#"{"a":[1,2],"b":"]},"}"#, "[{},[]]"],
            ),
            (
                r#"["\\",",\"","\\\"],"]"#,
                &[r#""\\""#, r#"",\"""#, r#""\\\"],""#],
            ),
        ];
        for (list, expected) in cases {
            assert_eq!(elements(list).unwrap(), expected, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_has_no_elements() {
        for text in ["", "{}", "null", "[", "1]"] {
            assert_eq!(elements(text), None, "{text}");
        }
    }
}

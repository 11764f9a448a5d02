//! Path and query as Contentful signs them: escaped once more.

/// The path with what may not stand in a URI escaped, and the query with all but the plainest characters escaped,
/// and the escapes' percent signs again.
pub(crate) fn normalised(target: &str) -> String {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, query),
        None => (target, ""),
    };
    let path = escaped(path, b"-_.!~*'();,/?:@&=+$#");
    if query.is_empty() {
        return path;
    }
    let query = escaped(query, b"-_.!~*'()");
    [path.as_str(), "?", &escaped(&query, b"-_.!~*'()")].concat()
}

fn escaped(text: &str, kept: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            for digit in [byte >> 4, byte & 15] {
                escaped
                    .extend(char::from_digit(u32::from(digit), 16).map(|d| d.to_ascii_uppercase()));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn the_query_is_escaped_twice() {
        assert_eq!(normalised("/a/b-c"), "/a/b-c");
        assert_eq!(normalised("/a?"), "/a");
        assert_eq!(normalised("/a%20b?c=d"), "/a%2520b?c%253Dd");
        assert_eq!(normalised("/a?b=%C3&c"), "/a?b%253D%2525C3%2526c");
    }
}

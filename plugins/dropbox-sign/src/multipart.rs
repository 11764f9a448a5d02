//! One field of a `multipart/form-data` body (RFC 7578), found without decoding the rest.

/// The one field of that name as text; none where there is none or two, or the body is malformed before it.
pub(crate) fn field(content_type: &str, body: &[u8], name: &str) -> Option<String> {
    let delimiter = [b"\r\n--", boundary(content_type)?.as_bytes()].concat();
    // The first delimiter needs no line break before it.
    let body = [b"\r\n".as_slice(), body].concat();
    let mut rest = behind(&body, &delimiter)?;
    let mut found = None;
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        // Headers end in an empty line, which they may have nothing before.
        let part = [b"\r\n".as_slice(), part].concat();
        let (headers, content) = cut(&part, b"\r\n\r\n")?;
        let (content, _) = cut(content, &delimiter)?;
        if is_named(core::str::from_utf8(headers).ok()?, name) {
            let text = String::from_utf8(content.to_vec()).ok()?;
            if found.replace(text).is_some() {
                return None;
            }
        }
        rest = behind(rest, &delimiter)?;
    }
    found
}

fn boundary(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let boundary = parameters
        .filter_map(|parameter| parameter.trim_ascii().split_once('='))
        .find(|(name, _)| name.eq_ignore_ascii_case("boundary"));
    let (_, value) = boundary?;
    Some(value.trim_matches('"')).filter(|value| !value.is_empty())
}

fn is_named(headers: &str, name: &str) -> bool {
    let disposition = headers.split("\r\n").find_map(|line| {
        let (header, value) = line.split_once(':')?;
        let is_it = header
            .trim_ascii()
            .eq_ignore_ascii_case("content-disposition");
        is_it.then_some(value)
    });
    let parameters = disposition.unwrap_or_default().split(';').skip(1);
    parameters
        .filter_map(|parameter| parameter.trim_ascii().split_once('='))
        .any(|(key, value)| key.eq_ignore_ascii_case("name") && value.trim_matches('"') == name)
}

fn cut<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(at.len()).position(|window| window == at)?;
    Some((bytes.get(..place)?, bytes.get(place + at.len()..)?))
}

fn behind<'a>(bytes: &'a [u8], what: &[u8]) -> Option<&'a [u8]> {
    cut(bytes, what).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::field;

    const TYPE: &str = "multipart/form-data; charset=utf-8; Boundary=\"--b\"";
    const BODY: &[u8] = b"preamble\r\n----b\r\n\r\nnameless\r\n----b\r\nX: y\r\n\
        content-disposition: form-data; name=\"json\"\r\n\r\n{\r\n}\r\n----b--\r\n";

    #[test]
    fn a_field_keeps_its_line_breaks() {
        assert_eq!(field(TYPE, BODY, "json").unwrap(), "{\r\n}");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert_eq!(field(TYPE, BODY, "nameless"), None);
        assert_eq!(field("multipart/form-data", BODY, "json"), None);
        assert_eq!(field(TYPE, b"", "json"), None);
        assert_eq!(field(TYPE, &BODY[..60], "json"), None);
        assert_eq!(field(TYPE, b"----b--\r\n", "json"), None);
    }

    #[test]
    fn a_field_that_is_there_twice_is_not_taken() {
        const PART: &[u8] = b"--x\r\ncontent-disposition: form-data; name=json\r\n\r\n{}\r\n";
        let body = |parts: &[&[u8]]| parts.concat();
        let once = body(&[PART, b"--x--\r\n"]);
        let twice = body(&[PART, PART, b"--x--\r\n"]);
        let content_type = "multipart/form-data; boundary=x";
        assert_eq!(field(content_type, &once, "json").unwrap(), "{}");
        assert_eq!(field(content_type, &twice, "json"), None);
    }
}

//! The URL with its port left out or spelled out. All other bytes stay as they are: no parsing, no
//! normalising, since what was signed is text.

/// The URL without its port where it has one, else with the scheme's own; none where it is no such URL.
pub(crate) fn with_port_changed(url: &str) -> Option<String> {
    let (scheme, port) = [("https://", ":443"), ("http://", ":80")]
        .into_iter()
        .find(|(scheme, _)| url.starts_with(scheme))?;
    let rest = url.as_bytes().get(scheme.len()..)?;
    let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    let authority = rest.iter().position(ends).unwrap_or(rest.len());
    let host = rest.get(..authority)?;
    let after_user = host
        .iter()
        .rposition(|byte| *byte == b'@')
        .map_or(0, |at| at + 1);
    let digits = host
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let colon = host.len().checked_sub(digits + 1);
    let (kept, added) = match colon.filter(|at| *at >= after_user && host.get(*at) == Some(&b':')) {
        Some(colon) => (colon, ""),
        None => (authority, port),
    };
    let before = url.get(..scheme.len() + kept)?;
    let after = url.get(scheme.len() + authority..)?;
    Some([before, added, after].concat())
}

#[cfg(test)]
mod tests {
    use super::with_port_changed;

    #[test]
    fn a_port_is_left_out_and_a_missing_one_spelled_out() {
        let cases = [
            ("https://a.example/b?c=1:2", "https://a.example:443/b?c=1:2"),
            ("http://a.example", "http://a.example:80"),
            ("https://a.example:8443/b", "https://a.example/b"),
            ("https://u:1@a.example/", "https://u:1@a.example:443/"),
            ("https://u:1@a.example:443/", "https://u:1@a.example/"),
            ("https://[::1]/", "https://[::1]:443/"),
            ("https://[::1]:443?x", "https://[::1]?x"),
        ];
        for (url, changed) in cases {
            assert_eq!(with_port_changed(url).as_deref(), Some(changed), "{url}");
        }
        assert_eq!(with_port_changed("ftp://a.example/"), None);
    }
}

//! Which URLs are SNS's own: checked here on their text, and by the host on what it parses them into.

/// Whether it is an `https` URL of `sns.REGION.amazonaws.com` or, in China, `.com.cn`, without user or port.
pub(crate) fn is_of_sns(url: &str) -> bool {
    let Some((host, _)) = url
        .strip_prefix("https://sns.")
        .and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let region = host
        .strip_suffix(".amazonaws.com")
        .or_else(|| host.strip_suffix(".amazonaws.com.cn"));
    let is_region = |region: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        region.len() > 2 && region.bytes().all(known)
    };
    region.is_some_and(is_region)
}

/// Whether it is one of those that certificates are at.
pub(crate) fn is_certificate(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\".contains(&byte);
    is_of_sns(url) && url.as_bytes().ends_with(b".pem") && url.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::{is_certificate, is_of_sns};

    #[test]
    fn only_sns_is_sns() {
        for url in [
            "https://sns.us-east-2.amazonaws.com/a.pem",
            "https://sns.cn-north-1.amazonaws.com.cn/a.pem",
        ] {
            assert!(is_of_sns(url) && is_certificate(url), "{url}");
        }
        for url in [
            "http://sns.us-east-2.amazonaws.com/a.pem",
            "https://sns.us-east-2.amazonaws.com",
            "https://sns.us-east-2.amazonaws.com:8443/a.pem",
            "https://sns.us-east-2.amazonaws.com@evil.example/a.pem",
            "https://sns.evil.example/.amazonaws.com/a.pem",
            "https://sns.a.b.amazonaws.com/a.pem",
            "https://sns..amazonaws.com/a.pem",
            "https://SNS.us-east-2.amazonaws.com/a.pem",
            "https://xsns.us-east-2.amazonaws.com/a.pem",
        ] {
            assert!(!is_of_sns(url), "{url}");
        }
        assert!(!is_certificate(
            "https://sns.us-east-2.amazonaws.com/a.pem?x"
        ));
        assert!(!is_certificate(
            "https://sns.us-east-2.amazonaws.com/a?.pem"
        ));
        assert!(!is_certificate("https://sns.us-east-2.amazonaws.com/a.txt"));
    }
}

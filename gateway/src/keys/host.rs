//! Hosts as manifests and operators name them, and the host of a URL.

use std::fmt;

use http::Uri;

/// A host's name, in which a label may be `*`: any one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(Vec<String>);

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl HostPattern {
    /// Reads a pattern; none where it is no name of a host: an address is not one, nor is a single label or one
    /// whose last two labels are not both given.
    pub fn new(text: &str) -> Option<Self> {
        let labels: Vec<_> = text.split('.').map(str::to_ascii_lowercase).collect();
        let is_label = |label: &String| {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            label == "*" || (!label.is_empty() && label.bytes().all(is_plain))
        };
        let [.., second, top] = labels.as_slice() else {
            return None;
        };
        let is_name = top.bytes().any(|b| b.is_ascii_alphabetic());
        let is_whole = labels.iter().all(is_label) && second != "*" && top != "*";
        (is_name && is_whole).then_some(Self(labels))
    }

    /// Whether the host is one of these.
    pub fn matches(&self, host: &str) -> bool {
        let mut labels = host.split('.');
        let fit = self.0.iter().all(|pattern| {
            labels.next().is_some_and(|label| {
                !label.is_empty() && (pattern == "*" || pattern.eq_ignore_ascii_case(label))
            })
        });
        fit && labels.next().is_none()
    }

    /// Whether every host of the other is one of these.
    pub fn covers(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.into_iter().all(|(a, b)| a == "*" || a == b)
    }
}

/// The host of a URL that may be asked; the error says why it may not.
pub(super) fn of_url(url: &str) -> Result<String, &'static str> {
    let uri: Uri = url.parse().map_err(|_| "its URL is none")?;
    if uri.scheme_str() != Some("https") {
        return Err("its URL is not https");
    }
    let authority = uri.authority().ok_or("its URL has no host")?;
    if authority.as_str().contains('@') {
        return Err("its URL names a user");
    }
    if uri.port_u16().is_some_and(|port| port != 443) || authority.as_str().ends_with(':') {
        return Err("its URL names a port other than 443");
    }
    Ok(authority.host().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_label_and_no_more() {
        let sns = HostPattern::new("sns.*.amazonaws.com").unwrap();
        assert!(sns.matches("sns.us-east-1.amazonaws.com"));
        assert!(sns.matches("SNS.eu-west-1.AmazonAWS.com"));
        for host in [
            "sns.amazonaws.com",
            "sns.a.b.amazonaws.com",
            "sns.us-east-1.amazonaws.com.evil.example",
            "sns..amazonaws.com",
            "sns.us-east-1.amazonaws.com.",
            "evil.example",
            "",
        ] {
            assert!(!sns.matches(host), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_no_pattern() {
        for text in [
            "",
            "*",
            "localhost",
            "*.com",
            "127.0.0.1",
            "a..example",
            "a.*",
            "[::1]",
            "a b.example",
        ] {
            assert!(HostPattern::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_pattern_covers_those_that_are_narrower() {
        let covers = |a: &str, b: &str| {
            HostPattern::new(a)
                .unwrap()
                .covers(&HostPattern::new(b).unwrap())
        };
        assert!(covers("sns.*.amazonaws.com", "sns.eu-west-1.amazonaws.com"));
        assert!(covers("sns.*.amazonaws.com", "sns.*.amazonaws.com"));
        assert!(!covers(
            "sns.eu-west-1.amazonaws.com",
            "sns.*.amazonaws.com"
        ));
        assert!(!covers("api.paypal.com", "paypal.com"));
    }

    #[test]
    fn only_plain_https_urls_are_asked() {
        assert_eq!(
            of_url("https://a.example/x.pem?y=1").as_deref(),
            Ok("a.example")
        );
        assert_eq!(of_url("https://a.example:443/").as_deref(), Ok("a.example"));
        for url in [
            "http://a.example/",
            "https://a.example:8443/",
            "https://good.example@evil.example/",
            "https://good.example:443@evil.example/",
            "//a.example/",
            "/x",
            "",
            "https:///x",
        ] {
            assert!(of_url(url).is_err(), "{url}");
        }
    }
}

//! Where a request or an answer ends, and what a request asks for.

/// What a proxy understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request after the other.
    Http,
    /// What Redis speaks: RESP, 2 or 3, without messages that nobody asked for.
    Redis,
}

impl Protocol {
    /// The length of the request at the beginning, once it is whole.
    pub(super) fn request(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Http => http(bytes, Body::None, false),
            Self::Redis => resp(bytes),
        }
    }

    /// The same of an answer. `ended` says that the server will send no more.
    pub(super) fn reply(self, request: &[u8], bytes: &[u8], ended: bool) -> Option<usize> {
        match self {
            Self::Redis => resp(bytes),
            Self::Http if request.starts_with(b"HEAD ") || is_bodiless(bytes) => head(bytes),
            Self::Http => http(bytes, Body::UntilEnd, ended),
        }
    }

    /// The command's name, or the operation's.
    pub(super) fn operation(self, request: &[u8]) -> String {
        let text = String::from_utf8_lossy(request);
        match self {
            Self::Redis => text.lines().nth(2).unwrap_or_default().to_uppercase(),
            Self::Http => {
                let target = header(request, "x-amz-target");
                let operation = target
                    .as_deref()
                    .and_then(|target| target.rsplit('.').next());
                let method = text.split(' ').next().unwrap_or_default();
                operation.unwrap_or(method).to_owned()
            }
        }
    }
}

/// What a head without a length means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    UntilEnd,
}

/// The head's length, its empty line included.
fn head(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

fn is_bodiless(reply: &[u8]) -> bool {
    let status = reply.get(9..12);
    matches!(status, Some(b"204" | b"304"))
}

fn http(bytes: &[u8], without_length: Body, ended: bool) -> Option<usize> {
    let head = head(bytes)?;
    let length = header(bytes, "content-length").and_then(|length| length.parse::<usize>().ok());
    let chunked = header(bytes, "transfer-encoding").is_some_and(|coding| coding == "chunked");
    match (length, without_length) {
        _ if chunked => chunks(bytes, head),
        (Some(length), _) => (bytes.len() >= head + length).then_some(head + length),
        (None, Body::None) => Some(head),
        (None, Body::UntilEnd) => ended.then_some(bytes.len()),
    }
}

/// The end of the last chunk and its trailers.
fn chunks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let (line, next) = line(bytes, at)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return trailers(bytes, next);
        }
        at = next + size + 2;
    }
}

fn trailers(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let (line, next) = line(bytes, at)?;
        at = next;
        if line.is_empty() {
            return Some(at);
        }
    }
}

/// A header's value.
fn header(bytes: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..head(bytes)?]).into_owned();
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = headers.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(value.trim().to_owned())
}

/// The line that begins there, and where the next one does.
fn line(bytes: &[u8], at: usize) -> Option<(&str, usize)> {
    let rest = bytes.get(at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&rest[..end]).ok()?;
    Some((line, at + end + 2))
}

/// The length of the value at the beginning.
fn resp(bytes: &[u8]) -> Option<usize> {
    value(bytes, 0)
}

/// The end of the value that begins there.
fn value(bytes: &[u8], at: usize) -> Option<usize> {
    let (line, next) = line(bytes, at)?;
    let (mark, rest) = line.split_at_checked(1)?;
    let count = rest.parse::<usize>().ok();
    let parts = match (mark, count) {
        ("$" | "=" | "!", Some(length)) => {
            let end = next + length + 2;
            return (bytes.len() >= end).then_some(end);
        }
        ("*" | "~" | ">", Some(count)) => count,
        ("%" | "|", Some(count)) => 2 * count,
        // Simple values, and the null forms of the others.
        _ => 0,
    };
    (0..parts).try_fold(next, |at, _| value(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is whole at its end and never before.
    fn ends_with(protocol: Protocol, whole: &[u8]) {
        let length = |bytes| protocol.reply(b"POST / HTTP/1.1", bytes, false);
        for end in 0..whole.len() {
            assert_eq!(length(&whole[..end]), None, "{end}");
        }
        let more = [whole, b"+more\r\n"].concat();
        assert_eq!(length(&more), Some(whole.len()));
    }

    #[test]
    fn a_redis_value_ends_with_its_last_part() {
        for value in [
            "+OK\r\n",
            "-ERR no\r\n",
            ":7\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "$4\r\na\r\nb\r\n",
            "*3\r\n$1\r\na\r\n*2\r\n:1\r\n$0\r\n\r\n*0\r\n",
            "%1\r\n+key\r\n*1\r\n_\r\n",
        ] {
            ends_with(Protocol::Redis, value.as_bytes());
        }
    }

    #[test]
    fn an_http_answer_ends_with_its_body() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
        ] {
            ends_with(Protocol::Http, answer.as_bytes());
        }
    }

    #[test]
    fn an_http_answer_without_a_length_ends_with_its_connection() {
        let answer = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(Protocol::Http.reply(b"GET /", answer, false), None);
        assert_eq!(
            Protocol::Http.reply(b"GET /", answer, true),
            Some(answer.len())
        );
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        assert_eq!(
            Protocol::Http.reply(b"HEAD /", head, false),
            Some(head.len())
        );
    }

    #[test]
    fn a_request_is_named_by_what_it_asks_for() {
        let redis = b"*2\r\n$7\r\nevalsha\r\n$1\r\nx\r\n";
        assert_eq!(Protocol::Redis.operation(redis), "EVALSHA");
        let aws = b"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n\r\n";
        assert_eq!(Protocol::Http.operation(aws), "PutItem");
        assert_eq!(Protocol::Http.operation(b"GET / HTTP/1.1\r\n\r\n"), "GET");
    }
}

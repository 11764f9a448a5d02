//! Frames of HTTP/2 (RFC 9113) by hand, since no client library sends what is tried here.

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const CANCEL: u32 = 8;
/// The code by which a client is told that it makes too much work.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame that was read.
pub struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// What a client begins with: the preface and settings.
pub fn opening() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes
}

/// Of HPACK (RFC 7541): static names, literal values, nothing for the table.
fn literal(name: u8, value: &str) -> Vec<u8> {
    // A name's index above 14 goes on in another byte.
    let mut bytes = match name.checked_sub(15) {
        None => vec![name],
        Some(rest) => vec![15, rest],
    };
    bytes.push(u8::try_from(value.len()).expect("a short value"));
    bytes.extend(value.bytes());
    bytes
}

fn post(path: &str) -> Vec<u8> {
    // `:method: POST` and `:scheme: http` as they are; `:path` and `:authority` by their names.
    [vec![0x83, 0x86], literal(4, path), literal(1, "gateway")].concat()
}

/// A request without a body.
pub fn request(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &post(path))
}

/// The head of a request with so many bytes to come, and the first of them.
pub fn upload(stream: u32, path: &str, length: usize) -> Vec<u8> {
    let head = [post(path), literal(28, &length.to_string())].concat();
    [
        frame(HEADERS, END_HEADERS, stream, &head),
        frame(DATA, 0, stream, b"{"),
    ]
    .concat()
}

/// The end of a stream that its client no longer wants.
pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// Every whole frame.
pub fn read(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let Some((payload, rest)) = rest.split_at_checked(length(*head)) else {
            break;
        };
        frames.push(Frame {
            kind: head[3],
            flags: head[4],
            payload: payload.to_vec(),
        });
        bytes = rest;
    }
    frames
}

fn length(head: [u8; 9]) -> usize {
    head[..3]
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte))
}

impl Frame {
    /// The last stream that was begun, and the reason, where this closes the connection.
    pub fn goaway(&self) -> Option<(u32, u32)> {
        let number = |at: usize| {
            let bytes = self.payload.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes))
        };
        let is_goaway = (self.kind, self.flags) == (GOAWAY, 0);
        Some((number(0)?, number(4)?)).filter(|_| is_goaway)
    }
}

//! Arbitrary bytes on a connection to the real listener: no panic, nothing but well-formed answers, and a good
//! delivery is answered right afterwards.
//!
//! The client sends everything, closes its side and reads to the end. The first byte says where it pauses, so
//! that heads, frames and bodies arrive in pieces too.

#![no_main]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hookgate::delivery::{Delivery, Event, Ordering, RejectKind, Rejection, Response, Verdict};
use hookgate::http::{self, Ingress, Limits};
use hookgate::plugin::{Fault, Handled, Manifest, Plugin, Setup};
use hookgate::tenants::SameIdOtherBody;
use hookgate_fuzz::{gateway, policy, runtime};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Takes any branch behind the listener that the body's first byte asks for. There are 256 event ids, so
/// that what is kept stays small.
struct Any(Manifest);

impl Plugin for Any {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn handle(&self, delivery: &Arc<Delivery>, _: &Arc<Setup>) -> Result<Handled, Fault> {
        let verdict = match delivery.body.first() {
            Some(b'f') => return Err(Fault::NoSlot { slots: 1 }),
            Some(b'h') => Verdict::Respond(Response {
                status: Some(200),
                headers: vec![("x-shake".into(), "hands".into())],
                body: "shaken".into(),
            }),
            Some(b'r') => Verdict::Reject(Rejection::new(RejectKind::BadSignature, "r")),
            _ => Verdict::Accept(Event {
                id: Some(format!("{}", delivery.body.len() % 256)),
                ..Event::default()
            }),
        };
        Ok(Handled {
            verdict,
            key: None,
            confirm: None,
            fuel: 0,
        })
    }
}

/// Small, so that inputs reach them.
fn limits() -> Limits {
    Limits {
        max_body: 512,
        max_header_bytes: 8 << 10,
        max_headers: 12,
        header_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        max_connections: 16,
        memory_budget: 8 << 10,
    }
}

async fn start() -> SocketAddr {
    let manifest = Manifest::parse(r#"{"v":1,"name":"any","version":"1"}"#).expect("a manifest");
    let gateway = gateway(
        Arc::new(Any(manifest)),
        policy(Ordering::Key, SameIdOtherBody::Duplicate),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let telemetry = Arc::clone(&gateway.telemetry);
    let ingress = Arc::new(Ingress::new(gateway, limits()));
    let forever = std::future::pending();
    tokio::spawn(http::serve(
        listener,
        None,
        ingress,
        limits(),
        telemetry,
        forever,
    ));
    address
}

/// What comes back, and whether the gateway ended it in order: a reset may swallow what was sent before.
async fn exchange(address: SocketAddr, pieces: [&[u8]; 2]) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The port is free again at once, however many inputs there are.
    let _ = stream.set_zero_linger();
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        // The gateway may close while it is being sent to.
        let _ = stream.write_all(piece).await;
        tokio::task::yield_now().await;
    }
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let whole = stream.read_to_end(&mut answer).await.is_ok();
    (answer, whole)
}

/// Every answer of a connection, each a head with a known status and a body of the length that it says, or
/// without one where the request was a HEAD.
fn check_http1(answer: &[u8]) {
    let text = String::from_utf8(answer.to_vec()).expect("answers are text");
    let mut pieces = text.split("HTTP/1.");
    assert_eq!(pieces.next(), Some(""), "{text:?}");
    for piece in pieces {
        let (head, body) = piece
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.get(2..5))
            .and_then(|s| s.parse::<u16>().ok());
        let known = [
            100, 200, 202, 400, 401, 404, 405, 408, 409, 413, 414, 431, 500, 503, 505,
        ];
        assert!(
            status.is_some_and(|status| known.contains(&status)),
            "{piece:?}"
        );
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").expect("a header"))
            .collect();
        let length = headers.iter().find(|(name, _)| *name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().expect("a length"));
        assert!(body.is_empty() || body.len() == length, "{piece:?}");
    }
}

/// Whole frames, of types that there are, no longer than was agreed.
fn check_http2(mut answer: &[u8]) {
    while let Some((head, rest)) = answer.split_at_checked(9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        assert!(length <= 16_384 && head[3] <= 9, "a frame's head: {head:?}");
        let Some(rest) = rest.get(length..) else {
            break;
        };
        answer = rest;
    }
    assert!(answer.is_empty(), "half a frame: {answer:?}");
}

const GOOD: &[u8] =
    b"POST /in/t/s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

thread_local! {
    static SERVER: (Runtime, SocketAddr) = {
        let runtime = runtime();
        let address = runtime.block_on(start());
        (runtime, address)
    };
}

fuzz_target!(|input: &[u8]| {
    let Some((pause, bytes)) = input.split_first() else {
        return;
    };
    let (first, second) = bytes.split_at(usize::from(*pause).min(bytes.len()));
    SERVER.with(|(runtime, address)| {
        runtime.block_on(async {
            let (answer, whole) = exchange(*address, [first, second]).await;
            match bytes.starts_with(PREFACE) {
                _ if !whole => {}
                true => check_http2(&answer),
                false => check_http1(&answer),
            }
            let (answer, _) = exchange(*address, [GOOD, b""]).await;
            let fine = [b"HTTP/1.1 202".as_slice(), b"HTTP/1.1 200"];
            assert!(
                fine.iter().any(|status| answer.starts_with(status)),
                "{answer:?}"
            );
        });
    });
});

//! The lower rungs of the speed ladder, and the sandbox against the same decision in native code.
//!
//! `ladder serve RUNG`: 1 raw hyper, 2 with a native HMAC, 3 with the plugin in a fresh sandbox; the upper rungs
//! are the gateway itself. `ladder sandbox`: one thread, both by turns, medians. Build with `--release`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::crypto::{Key, KeyForm, Keyring};
use hookgate::delivery::{Delivery, Verdict};
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup, WasmPlugin};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::hmac;

const SECRET: &str = "a secret for the ladder only";
const SIGNATURE: &str = "x-hub-signature-256";

#[allow(clippy::print_stdout, reason = "a program for people")]
fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", "1"] => serve(Rung::Raw),
        ["serve", "2"] => serve(Rung::Native(native_key())),
        ["serve", "3"] => serve(Rung::Sandbox(github(), setup())),
        ["sandbox"] => compare(),
        ["sign", length] => {
            let body = body(length.parse().expect("a length"));
            println!("{}\n{}", signature(&body), String::from_utf8_lossy(&body));
        }
        _ => println!("ladder serve 1|2|3, ladder sandbox, ladder sign LENGTH"),
    }
}

enum Rung {
    Raw,
    Native(hmac::Key),
    Sandbox(Box<WasmPlugin>, Arc<Setup>),
}

fn native_key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes())
}

fn github() -> Box<WasmPlugin> {
    let bytes = std::fs::read("target/plugins/github.wasm").expect("run `make plugins` first");
    let sandbox = Sandbox::new(Limits::default()).expect("a sandbox");
    let plugin = sandbox.load(&bytes).expect("a plugin");
    std::mem::forget(sandbox);
    Box::new(plugin)
}

fn setup() -> Arc<Setup> {
    let mut keys = Keyring::default();
    keys.add(
        "secret",
        Key::decode(KeyForm::Raw, SECRET.as_bytes(), false).expect("a key"),
    );
    Arc::new(Setup {
        keys,
        ..Setup::default()
    })
}

/// A GitHub-like body of that length.
fn body(length: usize) -> Vec<u8> {
    let head = r#"{"action":"opened","repository":{"id":35129377},"text":""#;
    let fill = length.saturating_sub(head.len() + 2);
    format!("{head}{}\"}}", "x".repeat(fill)).into_bytes()
}

fn signature(body: &[u8]) -> String {
    let tag = hmac::sign(&native_key(), body);
    format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
}

/// The native rung's decision: decode the header, verify the body.
fn verify(key: &hmac::Key, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let hex = header.and_then(|value| value.strip_prefix("sha256="));
    let tag = hex.and_then(|hex| {
        data_encoding::HEXLOWER_PERMISSIVE
            .decode(hex.as_bytes())
            .ok()
    });
    tag.is_some_and(|tag| hmac::verify(key, body, &tag).is_ok())
}

fn delivery(headers: HeaderMap, body: Bytes) -> Arc<Delivery> {
    Arc::new(Delivery {
        id: uuid::Uuid::now_v7(),
        received_at: 0,
        method: Method::POST,
        target: "/in/t/s".into(),
        rest: String::new(),
        headers,
        body,
    })
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "a program for people")]
async fn serve(rung: Rung) {
    let rung = Arc::new(rung);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    println!(
        "ready: http://{}",
        listener.local_addr().expect("an address")
    );
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let rung = Arc::clone(&rung);
        let service = service_fn(move |request| answer(Arc::clone(&rung), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    rung: Arc<Rung>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let good = match &*rung {
        Rung::Raw => true,
        Rung::Native(key) => verify(key, &head.headers, &body),
        Rung::Sandbox(plugin, setup) => accepts(plugin, &delivery(head.headers, body), setup),
    };
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = if good {
        http::StatusCode::ACCEPTED
    } else {
        http::StatusCode::UNAUTHORIZED
    };
    Ok(answer)
}

fn accepts(plugin: &WasmPlugin, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> bool {
    let handled = plugin.handle(delivery, setup);
    matches!(handled, Ok(handled) if matches!(handled.verdict, Verdict::Accept(_)))
}

/// Native and sandboxed verification by turns, one thread.
#[allow(clippy::print_stdout, reason = "a program for people")]
fn compare() {
    let (key, plugin, setup) = (native_key(), github(), setup());
    println!("| body | native us | sandbox us | added us | ratio |\n|---|---|---|---|---|");
    for length in [256, 2 << 10, 20 << 10, 1 << 20] {
        let body = Bytes::from(body(length));
        let mut headers = HeaderMap::new();
        headers.insert(SIGNATURE, signature(&body).parse().expect("a value"));
        headers.insert(
            "x-github-delivery",
            "72d3162e-cc78-11e3".parse().expect("a value"),
        );
        headers.insert("x-github-event", "issues".parse().expect("a value"));
        let delivery = delivery(headers, body);
        let rounds = if length > 100_000 { 20 } else { 2000 };
        let (mut native, mut sandboxed) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            native.push(time(rounds, || {
                verify(&key, &delivery.headers, &delivery.body)
            }));
            sandboxed.push(time(rounds, || accepts(&plugin, &delivery, &setup)));
        }
        let (native, sandboxed) = (median(native), median(sandboxed));
        let (n, s) = (native.as_secs_f64() * 1e6, sandboxed.as_secs_f64() * 1e6);
        println!(
            "| {length} | {n:.2} | {s:.2} | {:.2} | {:.3} |",
            s - n,
            s / n
        );
    }
}

fn time(rounds: u32, mut call: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    for _ in 0..rounds {
        assert!(call());
    }
    started.elapsed() / rounds
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

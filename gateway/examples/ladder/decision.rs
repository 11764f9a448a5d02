//! One decision about a GitHub delivery, in native code and by the plugin in a fresh sandbox: what is measured.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::crypto::{Key, KeyForm, Keyring};
use hookgate::delivery::{Delivery, Verdict};
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup, WasmPlugin};
use http::{HeaderMap, Method};
use ring::hmac;

pub const SECRET: &str = "a secret for the ladder only";
pub const SIGNATURE: &str = "x-hub-signature-256";

pub fn native_key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes())
}

pub fn github() -> Box<WasmPlugin> {
    // Wherever the build is, its plugins are beside the profile.
    let program = std::env::current_exe().expect("a program");
    let mut builds = program
        .ancestors()
        .map(|above| above.join("plugins/github.wasm"));
    let built = builds.find(|path| path.exists());
    let bytes = built
        .map(std::fs::read)
        .expect("run `make plugins` first")
        .expect("a file");
    let sandbox = Sandbox::new(Limits::default()).expect("a sandbox");
    let plugin = sandbox.load(&bytes).expect("a plugin");
    std::mem::forget(sandbox);
    Box::new(plugin)
}

pub fn setup() -> Arc<Setup> {
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
pub fn body(length: usize) -> Vec<u8> {
    let head = r#"{"action":"opened","repository":{"id":35129377},"text":""#;
    let fill = length.saturating_sub(head.len() + 2);
    format!("{head}{}\"}}", "x".repeat(fill)).into_bytes()
}

pub fn signature(body: &[u8]) -> String {
    let tag = hmac::sign(&native_key(), body);
    format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
}

/// The native rung's decision: decode the header, verify the body.
pub fn verify(key: &hmac::Key, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let hex = header.and_then(|value| value.strip_prefix("sha256="));
    let tag = hex.and_then(|hex| {
        data_encoding::HEXLOWER_PERMISSIVE
            .decode(hex.as_bytes())
            .ok()
    });
    tag.is_some_and(|tag| hmac::verify(key, body, &tag).is_ok())
}

pub fn delivery(headers: HeaderMap, body: Bytes) -> Arc<Delivery> {
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

pub fn accepts(plugin: &WasmPlugin, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> bool {
    let handled = plugin.handle(delivery, setup);
    matches!(handled, Ok(handled) if matches!(handled.verdict, Verdict::Accept(_)))
}

/// A signed delivery with a body of that length.
pub fn signed(length: usize) -> Arc<Delivery> {
    let body = Bytes::from(body(length));
    let mut headers = HeaderMap::new();
    headers.insert(SIGNATURE, signature(&body).parse().expect("a value"));
    headers.insert(
        "x-github-delivery",
        "72d3162e-cc78-11e3".parse().expect("a value"),
    );
    headers.insert("x-github-event", "issues".parse().expect("a value"));
    delivery(headers, body)
}

//! Arbitrary bytes as a plugin, and plugins with some bytes changed: refused, or loaded and run within limits.
//!
//! The first byte says which guest the others edit; beyond the guests, they are the whole file. What takes
//! longer than libFuzzer's `-timeout` counts as a crash.

#![no_main]

use std::sync::{Arc, LazyLock};

use hookgate::delivery::Delivery;
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup};
use hookgate_fuzz::component;
use libfuzzer_sys::fuzz_target;

static GUESTS: LazyLock<[Vec<u8>; 5]> = LazyLock::new(|| {
    [
        component(include_str!("../../guests/accept.wat")),
        component(include_str!("../../guests/echo.wat")),
        component(include_str!("../../guests/spin.wat")),
        component(include_str!("../../guests/recurse.wat")),
        component(include_str!("../../guests/trap.wat")),
    ]
});

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let limits = Limits {
        fuel: 100_000,
        memory: 1 << 20,
        concurrent_calls: 1,
        ..Limits::default()
    };
    Sandbox::new(limits).expect("a sandbox")
});

/// Each edit has four bytes: how, where in two, and what. Nothing is longer than the guest and its edits.
fn edited(guest: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = guest.to_vec();
    for edit in edits.chunks_exact(4) {
        let at = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % bytes.len().max(1);
        match edit[0] % 4 {
            0 => bytes[at] = edit[3],
            1 => bytes[at] = bytes[at].wrapping_add(edit[3]),
            2 => bytes.insert(at, edit[3]),
            _ if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else {
        return;
    };
    let bytes = match GUESTS.get(usize::from(*which)) {
        Some(guest) => edited(guest, rest),
        None => rest.to_vec(),
    };
    let plugin = match SANDBOX.load(&bytes) {
        Ok(plugin) => plugin,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(!plugin.manifest().name.is_empty());
    let delivery = Arc::new(Delivery {
        id: uuid::Uuid::nil(),
        received_at: 0,
        method: http::Method::POST,
        target: "/in/t/s?a=b".into(),
        rest: String::new(),
        headers: http::HeaderMap::new(),
        body: input.to_vec().into(),
    });
    // A fault is an answer like any other.
    let _ = plugin.handle(&delivery, &Arc::<Setup>::default());
});

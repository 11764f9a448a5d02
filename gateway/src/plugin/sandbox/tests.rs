//! Every limit, tripped by a guest made for it and told apart; and what a file is refused for.
//!
//! Guests are WAT, so that these tests need no plugin built. The wall clock's limit is far away, except where
//! it is the one that is tested.

use std::fmt::Write as _;
use std::thread;
use std::time::Instant;

use bytes::Bytes;

use super::*;
use crate::crypto::{Key, KeyForm, PublicKey};
use crate::delivery::{RejectKind, Verdict};
use crate::plugin::guests::{
    self, ACCEPT, FOREIGN, Guest, HOG, RECURSE, SCAN, SPIN, TABLES, TRAP, binary, lie,
};

mod host_functions;

fn limits() -> Limits {
    Limits {
        wall_clock: Duration::from_mins(10),
        concurrent_calls: 4,
        ..Limits::default()
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(limits()).unwrap()
}

fn load(sandbox: &Sandbox, guest: Guest) -> WasmPlugin {
    let loaded = sandbox.load(&guest.wasm());
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

fn delivery(id: &str, body: Vec<u8>) -> Arc<Delivery> {
    let mut delivery = host::no_delivery();
    delivery.headers.insert("x-id", id.parse().unwrap());
    delivery.body = Bytes::from(body);
    Arc::new(delivery)
}

fn verdict(plugin: &WasmPlugin) -> Result<Verdict, Fault> {
    let handled = plugin.handle(&delivery("none", Vec::new()), &Arc::default());
    handled.map(|handled| handled.verdict)
}

fn fault(guest: Guest) -> Fault {
    verdict(&load(&sandbox(), guest)).unwrap_err()
}

fn assert_accepts(plugin: &WasmPlugin, id: &str) {
    let handled = plugin.handle(&delivery(id, Vec::new()), &Arc::default());
    match handled.unwrap().verdict {
        Verdict::Accept(event) => assert_eq!(event.id.as_deref(), Some(id)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn endless_computation_uses_up_the_fuel() {
    let fault = fault(Guest::new(SPIN));
    assert_eq!(fault, Fault::OutOfFuel { limit: 20_000_000 });
    assert_eq!(
        fault.to_string(),
        "the plugin used up its fuel of 20000000 units"
    );
    assert!(!fault.is_temporary());
}

/// Calls that keep the host busy with the body, or with 100 KiB of the guest's memory.
const SCANS: [(&str, &str); 13] = [
    (
        "json",
        "(call $json (i32.const 0x1000) (i32.const 12) (i32.const 0x2000))",
    ),
    (
        "json-in",
        "(call $json-in (i32.const 0) (i32.const 0x19000) (i32.const 0x1000) (i32.const 12) (i32.const 0x2000))",
    ),
    (
        "json-all",
        "(call $json-all (i32.const 0x1200) (i32.const 1) (i32.const 0x2000))",
    ),
    (
        "json-all-in",
        "(call $json-all-in (i32.const 0) (i32.const 0x19000) (i32.const 0x1200) (i32.const 1) (i32.const 0x2000))",
    ),
    (
        "json, long pointer",
        "(call $json (i32.const 0x3000) (i32.const 0x19000) (i32.const 0x2000))",
    ),
    (
        "body",
        "(call $body (i64.const 0) (i64.const 0x10000) (i32.const 0x2000))",
    ),
    ("form", "(call $form (i32.const 0x2000))"),
    (
        "header, long name",
        "(call $header (i32.const 0x3000) (i32.const 0x19000) (i32.const 0x2000))",
    ),
    (
        "option, long name",
        "(call $option (i32.const 0x3000) (i32.const 0x19000) (i32.const 0x2000))",
    ),
    (
        "digest",
        "(call $digest (i32.const 1) (i32.const 0x1100) (i32.const 1) (i32.const 0x2000))",
    ),
    (
        "verify-mac",
        "(drop (call $verify-mac (i32.const 1) (i32.const 0x100c) (i32.const 6) (i32.const 0x1100) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))",
    ),
    (
        "verify-signature",
        "(drop (call $verify-signature (i32.const 0) (i32.const 0) (i32.const 0x1012) (i32.const 6) (i32.const 0) (i32.const 0) (i32.const 0x1100) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 64)))",
    ),
    (
        "verify-token",
        "(drop (call $verify-token (i32.const 0x100c) (i32.const 6) (i32.const 0x3000) (i32.const 0x19000)))",
    ),
];

#[test]
fn endless_calls_of_the_host_use_up_the_fuel_before_they_cost_seconds() {
    let sandbox = sandbox();
    let mut setup = Setup::default();
    for value in ["an active key of 24 bytes", "another one, just as long"] {
        let key = Key::decode(KeyForm::Raw, value.as_bytes(), false).unwrap();
        setup.keys.add("secret", key);
    }
    let key = PublicKey::decode(KeyForm::Raw, b"an Ed25519 key that is 32 bytes!", None).unwrap();
    setup.keys.add_public("public", key);
    let setup = Arc::new(setup);
    let mut body = br#"{"a":["#.to_vec();
    body.extend(br#"{"key":"value & more"},"#.repeat(2_000));
    body.extend(b"0]}");
    for (name, call) in SCANS {
        let plugin = load(&sandbox, Guest::new(SCAN).mark("CALL", call));
        let started = Instant::now();
        let result = plugin.handle(&delivery("none", body.clone()), &setup);
        let taken = started.elapsed();
        println!("{name}: {taken:?}");
        assert!(
            matches!(result, Err(Fault::OutOfFuel { .. })),
            "{name}: {result:?}"
        );
        assert!(taken < Duration::from_secs(5), "{name}: {taken:?}");
    }
}

#[test]
fn a_form_of_many_tiny_fields_is_charged_for_each() {
    let call = "(call $form (i32.const 0x2000)) (unreachable)";
    let plugin = load(&sandbox(), Guest::new(SCAN).mark("CALL", call));
    let body = b"a&".repeat(400_000);
    let result = plugin.handle(&delivery("none", body), &Arc::default());
    assert!(matches!(result, Err(Fault::OutOfFuel { .. })), "{result:?}");
}

#[test]
fn memory_beyond_the_limit_is_refused_and_told_from_the_trap_that_follows() {
    let fault = fault(Guest::new(HOG).mark("THEN", "(unreachable)"));
    let Fault::OutOfMemory { what, asked, limit } = fault else {
        panic!("{fault}");
    };
    assert_eq!((what, limit), ("bytes of memory", 16 << 20));
    assert!(asked > limit && asked <= limit + (1 << 20), "{asked}");
}

#[test]
fn a_plugin_that_goes_on_without_the_memory_it_was_refused_is_heard() {
    let plugin = load(&sandbox(), Guest::new(HOG));
    match verdict(&plugin) {
        Ok(Verdict::Reject(rejection)) => assert_eq!(rejection.kind, RejectKind::Malformed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_elements_of_all_tables_count_together() {
    let fault = fault(Guest::new(TABLES));
    assert_eq!(
        fault.to_string(),
        "the plugin asked for 1101 table elements, of which it may have 1024"
    );
}

#[test]
fn endless_recursion_overflows_the_stack_and_nothing_else() {
    let fault = fault(Guest::new(RECURSE));
    assert_eq!(
        fault.to_string(),
        "the plugin trapped: wasm trap: call stack exhausted"
    );
}

#[test]
fn an_unreachable_instruction_is_a_trap() {
    let fault = fault(Guest::new(TRAP));
    assert_eq!(
        fault.to_string(),
        "the plugin trapped: wasm trap: wasm `unreachable` instruction executed"
    );
}

/// Verdicts that the interface or the protocol does not allow. An empty event has 30 words.
fn lies() -> Vec<(&'static str, Guest)> {
    let event = |id: &str| {
        format!(
            "(i32 0 0x2100 1) (i32 {}) (i32 {id}) (i32 {})",
            "0 ".repeat(61),
            "0 ".repeat(27)
        )
    };
    let respond = |status: u32, rest: &str| format!("(i32 1 {status} {rest})");
    let header = |name: &str, value: &str| {
        // The header's two strings stand at 0x2028.
        let (n, v) = (name.len(), value.len());
        let strings = guests::string(format!("{name}{value}").as_bytes());
        let at = 0x2028 + n;
        lie(
            &format!("(i32 1 200 0x2018 1 0 0) (i32 0x2028 {n} {at} {v}) {strings}"),
            0,
        )
    };
    vec![
        ("a verdict of an unknown case", lie("(i32 3 0 0 0 0 0)", 0)),
        ("a refusal of an unknown kind", lie("(i32 2 6 0 0)", 0)),
        ("an option neither there nor not", lie(&event("2 0 0"), 0)),
        ("a reason beyond the memory", lie("(i32 2 3 0x1fff0 0x20)", 0)),
        ("a reason at no address", lie("(i32 2 3 0xffffffff 1)", 0)),
        ("an id that is not UTF-8", lie(&(event("1 0x3000 2") + " (i32 0)"), 0).replace("(export \"handle\") (result i32)", "(export \"handle\") (result i32) (i32.store16 (i32.const 0x3000) (i32.const 0xfffe))")),
        ("events at no address", lie("(i32 0 0x20000000 1)", 0)),
        ("misaligned events", lie("(i32 0 0x2101 1)", 0)),
        ("no event", lie("(i32 0 0x2100 0)", 0)),
        ("two events", lie("(i32 0 0x2100 2)", 0)),
        ("100,000 events", lie("(i32 0 0x2100 100000)", 200)),
        ("4 billion events", lie("(i32 0 0x2100 0xffffffff)", 0)),
        ("a response of 800,000 headers", lie("(i32 1 200 0x2100 800000 0 0)", 200)),
        ("a reason of 2 MiB", lie("(i32 2 3 0x2100 0x200000)", 40)),
        ("the status 99", lie(&respond(99, "0 0 0 0"), 0)),
        ("the status 101", lie(&respond(101, "0 0 0 0"), 0)),
        ("the status 600", lie(&respond(600, "0 0 0 0"), 0)),
        ("a header's value of two lines", header("x-a", "b\r\nx-c: d")),
        ("a header's name of two lines", header("x-a: b\nx-c", "d")),
        ("a header about framing", header("Transfer-Encoding", "chunked")),
        ("a body of 5,000 bytes", lie(&(respond(200, "0 0 0x2018 1") + " (i32 0 0x3000 5000)"), 0)),
    ]
}

#[test]
fn every_lie_is_refused_with_a_reason() {
    let sandbox = sandbox();
    let mut messages = String::new();
    for (name, guest) in lies() {
        let fault = verdict(&load(&sandbox, guest)).unwrap_err();
        assert!(matches!(fault, Fault::Refused { .. }), "{name}: {fault:?}");
        writeln!(messages, "{name}: {fault}").unwrap();
    }
    insta::assert_snapshot!(messages);
}

fn harmful() -> Vec<Guest> {
    let mut guests = vec![
        Guest::new(SPIN),
        Guest::new(SCAN).mark("CALL", SCANS[0].1),
        Guest::new(HOG).mark("THEN", "(unreachable)"),
        Guest::new(TABLES),
        Guest::new(RECURSE),
        Guest::new(TRAP),
    ];
    guests.extend(lies().into_iter().map(|(_, guest)| guest));
    guests
}

#[test]
fn what_one_plugin_does_leaves_the_next_delivery_alone() {
    let sandbox = sandbox();
    let good = load(&sandbox, Guest::new(ACCEPT));
    for (n, guest) in harmful().into_iter().enumerate() {
        let harmful = load(&sandbox, guest);
        // More often than there are sandboxes: none is lost.
        for _ in 0..5 {
            verdict(&harmful).unwrap_err();
        }
        assert_accepts(&good, &format!("evt_{n}"));
    }
}

#[test]
fn what_one_plugin_does_leaves_deliveries_at_the_same_time_alone() {
    let sandbox = sandbox();
    let good = load(&sandbox, Guest::new(ACCEPT));
    let harmful: Vec<_> = harmful()
        .into_iter()
        .map(|guest| load(&sandbox, guest))
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for plugin in &harmful {
                verdict(plugin).unwrap_err();
            }
        });
        for thread in 0..2 {
            let good = &good;
            scope.spawn(move || {
                for n in 0..500 {
                    assert_accepts(good, &format!("evt_{thread}_{n}"));
                }
            });
        }
    });
}

#[test]
fn the_wall_clock_ends_what_fuel_does_not() {
    let limits = Limits {
        fuel: u64::MAX,
        wall_clock: Duration::from_millis(50),
        ..limits()
    };
    let plugin = load(&Sandbox::new(limits).unwrap(), Guest::new(SPIN));
    // The sandbox is dropped by now: the plugin keeps its clock.
    let fault = verdict(&plugin).unwrap_err();
    assert_eq!(fault.to_string(), "the plugin ran longer than 50ms");
    assert!(fault.is_temporary());
}

#[test]
fn a_wall_clock_without_end_is_no_end() {
    let limits = Limits {
        wall_clock: Duration::MAX,
        ..limits()
    };
    let sandbox = Sandbox::new(limits).unwrap();
    assert_accepts(&load(&sandbox, Guest::new(ACCEPT)), "evt_1");
}

#[test]
fn a_delivery_beyond_the_slots_is_told_to_come_again() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, Guest::new(ACCEPT));
    let held = plugin.slots.try_acquire_many(4).unwrap();
    let fault = verdict(&plugin).unwrap_err();
    assert_eq!(fault.to_string(), "all 4 sandboxes are in use");
    assert!(fault.is_temporary());
    drop(held);
    assert_accepts(&plugin, "evt_1");
}

#[test]
fn plugins_load_while_every_slot_is_in_use() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, Guest::new(ACCEPT));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let call = Call::new(
                delivery("none", Vec::new()),
                Arc::default(),
                &sandbox.limits,
            );
            let mut store = plugin.store(call).unwrap();
            plugin.pre.instantiate(&mut store).unwrap();
            store
        })
        .collect();
    load(&sandbox, Guest::new(SPIN));
    drop(busy);
}

#[test]
fn more_sandboxes_than_the_machine_has_room_for_are_one_clear_error() {
    for concurrent_calls in [1_000_000, u32::MAX] {
        let limits = Limits {
            concurrent_calls,
            ..limits()
        };
        let error = Sandbox::new(limits).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, SandboxError::Reserve { .. }), "{text}");
        assert!(
            text.contains("\nhint: lower `plugins.concurrent_calls`"),
            "{text}"
        );
    }
}

/// Files that are no plugins.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let good = || Guest::new(ACCEPT);
    let mut truncated = good().wasm();
    truncated.truncate(truncated.len() / 2);
    let engine = sandbox().engine;
    let precompiled = engine.precompile_component(&good().wasm()).unwrap();
    let exported = r#"(func (export "handle") (result $verdict)"#;
    vec![
        ("nothing", Vec::new()),
        ("garbage", b"#!/bin/sh\nexit 0\n".to_vec()),
        ("a truncated component", truncated),
        ("a core module", binary("(module)")),
        ("a compiled component", precompiled),
        (
            "a compiled module",
            engine.precompile_module(&binary("(module)")).unwrap(),
        ),
        ("a component with imports of WASI", binary(FOREIGN)),
        ("an empty component", binary("(component)")),
        (
            "no handle",
            good()
                .replace(exported, r#"(func (export "other") (result $verdict)"#)
                .wasm(),
        ),
        (
            "a handle of another type",
            good()
                .replace(exported, r#"(func (export "handle") (result string)"#)
                .wasm(),
        ),
        (
            "another interface's version",
            good()
                .replace("provider/delivery@1.0.0", "provider/delivery@2.0.0")
                .wasm(),
        ),
        (
            "a function of a later version",
            good()
                .replace(
                    r#"(export "now" (func (result u64)))"#,
                    r#"(export "now" (func (result u64))) (export "later" (func))"#,
                )
                .wasm(),
        ),
        (
            "too much memory from the start",
            good()
                .replace(
                    "(memory (export \"memory\") 2)",
                    "(memory (export \"memory\") 257)",
                )
                .wasm(),
        ),
        (
            "too large a table from the start",
            Guest::new(&format!("{ACCEPT} (table 1025 funcref)")).wasm(),
        ),
    ]
}

fn bad_manifests() -> Vec<(&'static str, Vec<u8>)> {
    let good = || Guest::new(ACCEPT);
    vec![
        (
            "a manifest that is not JSON",
            good().manifest("guest").wasm(),
        ),
        (
            "a manifest without a name",
            good().manifest(r#"{"v":1,"version":"1"}"#).wasm(),
        ),
        (
            "a manifest of version 2",
            good()
                .manifest(r#"{"v":2,"name":"guest","version":"1"}"#)
                .wasm(),
        ),
        (
            "a manifest with a bad name",
            good()
                .manifest(r#"{"v":1,"name":"Gu est","version":"1"}"#)
                .wasm(),
        ),
        (
            "a manifest that traps",
            good().mark("BEFORE_MANIFEST", "(unreachable)").wasm(),
        ),
        (
            "a manifest without end",
            good().mark("BEFORE_MANIFEST", "(loop $l (br $l))").wasm(),
        ),
    ]
}

#[test]
fn every_file_that_is_no_plugin_is_refused_with_a_reason() {
    let sandbox = sandbox();
    let mut messages = String::new();
    for (name, bytes) in [files(), bad_manifests()].concat() {
        let error = sandbox
            .load(&bytes)
            .err()
            .unwrap_or_else(|| panic!("{name} is loaded"));
        writeln!(messages, "{name}:\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(messages);
}

/// Every file below a directory.
fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn a_compiled_plugin_is_found_again_and_a_damaged_one_is_compiled_anew() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let cache = open_cache(directory.path()).unwrap();
        let sandbox = Sandbox::with_cache(limits(), Some(cache.clone())).unwrap();
        let plugin = load(&sandbox, Guest::new(ACCEPT));
        let delivery = delivery("e1", Vec::new());
        assert!(plugin.handle(&delivery, &Arc::default()).is_ok());
        (cache.cache_hits(), cache.cache_misses())
    };
    assert_eq!(start(), (0, 1));
    assert_eq!(start(), (1, 0));
    for file in files_below(directory.path()) {
        std::fs::write(file, "damaged").unwrap();
    }
    assert_eq!(start(), (0, 1));
}

#[test]
fn a_cache_that_is_no_directory_is_told_with_a_hint() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = Some(file.path().to_owned());
    let refused = Sandbox::new(Limits { cache, ..limits() }).err().unwrap();
    let text = refused.to_string();
    assert!(
        text.starts_with("cannot use ") && text.contains("hint: `plugins.cache`"),
        "{text}"
    );
}

//! The commands on files, with what they print as a whole.

use std::fs;

use super::*;
use crate::plugin::guests::{ACCEPT, Guest};

const MANIFEST: &str = r#"{"v":1,"name":"acme","version":"1.2.0","documentation":"https://acme.example/hooks",
    "schemes":["acme","acme-v2"],"signature_header":"X-Acme-Signature","timeout_ms":5000,
    "first_retry_ms":1000,"retry_window_s":3600,"max_attempts":9,"retries_on":["5xx","429"],
    "accepted_status":200,"id_stable":true,"every_delivery_has_id":true,"signed_time":"attempt",
    "key_hosts":["keys.acme.example"],"needs_public_url":true,
    "secrets":[{"name":"secret","kind":"mac","form":"hex","description":"From the console."},
        {"name":"key","kind":"public-key","required":false}],
    "options":[{"name":"header","required":true,"description":"Which header."},
        {"name":"unit","default":"s"},{"name":"id"}],
    "later":true,"sooner":[]}"#;

/// A command's finding and what it wrote to both outputs.
fn carry_out(command: PluginCommand) -> (Result<Finding, String>, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let finding = run(command, &mut out, &mut err).map_err(|error| error.to_string());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (finding, text(out), text(err))
}

/// A directory with a plugin that accepts everything, and a file of vectors.
fn directory(vectors: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let plugin = Guest::new(ACCEPT).manifest(MANIFEST).wasm();
    fs::write(directory.path().join("acme.wasm"), plugin).unwrap();
    fs::write(directory.path().join("vectors.json"), vectors).unwrap();
    directory
}

fn test_with(vectors: &str) -> (Result<Finding, String>, String) {
    let directory = directory(vectors);
    let (finding, out, _) = carry_out(PluginCommand::Test {
        file: directory.path().join("acme.wasm"),
        vectors: directory.path().join("vectors.json"),
        options: None,
        explain: false,
        limits: RuntimeLimits::default(),
    });
    let place = format!("{}/", directory.path().display());
    (finding.map_err(|error| error.replace(&place, "")), out)
}

fn vector(scheme: &str, expect: &str) -> String {
    let id = r#""headers":{"X-Id":"evt_1"},"event_id":"evt_1","sig_header":"X-Sig""#;
    format!(r#"{{"provider":"acme","scheme":"{scheme}",{id},"expect":"{expect}"}}"#)
}

#[test]
fn inspect_shows_the_manifest_and_warns_of_keys_that_are_not_known() {
    let directory = directory("[]");
    let file = directory.path().join("acme.wasm");
    let (finding, out, err) = carry_out(PluginCommand::Inspect {
        file,
        limits: RuntimeLimits::default(),
    });
    assert_eq!(finding, Ok(Finding::Good));
    assert_eq!(
        err,
        "warning: this gateway does not know the manifest's later, sooner\n"
    );
    insta::assert_snapshot!(out);
}

#[test]
fn test_prints_a_line_for_each_vector_and_counts_at_the_end() {
    let vectors = [
        vector("acme", "valid"),
        vector("other", "valid"),
        vector("acme-v2", "invalid"),
    ];
    let (finding, out) = test_with(&format!("[{}]", vectors.join(",")));
    assert_eq!(finding, Ok(Finding::Bad));
    assert_eq!(
        out,
        "ok     #1 acme/acme: accepted evt_1\n\
         FAILED #3 acme-v2/acme: accepted evt_1; it should have been refused\n\
         1 skipped, of schemes that the manifest does not name: other (1)\n\
         1 passed, 1 failed\n"
    );
}

#[test]
fn test_succeeds_only_if_something_was_run() {
    let (finding, out) = test_with(&format!("[{}]", vector("acme", "valid")));
    assert_eq!(finding.map(Finding::exit_code), Ok(0));
    assert!(out.ends_with("\n0 skipped\n1 passed, 0 failed\n"), "{out}");
    let (finding, out) = test_with(&format!("[{}]", vector("other", "valid")));
    assert_eq!(finding.map(Finding::exit_code), Ok(1));
    let expected = "nothing was run; 1 skipped, of schemes that the manifest does not name: other (1)\n\
                    0 passed, 0 failed\n";
    assert_eq!(out, expected);
}

#[test]
fn vectors_that_cannot_be_read_are_named_with_the_place() {
    let (finding, _) = test_with("[{\n\"provider\":1}]");
    let error = finding.unwrap_err();
    assert!(
        error.starts_with("reading vectors.json: it is not an array of vectors: "),
        "{error}"
    );
    assert!(
        error.contains("line 2") && error.contains("\nhint: "),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_plugin_is_named_with_the_reason() {
    let directory = directory("[]");
    let file = directory.path().join("vectors.json");
    let (finding, ..) = carry_out(PluginCommand::Inspect {
        file: file.clone(),
        limits: RuntimeLimits::default(),
    });
    let expected = format!(
        "loading {}: it is not WebAssembly\nhint: build it with `hookgate plugin build DIR`",
        file.display()
    );
    assert_eq!(finding, Err(expected));
}

#[test]
fn a_file_that_is_not_there_is_named_with_a_hint() {
    let file = "no-such.wasm".into();
    let (finding, ..) = carry_out(PluginCommand::Inspect {
        file,
        limits: RuntimeLimits::default(),
    });
    let error = finding.unwrap_err();
    assert!(error.starts_with("reading no-such.wasm: "), "{error}");
    assert!(error.contains("\nhint: "), "{error}");
}

#[test]
fn a_directory_without_a_crate_builds_nothing() {
    let directory = directory("[]");
    let (finding, out, _) = carry_out(PluginCommand::Build {
        directory: directory.path().into(),
        out: Some(directory.path().join("out")),
    });
    assert!(finding.unwrap_err().contains("no Cargo.toml there\nhint: "));
    assert!(out.is_empty() && !directory.path().join("out").exists());
}

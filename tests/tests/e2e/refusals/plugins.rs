//! Plugin files that are none, and directories that hold none.

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::{configured, said, told_of_one_source};
use crate::world;

/// A gateway with this file among its plugins, which `acme/bad` asks for.
fn with_plugin(file: &[u8]) -> TempDir {
    let good = world::orders("acme", "good", "SECRET");
    let bad = world::orders("acme", "bad", "SECRET").replace("\"hmac\"", "\"shop\"");
    let directory = configured(&(world::head() + &good + &bad));
    fs::write(directory.path().join("plugins/shop.wasm"), file).expect("a file");
    directory
}

/// The listeners, and plugins in this directory.
fn in_directory(plugins: &str) -> String {
    world::head().replace("\"plugins\"", &format!("{plugins:?}"))
}

#[tokio::test]
async fn a_plugin_with_foreign_imports_is_refused_with_their_names() {
    let component = wat::parse_str(
        r#"(component
            (import "wasi:cli/environment@0.2.0" (instance
                (export "get-arguments" (func (result (list string))))))
            (import "wasi:sockets/tcp@0.2.0" (instance)))"#,
    );
    let directory = with_plugin(&component.unwrap());
    assert_snapshot!(told_of_one_source(&directory).await);
}

#[tokio::test]
async fn a_truncated_plugin_is_refused() {
    let whole = wat::parse_str(r#"(component (core module (func (export "a-function"))))"#);
    let whole = whole.unwrap();
    assert_snapshot!(told_of_one_source(&with_plugin(&whole[..whole.len() - 8])).await);
}

#[tokio::test]
async fn an_empty_plugin_file_is_refused() {
    assert_snapshot!(told_of_one_source(&with_plugin(b"")).await);
}

#[tokio::test]
async fn a_core_module_is_refused() {
    let module = wat::parse_str("(module)").unwrap();
    assert_snapshot!(told_of_one_source(&with_plugin(&module)).await);
}

#[tokio::test]
async fn a_component_of_another_interface_is_refused() {
    let component = wat::parse_str("(component)").unwrap();
    assert_snapshot!(told_of_one_source(&with_plugin(&component)).await);
}

#[tokio::test]
async fn a_plugin_directory_that_is_a_file_is_refused() {
    let directory =
        configured(&(in_directory("file") + &world::orders("acme", "orders", "SECRET")));
    fs::write(directory.path().join("file"), "").unwrap();
    assert_snapshot!(said(directory.path(), &["check"]).await);
}

#[tokio::test]
async fn a_missing_plugin_directory_is_refused() {
    let config = in_directory("nowhere") + &world::orders("acme", "orders", "SECRET");
    assert_snapshot!(said(configured(&config).path(), &["check"]).await);
}

#[tokio::test]
async fn a_compile_cache_that_is_a_file_is_refused() {
    let directory = configured("[plugins]\ncache = \"file\"\n");
    fs::write(directory.path().join("file"), "").unwrap();
    let check = said(directory.path(), &["check"]).await;
    assert_snapshot!(check + &said(directory.path(), &["serve"]).await);
}

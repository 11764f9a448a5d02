//! What the operator wrote, and what it refers to.

use insta::assert_snapshot;

use super::{configured, said, told_of_one_source};
use crate::world;

/// `check` and `serve`, which refuse a malformed file alike.
async fn refused(config: &str) -> String {
    let directory = configured(config);
    let check = said(directory.path(), &["check"]).await;
    let serve = said(directory.path(), &["serve"]).await;
    check + &serve
}

#[tokio::test]
async fn text_that_is_not_toml_is_refused() {
    assert_snapshot!(refused("[server\nlisten = 127.0.0.1\n").await);
}

#[tokio::test]
async fn an_unknown_key_is_refused() {
    let config = world::head() + "\n[store]\npaht = \"data\"\n";
    assert_snapshot!(refused(&config).await);
}

#[tokio::test]
async fn a_missing_file_is_refused() {
    let directory = world::directory();
    let serve = said(directory.path(), &["serve", "--config", "other.toml"]).await;
    assert_snapshot!(serve);
}

#[tokio::test]
async fn a_good_file_has_no_problems() {
    let directory = configured(&(world::head() + &world::orders("acme", "good", "SECRET")));
    assert_snapshot!(said(directory.path(), &["check"]).await);
}

/// A good source, and a bad one.
fn beside_a_good_one(bad: &str) -> String {
    world::head() + &world::orders("acme", "good", "SECRET") + bad
}

#[tokio::test]
async fn an_unknown_plugin_stops_only_its_source() {
    let bad = world::orders("acme", "bad", "SECRET").replace("\"hmac\"", "\"hmca\"");
    assert_snapshot!(told_of_one_source(&configured(&beside_a_good_one(&bad))).await);
}

#[tokio::test]
async fn a_missing_secret_stops_only_its_source() {
    let bad = world::orders("acme", "bad", "MISSING");
    assert_snapshot!(told_of_one_source(&configured(&beside_a_good_one(&bad))).await);
}

#[tokio::test]
async fn a_short_key_stops_only_its_source() {
    let bad = world::orders("acme", "bad", "SHORT");
    assert_snapshot!(told_of_one_source(&configured(&beside_a_good_one(&bad))).await);
}

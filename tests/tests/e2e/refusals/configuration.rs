//! What the operator wrote, and what it refers to.

use insta::assert_snapshot;

use hookgate_tests::gateway;

use super::{configured, output_of, said, told_of_one_source};
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
async fn a_configuration_in_an_environment_variable_is_checked_like_a_file() {
    let directory = configured("");
    let config = world::head() + &world::orders("acme", "good", "SECRET");
    let check = async |text: Option<&str>| {
        let mut command = gateway::command(directory.path());
        command.args(["check", "--config", "env:HOOKGATE_CONFIG"]);
        command.envs(text.map(|text| ("HOOKGATE_CONFIG", text)));
        output_of(command, directory.path()).await
    };
    let good = check(Some(&config)).await;
    let bad = check(Some(&config.replace("plugin =", "plugni ="))).await;
    assert_snapshot!(good + &bad + &check(None).await);
}

#[tokio::test]
async fn a_certificate_and_its_key_may_stand_in_environment_variables() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = "tls_certificate = \"env:CERTIFICATE\"\ntls_key = \"env:CERTIFICATE_KEY\"\n";
    let config = world::head().replace("[server]\n", &format!("[server]\n{tls}"));
    let directory = configured(&config);
    let check = async |key: Option<String>| {
        let mut command = gateway::command(directory.path());
        command.arg("check").env("CERTIFICATE", made.cert.pem());
        command.envs(key.map(|key| ("CERTIFICATE_KEY", key)));
        output_of(command, directory.path()).await
    };
    let good = check(Some(made.signing_key.serialize_pem())).await;
    assert_snapshot!(good + &check(None).await);
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

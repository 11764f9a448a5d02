//! Listeners that are taken, and commands that need a running gateway; and the help of every command.

use std::net::TcpListener;

use hookgate::http::client;
use hookgate_tests::gateway;
use hookgate_tests::provider::Connection;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use super::{SECRET, configured, output_of, said, serving};
use crate::world;

/// The refusal of a gateway one of whose listeners another process has.
async fn refused_port(section: &str) -> String {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address");
    let free = format!("[{section}]\nlisten = \"127.0.0.1:0\"");
    let head = world::head().replace(&free, &format!("[{section}]\nlisten = \"{address}\""));
    let directory = configured(&head);
    let text = said(directory.path(), &["serve"]).await;
    text.replace(&address.port().to_string(), "PORT")
}

#[tokio::test]
async fn a_taken_port_for_deliveries_is_refused() {
    assert_snapshot!(refused_port("server").await);
}

#[tokio::test]
async fn a_taken_port_for_operators_is_refused() {
    assert_snapshot!(refused_port("admin").await);
}

#[tokio::test]
async fn events_without_a_gateway_say_where_it_was_looked_for() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let directory = world::directory();
    let text = said(directory.path(), &["events", "list", "--admin", &address]).await;
    assert_snapshot!(text.replace(&address, "ADDRESS"));
}

/// A gateway that is ready, then one that drains, then none; and one that another program stands for.
#[tokio::test]
async fn health_is_0_of_a_ready_gateway_and_else_1_with_the_reason() {
    let head = world::head().replace("drain_delay = \"0s\"", "drain_delay = \"1h\"");
    let directory = configured(&head);
    let gateway = serving(directory.path()).await;
    let admin = gateway.admin.to_string();
    let ask = async || {
        let text = said(directory.path(), &["health", "--admin", &admin]).await;
        text.replace(&admin, "ADMIN")
    };
    let mut text = ask().await;
    gateway.signal(Signal::TERM).expect("it runs");
    world::until("the gateway drains", async || {
        let answer = client::get(gateway.admin, "/readyz").await;
        answer.is_ok_and(|(status, _)| status == 503)
    })
    .await;
    text += &ask().await;
    // Deliveries are served on at the other listener, which knows no such path.
    let ingress = gateway.ingress.to_string();
    let other = said(directory.path(), &["health", "--admin", &ingress]).await;
    text += &other.replace(&ingress, "INGRESS");
    gateway.kill().await.expect("it ends");
    text += &ask().await;
    assert_snapshot!(text);
}

#[tokio::test]
async fn health_finds_the_admin_listener_by_the_configuration_in_the_environment() {
    let free = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let everywhere = format!("[admin]\nlisten = \"0.0.0.0:{}\"", free.port());
    let head = world::head().replace("[admin]\nlisten = \"127.0.0.1:0\"", &everywhere);
    let directory = configured(&head);
    let _gateway = serving(directory.path()).await;
    let mut command = gateway::command(directory.path());
    command.args(["health", "--config", "env:HOOKGATE_CONFIG"]);
    command.env("HOOKGATE_CONFIG", &head);
    let text = output_of(command, directory.path()).await;
    assert_eq!(text, "exit code 0\n--- standard output\nready\n");
}

#[tokio::test]
async fn events_of_a_port_that_nobody_knows_say_so() {
    let directory = configured(&world::head());
    assert_snapshot!(said(directory.path(), &["events", "list"]).await);
}

#[tokio::test]
async fn events_with_a_bad_configuration_are_refused_as_check_refuses_it() {
    let directory = configured("[admin]\nlistne = \"127.0.0.1:0\"\n");
    assert_snapshot!(said(directory.path(), &["events", "list"]).await);
}

#[tokio::test]
async fn events_are_listed_and_shown_and_an_unknown_one_is_refused() {
    let directory = configured(&(world::head() + &world::orders("acme", "orders", "SECRET")));
    let gateway = serving(directory.path()).await;
    let mut connection = Connection::to(gateway.ingress);
    for id in ["o-1", "o-2"] {
        let order = world::order("acme/orders", SECRET, id, "c-1", "");
        assert_eq!(connection.deliver(&order).await.unwrap().status, 202);
    }
    let admin = gateway.admin.to_string();
    let ask = async |arguments: &[&str]| {
        let all = [arguments, &["--admin", &admin]].concat();
        said(directory.path(), &all).await.replace(&admin, "ADMIN")
    };
    let list = ask(&["events", "list"]).await;
    let rest = ask(&["events", "list", "--after", "1", "--limit", "1"]).await;
    let unknown = ask(&["events", "show", "99"]).await;
    assert_snapshot!(list + &rest + &unknown);
    let shown = ask(&["events", "show", "2"]).await;
    let json = shown.split_once("--- standard output\n").unwrap().1;
    let shown: Value = serde_json::from_str(json).unwrap();
    assert_eq!(shown["attributes"]["ce-id"], "o-2");
}

#[tokio::test]
async fn every_command_has_its_help() {
    let directory = world::directory();
    let commands: [&[&str]; 12] = [
        &[],
        &["serve"],
        &["check"],
        &["send"],
        &["health"],
        &["events"],
        &["events", "list"],
        &["events", "show"],
        &["plugin"],
        &["plugin", "build"],
        &["plugin", "inspect"],
        &["plugin", "test"],
    ];
    let mut text = String::new();
    for command in commands {
        text += &said(directory.path(), &[command, &["--help"]].concat()).await;
        text.push('\n');
    }
    assert_snapshot!(text);
}

#[tokio::test]
async fn a_command_that_is_none_is_refused() {
    assert_snapshot!(said(world::directory().path(), &["sevre"]).await);
}

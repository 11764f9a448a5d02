//! SIGTERM: what runs is finished, what was acknowledged stays, and load balancers have time to notice.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use hookgate::http::client;
use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::{Connection, Signed};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::world::{self, DEADLINE};

const SECRET: &str = "a secret that only this test knows";

async fn start(directory: &Path) -> Gateway {
    let started = Gateway::start(directory, &[("SECRET", SECRET)]).await;
    started.unwrap_or_else(|error| panic!("no start: {error}"))
}

/// A gateway with this drain delay.
async fn gateway(drain_delay: &str) -> (TempDir, Gateway) {
    let directory = world::directory();
    let head = world::head().replace(
        "drain_delay = \"0s\"",
        &format!("drain_delay = \"{drain_delay}\""),
    );
    let config = head + &world::orders("acme", "orders", "SECRET");
    world::configure(directory.path(), &config).expect("a configuration is written");
    let gateway = start(directory.path()).await;
    (directory, gateway)
}

fn order(id: &str) -> Signed {
    world::order("acme/orders", SECRET, id, "c-1", "note")
}

/// A request whose last byte is still to come. The gateway is at work on it.
struct Unfinished {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Unfinished {
    async fn begin(gateway: &Gateway, signed: &Signed) -> Self {
        let mut head = format!("POST {} HTTP/1.1\r\nhost: gateway\r\n", signed.target);
        for (name, value) in &signed.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "content-length: {}\r\n\r\n", signed.body.len());
        let (most, rest) = signed.body.split_at(signed.body.len() - 1);
        let mut stream = TcpStream::connect(gateway.ingress)
            .await
            .expect("a connection");
        stream
            .write_all(head.as_bytes())
            .await
            .expect("the head is taken");
        stream.write_all(most).await.expect("the body is taken");
        let admin = gateway.admin;
        world::until("the request is being read", async || {
            let (_, metrics) = client::get(admin, "/metrics").await.expect("metrics");
            let metrics = String::from_utf8_lossy(&metrics).into_owned();
            let line = metrics
                .lines()
                .find(|line| line.starts_with("hookgate_in_flight_bytes "));
            line.expect("the metric")
                .split_once(' ')
                .is_some_and(|(_, bytes)| bytes != "0")
        })
        .await;
        Self {
            stream,
            rest: rest.to_vec(),
        }
    }

    /// Sends the last byte, and reads until the gateway closes the connection.
    async fn finish(mut self) -> String {
        self.stream
            .write_all(&self.rest)
            .await
            .expect("the last byte is taken");
        let mut answer = String::new();
        let read = timeout(DEADLINE, self.stream.read_to_string(&mut answer)).await;
        read.expect("an answer in time").expect("a whole answer");
        answer
    }
}

async fn becomes_unready(admin: SocketAddr) {
    world::until("/readyz is 503", async || {
        let (status, _) = client::get(admin, "/readyz")
            .await
            .expect("an answer while it drains");
        status == 503
    })
    .await;
}

/// The ids in the queue, in order, as the next gateway of the directory has them.
async fn held(directory: &Path) -> Vec<String> {
    let gateway = start(directory).await;
    let events = gateway.events().await.expect("the queue is readable");
    let id = |event: &serde_json::Value| event["attributes"]["ce-id"].as_str().map(str::to_owned);
    events.iter().filter_map(id).collect()
}

#[tokio::test]
async fn deliveries_are_served_while_load_balancers_take_notice() {
    let (directory, mut gateway) = gateway("2s").await;
    let mut connection = Connection::to(gateway.ingress);
    assert_eq!(
        connection.deliver(&order("before")).await.unwrap().status,
        202
    );
    let unfinished = Unfinished::begin(&gateway, &order("unfinished")).await;
    gateway.signal(Signal::TERM).unwrap();
    becomes_unready(gateway.admin).await;
    assert_eq!(
        connection
            .deliver(&order("kept connection"))
            .await
            .unwrap()
            .status,
        202
    );
    let mut fresh = Connection::to(gateway.ingress);
    assert_eq!(
        fresh
            .deliver(&order("new connection"))
            .await
            .unwrap()
            .status,
        202
    );
    let answer = unfinished.finish().await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let status = timeout(DEADLINE, gateway.ended()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    let all = ["before", "kept connection", "new connection", "unfinished"];
    assert_eq!(held(directory.path()).await, all);
}

#[tokio::test]
async fn a_request_that_runs_when_the_listener_closes_is_finished() {
    let (directory, mut gateway) = gateway("0s").await;
    let unfinished = Unfinished::begin(&gateway, &order("unfinished")).await;
    gateway.signal(Signal::TERM).unwrap();
    let ingress = gateway.ingress;
    world::until("no connection is accepted", async || {
        TcpStream::connect(ingress).await.is_err()
    })
    .await;
    assert!(!gateway.has_ended());
    let (status, _) = client::get(gateway.admin, "/readyz").await.unwrap();
    assert_eq!(status, 503, "operators are served to the end");
    let answer = unfinished.finish().await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let status = timeout(DEADLINE, gateway.ended()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(held(directory.path()).await, ["unfinished"]);
}

#[tokio::test]
async fn idle_connections_hold_nothing_up() {
    let (directory, mut gateway) = gateway("0s").await;
    let mut idle = Connection::to(gateway.ingress);
    assert_eq!(idle.deliver(&order("before")).await.unwrap().status, 202);
    gateway.signal(Signal::INT).unwrap();
    let status = timeout(DEADLINE, gateway.ended()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(held(directory.path()).await, ["before"]);
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_and_loses_nothing() {
    let (directory, mut gateway) = gateway("1h").await;
    let mut connection = Connection::to(gateway.ingress);
    assert_eq!(
        connection.deliver(&order("before")).await.unwrap().status,
        202
    );
    gateway.signal(Signal::TERM).unwrap();
    becomes_unready(gateway.admin).await;
    assert_eq!(
        connection
            .deliver(&order("while it drains"))
            .await
            .unwrap()
            .status,
        202
    );
    let _unfinished = Unfinished::begin(&gateway, &order("unfinished")).await;
    gateway.signal(Signal::TERM).unwrap();
    let status = timeout(DEADLINE, gateway.ended()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(held(directory.path()).await, ["before", "while it drains"]);
}

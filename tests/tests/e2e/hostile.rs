//! Clients that mean harm, against the real binary: it cuts them off, its memory stays bounded, and others are
//! served meanwhile.

mod frames;

use std::path::Path;
use std::sync::Arc;

use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::{Connection, Signed};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::world::{self, DEADLINE};
use frames::Frame;

const SECRET: &str = "a secret that only this test knows";
const MIB: usize = 1 << 20;

async fn start(directory: &Path) -> Gateway {
    let started = Gateway::start(directory, &[("SECRET", SECRET)]).await;
    started.unwrap_or_else(|error| panic!("no start: {error}"))
}

/// A gateway with these lines more in its section `server`, warm: it has served a delivery.
async fn gateway(server: &str) -> (TempDir, Gateway) {
    let directory = world::directory();
    let head = world::head().replace("[server]\n", &format!("[server]\n{server}\n"));
    let config = head + &world::orders("acme", "orders", "SECRET");
    world::configure(directory.path(), &config).expect("a configuration is written");
    let gateway = start(directory.path()).await;
    assert_eq!(status(&gateway, "warm").await, 202);
    (directory, gateway)
}

fn order(id: &str) -> Signed {
    world::order("acme/orders", SECRET, id, "c-1", "note")
}

/// What a good delivery on a connection of its own is answered.
async fn status(gateway: &Gateway, id: &str) -> u16 {
    let mut connection = Connection::to(gateway.ingress);
    let answer = timeout(DEADLINE, connection.deliver(&order(id))).await;
    answer
        .expect("an answer in time")
        .expect("an answer")
        .status
}

/// Opens and resets streams until the gateway closes the connection. What it said, and how many were sent.
async fn reset_rapidly(gateway: &Gateway, at_most: u32) -> (Vec<Frame>, u32) {
    let stream = TcpStream::connect(gateway.ingress)
        .await
        .expect("a connection");
    let (mut from, mut to) = stream.into_split();
    let sending = async move {
        let mut bytes = frames::opening();
        let mut sent = 0;
        while sent < at_most {
            for number in sent..sent + 100 {
                bytes.extend(frames::request(2 * number + 1, "/in/acme/orders"));
                bytes.extend(frames::reset(2 * number + 1));
            }
            if to.write_all(&bytes).await.is_err() {
                break;
            }
            bytes.clear();
            sent += 100;
        }
        // Open until the gateway has said all.
        (sent, to)
    };
    let reading = async move {
        let mut said = Vec::new();
        let _ = from.read_to_end(&mut said).await;
        frames::read(&said)
    };
    let both = timeout(DEADLINE, async { tokio::join!(reading, sending) }).await;
    let (said, (sent, _)) = both.expect("the gateway closes the connection");
    (said, sent)
}

#[tokio::test]
async fn a_client_that_opens_and_resets_streams_rapidly_is_cut_off_and_others_are_served() {
    const STREAMS: u32 = 100_000;
    let (_directory, gateway) = gateway("").await;
    let before = gateway.memory().expect("its memory");
    let (mut processed, mut told) = (0, 0);
    for round in 0..20 {
        let id = format!("good-{round}");
        let (attack, good) = tokio::join!(reset_rapidly(&gateway, STREAMS), status(&gateway, &id));
        assert_eq!(good, 202, "in round {round}");
        let (said, sent) = attack;
        assert!(sent < STREAMS, "it was let do all that it wanted");
        // A reset of the connection may overtake what the gateway says.
        if let Some((last, code)) = said.iter().find_map(Frame::goaway) {
            assert_eq!(code, frames::ENHANCE_YOUR_CALM);
            processed = processed.max(last.div_ceil(2));
            told += 1;
        }
    }
    assert!(told > 0, "the client was never told why");
    assert!(
        processed < 1000,
        "{processed} streams of one connection were begun"
    );
    let more = gateway.memory().expect("its memory").saturating_sub(before);
    assert!(more < 32 * MIB, "{more} bytes more than before");
}

#[tokio::test]
async fn streams_that_are_reset_once_they_are_read_leave_nothing_behind() {
    let (_directory, gateway) = gateway("").await;
    let before = gateway.memory().expect("its memory");
    let mut stream = TcpStream::connect(gateway.ingress)
        .await
        .expect("a connection");
    stream
        .write_all(&frames::opening())
        .await
        .expect("the gateway reads");
    for round in 0..50 {
        // Fewer than may be open at once.
        let streams = (100 * round..100 * (round + 1)).map(|n| 2 * n + 1);
        let begun = streams
            .clone()
            .flat_map(|n| frames::upload(n, "/in/acme/orders", 60_000));
        for (bytes, holds) in [
            (begun.collect::<Vec<_>>(), 100 * 60_000),
            (streams.flat_map(frames::reset).collect(), 0),
        ] {
            stream
                .write_all(&bytes)
                .await
                .expect("the gateway reads on");
            world::until(
                "the streams have their memory, or gave it back",
                async || gateway.metric("hookgate_in_flight_bytes").await.ok() == Some(holds),
            )
            .await;
        }
    }
    let more = gateway.memory().expect("its memory").saturating_sub(before);
    assert!(more < 32 * MIB, "{more} bytes more than before");
    assert_eq!(status(&gateway, "good").await, 202);
}

/// How a client keeps a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Says nothing.
    Silent,
    /// Stops in the middle of its head.
    HalfHead,
    /// Leaves out the last byte of its body.
    HalfBody,
    /// Sends a header that does not end.
    EndlessHead,
    /// Sends chunks that do not end.
    EndlessBody,
}

const WAYS: [Way; 5] = [
    Way::Silent,
    Way::HalfHead,
    Way::HalfBody,
    Way::EndlessHead,
    Way::EndlessBody,
];

impl Way {
    fn begins(self) -> Vec<u8> {
        const LINE: &str = "POST /in/acme/orders HTTP/1.1\r\nhost: gateway\r\n";
        match self {
            Self::Silent => Vec::new(),
            Self::HalfHead | Self::EndlessHead => format!("{LINE}x-slow: ").into_bytes(),
            Self::HalfBody => {
                let body = "x".repeat(999);
                format!("{LINE}content-length: 1000\r\n\r\n{body}").into_bytes()
            }
            Self::EndlessBody => format!("{LINE}transfer-encoding: chunked\r\n\r\n").into_bytes(),
        }
    }

    /// What is sent for ever.
    fn goes_on(self) -> Option<Vec<u8>> {
        match self {
            Self::EndlessHead => Some(vec![b'x'; 4096]),
            Self::EndlessBody => Some([b"1000\r\n", &[b'x'; 4096][..], b"\r\n"].concat()),
            _ => None,
        }
    }

    /// What it may be told before it is closed.
    fn may_get(self) -> &'static [&'static str] {
        match self {
            Self::Silent | Self::HalfHead => &["", "408"],
            Self::HalfBody => &["408", "503"],
            Self::EndlessHead => &["431"],
            Self::EndlessBody => &["413", "503"],
        }
    }
}

/// Keeps a connection until the gateway closes it; the status that it said.
async fn hold(gateway: &Gateway, way: Way) -> impl Future<Output = String> + use<> {
    let mut stream = TcpStream::connect(gateway.ingress)
        .await
        .expect("a connection");
    stream
        .write_all(&way.begins())
        .await
        .expect("the beginning is taken");
    async move {
        let (mut from, mut to) = stream.split();
        let sending = async {
            if let Some(more) = way.goes_on() {
                while to.write_all(&more).await.is_ok() {}
            }
            std::future::pending::<()>().await;
        };
        let mut said = Vec::new();
        tokio::select! {
            _ = from.read_to_end(&mut said) => {}
            () = sending => {}
        }
        let said = String::from_utf8_lossy(&said);
        said.split(' ').nth(1).unwrap_or_default().to_owned()
    }
}

/// Of this process and of the gateways that it starts from now on.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("the hard limit may be had");
}

#[tokio::test]
async fn a_thousand_slow_and_endless_connections_cost_little_and_keep_nobody_out() {
    const EACH: usize = 200;
    raise_file_limit();
    let server = "max_body = \"64KiB\"\nmemory_budget = \"8MiB\"\nheader_timeout = \"3s\"\nbody_timeout = \"3s\"";
    let (_directory, gateway) = gateway(server).await;
    let gateway = Arc::new(gateway);
    let before = gateway.memory().expect("its memory");
    let mut held = JoinSet::new();
    for way in WAYS.repeat(EACH) {
        let closed = hold(&gateway, way).await;
        held.spawn(async move { (way, timeout(DEADLINE, closed).await) });
    }
    // The endless ones are cut off as they go; the slow ones all stand at once.
    world::until("the slow connections are open", async || {
        let open = gateway
            .metric("hookgate_connections")
            .await
            .unwrap_or_default();
        usize::try_from(open).is_ok_and(|open| open >= 3 * EACH)
    })
    .await;
    assert_eq!(status(&gateway, "meanwhile").await, 202);
    let more = gateway.memory().expect("its memory").saturating_sub(before);
    // The budget for bodies, and 32 KiB for each connection.
    let bound = 8 * MIB + 5 * EACH * (32 << 10);
    assert!(
        more < bound,
        "{more} bytes more than before; {bound} are the bound"
    );
    while let Some(ended) = held.join_next().await {
        let (way, said) = ended.expect("a client");
        let said = said.expect("the gateway closes every connection");
        assert!(
            way.may_get().contains(&said.as_str()),
            "{way:?} was told {said:?}"
        );
    }
    assert_eq!(status(&gateway, "afterwards").await, 202);
}

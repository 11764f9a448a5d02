//! The proxy breaks exactly what it is told to break.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nx-amz-target: Q.Send\r\ncontent-length: 2\r\n\r\nhi";
const SOON: Duration = Duration::from_millis(100);

/// A server that counts what it is asked and answers always the same.
struct Counter {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Counter {
    async fn start(request: &'static [u8], answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<AtomicU64>::default();
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    let mut read = vec![0; request.len()];
                    while client.read_exact(&mut read).await.is_ok() {
                        count.fetch_add(1, Ordering::SeqCst);
                        client.write_all(answer).await.unwrap();
                    }
                });
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// A protocol with a request and the server's answer to it.
struct Speech {
    protocol: Protocol,
    request: &'static [u8],
    answer: &'static [u8],
    operation: &'static str,
}

const SPEECHES: [Speech; 2] = [
    Speech {
        protocol: Protocol::Redis,
        request: PING,
        answer: b"+PONG\r\n",
        operation: "PING",
    },
    Speech {
        protocol: Protocol::Http,
        request: POST,
        answer: b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        operation: "Send",
    },
];

struct Bench {
    server: Counter,
    proxy: FaultProxy,
    client: TcpStream,
    speech: &'static Speech,
}

impl Bench {
    async fn new(speech: &'static Speech, plan: Plan) -> Self {
        let server = Counter::start(speech.request, speech.answer).await;
        let proxy = FaultProxy::start(server.address, speech.protocol, plan);
        let proxy = proxy.await.unwrap();
        let client = TcpStream::connect(proxy.address()).await.unwrap();
        Self {
            server,
            proxy,
            client,
            speech,
        }
    }

    async fn ask(&mut self) -> io::Result<Vec<u8>> {
        self.client.write_all(self.speech.request).await?;
        self.read(self.speech.answer.len()).await
    }

    async fn read(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; length];
        self.client.read_exact(&mut answer).await?;
        Ok(answer)
    }
}

#[tokio::test]
async fn what_is_not_broken_goes_through_and_is_counted() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::healthy()).await;
        for _ in 0..3 {
            assert_eq!(bench.ask().await.unwrap(), speech.answer);
        }
        assert_eq!((bench.server.asked(), bench.proxy.requests()), (3, 3));
        assert_eq!((bench.proxy.replies(), bench.proxy.fired().len()), (3, 0));
    }
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_in_order() {
    let mut bench = Bench::new(
        &SPEECHES[0],
        Plan::script([Fault::None, Fault::redis("NO")]),
    )
    .await;
    bench.client.write_all(&PING.repeat(3)).await.unwrap();
    let answers = bench
        .read(b"+PONG\r\n-NO\r\n+PONG\r\n".len())
        .await
        .unwrap();
    assert_eq!(answers, b"+PONG\r\n-NO\r\n+PONG\r\n");
}

#[tokio::test]
async fn a_refused_connection_is_closed_before_anything_is_read() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::always(Fault::Refuse)).await;
        assert!(bench.ask().await.is_err());
        assert_eq!((bench.server.asked(), bench.proxy.requests()), (0, 0));
        assert_eq!(bench.proxy.fired()[0].fault, Fault::Refuse);
    }
}

#[tokio::test]
async fn what_is_cut_before_never_reaches_the_server() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::script([Fault::CutBefore])).await;
        assert!(bench.ask().await.is_err());
        assert_eq!((bench.server.asked(), bench.proxy.requests()), (0, 1));
    }
}

#[tokio::test]
async fn what_is_cut_after_was_done_by_the_server() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::script([Fault::CutAfter])).await;
        assert!(bench.ask().await.is_err());
        assert_eq!((bench.server.asked(), bench.proxy.replies()), (1, 0));
        let fired = bench.proxy.fired();
        assert_eq!(
            (fired[0].number, fired[0].operation.as_str()),
            (0, speech.operation)
        );
    }
}

#[tokio::test]
async fn a_black_hole_keeps_the_connection_and_says_nothing() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::script([Fault::Blackhole])).await;
        assert!(
            timeout(SOON, bench.ask()).await.is_err(),
            "neither answered nor closed"
        );
        assert_eq!(bench.server.asked(), 0);
    }
}

#[tokio::test]
async fn a_delayed_request_goes_through_later() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::script([Fault::Delay(SOON)])).await;
        let asked = Instant::now();
        assert_eq!(bench.ask().await.unwrap(), speech.answer);
        assert!(asked.elapsed() >= SOON);
    }
}

#[tokio::test]
async fn an_answer_in_place_of_the_servers_keeps_the_connection() {
    let throttled = Fault::aws(400, "ThrottlingException");
    for (speech, fault) in SPEECHES
        .iter()
        .zip([Fault::redis("LOADING wait"), throttled])
    {
        let Fault::Answer(injected) = fault.clone() else {
            panic!("no answer")
        };
        let mut bench = Bench::new(speech, Plan::script([fault])).await;
        bench.client.write_all(speech.request).await.unwrap();
        assert_eq!(bench.read(injected.len()).await.unwrap(), injected);
        assert_eq!(bench.server.asked(), 0);
        assert_eq!(bench.ask().await.unwrap(), speech.answer);
    }
}

#[tokio::test]
async fn a_plan_is_changed_while_it_runs_and_is_about_some_operations_only() {
    for speech in &SPEECHES {
        let mut bench = Bench::new(speech, Plan::always(Fault::CutBefore).on("other")).await;
        assert_eq!(bench.ask().await.unwrap(), speech.answer);
        bench
            .proxy
            .set(Plan::always(Fault::CutBefore).on(speech.operation));
        assert!(bench.ask().await.is_err());
    }
}

#[tokio::test]
async fn everything_ends_when_the_proxy_is_dropped() {
    let bench = Bench::new(&SPEECHES[0], Plan::healthy()).await;
    let (address, mut client) = (bench.proxy.address(), bench.client);
    drop(bench.proxy);
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

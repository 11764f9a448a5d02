//! Real sockets and hostile bytes against a gateway whose plugin notes what it sees.

mod disconnects;

use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;
use crate::backend::{Backend, MemoryPair};
use crate::clock::{SharedClock, SystemClock};
use crate::delivery::{Delivery, Event, Name, Ordering as Order, Verdict};
use crate::pipeline::{Gateway, Timing};
use crate::plugin::{Fault, Handled, Manifest, Plugin, Setup};
use crate::telemetry::Telemetry;
use crate::tenants::{
    ClaimOutage, InFlightPolicy, NoEventId, Policy, Ready, SameIdOtherBody, Source, Tenants,
};

/// Accepts everything, by its content, and notes it.
struct Noting {
    manifest: Manifest,
    seen: Mutex<Vec<Arc<Delivery>>>,
}

impl Plugin for Noting {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn handle(&self, delivery: &Arc<Delivery>, _: &Arc<Setup>) -> Result<Handled, Fault> {
        self.seen.lock().unwrap().push(Arc::clone(delivery));
        Ok(Handled {
            verdict: Verdict::Accept(Event::default()),
            key: None,
            confirm: None,
            fuel: 0,
        })
    }
}

struct Rig<B = MemoryPair> {
    address: SocketAddr,
    gateway: Arc<Gateway<B>>,
    plugin: Arc<Noting>,
    _stop: oneshot::Sender<()>,
}

fn limits() -> Limits {
    Limits {
        max_body: 4096,
        max_header_bytes: 8192,
        max_headers: 20,
        header_timeout: Duration::from_millis(300),
        body_timeout: Duration::from_millis(300),
        max_connections: 100,
        memory_budget: 8192,
    }
}

async fn rig(limits: Limits) -> Rig {
    rig_with(limits, None).await
}

async fn rig_with(limits: Limits, tls: Option<TlsAcceptor>) -> Rig {
    rig_on(limits, tls, |clock| {
        MemoryPair::new(clock, Duration::from_secs(300))
    })
    .await
}

async fn rig_on<B: Backend>(
    limits: Limits,
    tls: Option<TlsAcceptor>,
    backend: impl FnOnce(&SharedClock) -> B,
) -> Rig<B> {
    let clock: SharedClock = Arc::new(SystemClock);
    let telemetry = Arc::new(Telemetry::default());
    let backend = backend(&clock);
    let gateway = Gateway::new(backend, clock, Arc::clone(&telemetry), Timing::default());
    let manifest = Manifest::parse(r#"{"v":1,"name":"noting","version":"1"}"#).unwrap();
    let plugin = Arc::new(Noting {
        manifest,
        seen: Mutex::default(),
    });
    gateway.tenants.store(Arc::new(
        [source(&plugin, &telemetry)]
            .into_iter()
            .collect::<Tenants>(),
    ));
    let gateway = Arc::new(gateway);
    let listener = listen("127.0.0.1:0".parse().unwrap(), "server.listen")
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    let ingress = Arc::new(Ingress::new(Arc::clone(&gateway), limits.clone()));
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(serve(listener, tls, ingress, limits, telemetry, async {
        let _ = stopped.await;
    }));
    Rig {
        address,
        gateway,
        plugin,
        _stop: stop,
    }
}

fn source(plugin: &Arc<Noting>, telemetry: &Telemetry) -> Source {
    let (tenant, name) = (Name::new("t").unwrap(), Name::new("s").unwrap());
    Source {
        metrics: telemetry.source(&tenant, &name),
        tenant,
        name,
        state: Ok(Ready {
            plugin: Arc::<Noting>::clone(plugin),
            setup: Arc::default(),
            signature_header: None,
        }),
        policy: Policy {
            ordering: Order::None,
            max_age: Duration::from_secs(300),
            max_future: Duration::from_secs(300),
            no_event_id: NoEventId::Hash,
            same_id_other_body: SameIdOtherBody::Duplicate,
            claim_ttl: Duration::from_secs(86_400),
            content_ttl: Duration::from_secs(400),
            lease: Duration::from_secs(4),
            answer_deadline: Duration::from_secs(5),
            in_flight: InFlightPolicy::Wait,
            claim_ttl_follows_queue: false,
            claim_outage: ClaimOutage::Reject,
            redelivery_after: None,
        },
    }
}

impl<B: Backend> Rig<B> {
    /// Sends bytes and reads until the gateway closes the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    }

    async fn request(&self, head: &str, body: &[u8]) -> String {
        let mut bytes = format!("{head}\r\nhost: x\r\nconnection: close\r\n").into_bytes();
        if !head.to_ascii_lowercase().contains("transfer-encoding") {
            bytes.extend(format!("content-length: {}\r\n", body.len()).bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(body);
        self.exchange(&bytes).await
    }

    fn messages(&self) -> usize {
        self.gateway
            .backend
            .browse()
            .unwrap()
            .list(0, usize::MAX)
            .unwrap()
            .len()
    }

    fn last(&self) -> Arc<Delivery> {
        Arc::clone(self.plugin.seen.lock().unwrap().last().unwrap())
    }
}

/// A reset by a gateway that does not read on ends the answer like its end does.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

fn content(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn a_body_reaches_the_plugin_and_the_queue_as_it_was_sent() {
    let rig = rig(limits()).await;
    let body = b"{\"a\": 100.50, \"b\":\"\xff\xfe \\u00e9\"}\r\n";
    let answer = rig
        .request("POST /in/t/s/x%2Fy/?q=%41+b HTTP/1.1", body)
        .await;
    assert_eq!(status(&answer), "202", "{answer}");
    let delivery = rig.last();
    assert_eq!(&delivery.body[..], body);
    assert_eq!(
        (&*delivery.target, &*delivery.rest),
        ("/in/t/s/x%2Fy/?q=%41+b", "/x%2Fy/")
    );
    assert_eq!(
        delivery.external_url("https://h/p"),
        "https://h/p/x%2Fy/?q=%41+b"
    );
    let held = rig.gateway.backend.browse().unwrap().list(0, 1).unwrap();
    assert_eq!(
        data_encoding::BASE64.decode(&held[0].message.body).unwrap(),
        body
    );
}

#[tokio::test]
async fn a_chunked_body_is_put_together_and_cut_at_the_limit() {
    let rig = rig(limits()).await;
    let head = "POST /in/t/s HTTP/1.1\r\ntransfer-encoding: chunked";
    let answer = rig.request(head, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(
        (status(&answer), &rig.last().body[..]),
        ("202", b"abcde".as_slice())
    );
    let chunk = [b"800\r\n".as_slice(), &[b'x'; 0x800], b"\r\n"].concat();
    let fits = [chunk.repeat(2), b"0\r\n\r\n".to_vec()].concat();
    assert_eq!(status(&rig.request(head, &fits).await), "202");
    let over = [chunk.repeat(2), b"1\r\nx\r\n0\r\n\r\n".to_vec()].concat();
    let answer = rig.request(head, &over).await;
    assert_eq!(
        (status(&answer), content(&answer)),
        ("413", r#"{"error":"too large"}"#)
    );
    assert_eq!(rig.messages(), 2);
}

#[tokio::test]
async fn an_announced_body_above_the_limit_is_refused_before_it_is_read() {
    let rig = rig(limits()).await;
    let head =
        b"POST /in/t/s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4097\r\n\r\n";
    assert_eq!(status(&rig.exchange(head).await), "413");
}

#[tokio::test]
async fn a_body_that_ends_early_or_never_comes_is_never_accepted() {
    let rig = rig(limits()).await;
    let head =
        b"POST /in/t/s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10\r\n\r\nabc";
    assert_eq!(status(&rig.exchange(head).await), "408", "it never comes");
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(head).await.unwrap();
    stream.shutdown().await.unwrap();
    read_all(&mut stream).await;
    assert!(rig.plugin.seen.lock().unwrap().is_empty());
    assert_eq!(rig.messages(), 0);
}

#[tokio::test]
async fn any_number_of_connections_may_be_allowed() {
    let unlimited = Limits {
        max_connections: usize::MAX,
        ..limits()
    };
    let rig = rig(unlimited).await;
    let answer = rig.request("POST /in/t/s HTTP/1.1", b"{}").await;
    assert_eq!(status(&answer), "202", "{answer}");
}

#[tokio::test]
async fn a_head_that_never_ends_closes_the_connection() {
    let rig = rig(limits()).await;
    let answer = rig
        .exchange(b"POST /in/t/s HTTP/1.1\r\nhost: x\r\nx-slow: ")
        .await;
    assert!(!answer.contains("202"), "{answer}");
}

#[tokio::test]
async fn heads_above_the_limits_are_told_so() {
    let rig = rig(limits()).await;
    let large = format!("POST /in/t/s HTTP/1.1\r\nx-large: {}", "x".repeat(9000));
    assert_eq!(status(&rig.request(&large, b"{}").await), "431");
    let many: String = (0..21).map(|n| format!("\r\nx-{n}: 1")).collect();
    let many = format!("POST /in/t/s HTTP/1.1{many}");
    assert_eq!(status(&rig.request(&many, b"{}").await), "431");
    assert!(rig.plugin.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn unknown_tenants_and_sources_cannot_be_told_apart() {
    let rig = rig(limits()).await;
    let mut answers = Vec::new();
    for path in ["/in/t/other", "/in/other/s", "/in/t", "/", "/in/T/s"] {
        let answer = rig.request(&format!("POST {path} HTTP/1.1"), b"{}").await;
        assert_eq!(status(&answer), "404", "{path}");
        answers.push(content(&answer).to_owned());
    }
    answers.dedup();
    assert_eq!(answers, [r#"{"error":"no such source"}"#]);
}

#[tokio::test]
async fn handshake_methods_reach_the_plugin_and_others_are_refused() {
    let rig = rig(limits()).await;
    for method in ["GET", "HEAD", "OPTIONS", "POST"] {
        let answer = rig
            .request(&format!("{method} /in/t/s?m={method} HTTP/1.1"), b"")
            .await;
        assert!(
            ["202", "200"].contains(&status(&answer)),
            "{method}: {answer}"
        );
        assert_eq!(rig.last().method.as_str(), method);
    }
    let answer = rig.request("PUT /in/t/s HTTP/1.1", b"{}").await;
    assert_eq!(status(&answer), "405");
    assert!(
        answer.contains("allow: POST, GET, HEAD, OPTIONS"),
        "{answer}"
    );
}

#[tokio::test]
async fn bodies_beyond_the_memory_budget_are_told_to_come_again() {
    let mut generous = limits();
    generous.body_timeout = Duration::from_secs(60);
    let rig = rig(generous).await;
    let head =
        "POST /in/t/s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4096\r\n\r\n";
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    // Both shares are taken once the gauge says so.
    while rig.gateway.telemetry.bytes_in_flight().get() < 8192 {
        tokio::task::yield_now().await;
    }
    let empty = rig.request("GET /in/t/s HTTP/1.1", b"").await;
    assert_eq!(status(&empty), "503", "{empty}");
    let answer = rig.request("POST /in/t/s HTTP/1.1", b"{}").await;
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.contains("retry-after: "), "{answer}");
    for mut stream in waiting {
        stream.write_all(&[b'x'; 4096]).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(["202", "200"].contains(&status(&answer)), "{answer}");
    }
    assert_eq!(
        status(&rig.request("POST /in/t/s HTTP/1.1", b"{}").await),
        "202"
    );
    while rig.gateway.telemetry.bytes_in_flight().get() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn headers_are_seen_whatever_their_case_and_with_all_their_values() {
    let rig = rig(limits()).await;
    let head = "POST /in/t/s HTTP/1.1\r\nX-SIG: a\r\nx-sig: b\r\nX-Sig: caf\u{e9}";
    assert_eq!(status(&rig.request(head, b"{}").await), "202");
    let values: Vec<_> = rig
        .last()
        .headers
        .get_all("x-sig")
        .iter()
        .map(|v| v.as_bytes().to_vec())
        .collect();
    assert_eq!(
        values,
        [
            b"a".to_vec(),
            b"b".to_vec(),
            "caf\u{e9}".as_bytes().to_vec()
        ]
    );
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_a_hint() {
    let rig = rig(limits()).await;
    let refused = listen(rig.address, "server.listen")
        .await
        .unwrap_err()
        .to_string();
    let port = rig.address.port();
    assert!(
        refused.contains(&format!("another process has port {port}")),
        "{refused}"
    );
}

/// An HTTP/2 exchange on a stream that is ready for it.
async fn deliver_http2<S>(stream: S, count: usize) -> Vec<u16>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let streams: Vec<_> = (0..count)
        .map(|n| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                let body = http_body_util::Full::new(bytes::Bytes::from(format!("body {n}")));
                let request = Request::post("https://localhost/in/t/s")
                    .body(body)
                    .unwrap();
                sender
                    .send_request(request)
                    .await
                    .unwrap()
                    .status()
                    .as_u16()
            })
        })
        .collect();
    let mut statuses = Vec::new();
    for stream in streams {
        statuses.push(stream.await.unwrap());
    }
    statuses
}

#[tokio::test]
async fn http2_in_clear_carries_many_deliveries_on_one_connection() {
    let roomy = Limits {
        memory_budget: 1 << 20,
        ..limits()
    };
    let rig = rig(roomy).await;
    let stream = TcpStream::connect(rig.address).await.unwrap();
    assert_eq!(deliver_http2(stream, 50).await, [202; 50]);
    assert_eq!(rig.messages(), 50);
}

#[tokio::test]
async fn an_http2_preface_that_comes_in_pieces_is_recognized_and_one_that_stalls_is_closed() {
    let rig = rig(limits()).await;
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    for piece in [
        b"PRI * HT".as_slice(),
        b"TP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0\0\0\x04\0\0\0\0\0",
    ] {
        stream.write_all(piece).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "a SETTINGS frame");
    let mut stalled = TcpStream::connect(rig.address).await.unwrap();
    stalled.write_all(b"PRI * HT").await.unwrap();
    assert_eq!(read_all(&mut stalled).await, "");
    assert_eq!(
        read_all(&mut TcpStream::connect(rig.address).await.unwrap()).await,
        "",
        "silent"
    );
}

/// A certificate for localhost in files, and what trusts it.
fn certificate(directory: &std::path::Path) -> (tls::TlsFiles, rustls::ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = tls::TlsFiles {
        certificate: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
    };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (files, client)
}

#[tokio::test]
async fn tls_serves_http2_or_http1_as_the_client_asks() {
    let directory = tempfile::tempdir().unwrap();
    let (files, mut client) = certificate(directory.path());
    let rig = rig_with(limits(), Some(tls::load(&files).unwrap())).await;
    for (asks, gets) in [
        (vec!["h2", "http/1.1"], "h2"),
        (vec!["http/1.1"], "http/1.1"),
    ] {
        client.alpn_protocols = asks
            .into_iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client.clone()));
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(gets.as_bytes()));
        if gets == "h2" {
            assert_eq!(deliver_http2(stream, 3).await, [202; 3]);
            continue;
        }
        let request = b"POST /in/t/s HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(request).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 202");
    }
}

#[tokio::test]
async fn a_client_that_never_finishes_its_handshake_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (files, _) = certificate(directory.path());
    let rig = rig_with(limits(), Some(tls::load(&files).unwrap())).await;
    assert_eq!(
        read_all(&mut TcpStream::connect(rig.address).await.unwrap()).await,
        ""
    );
    let answer = rig
        .exchange(b"POST /in/t/s HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    assert!(
        !answer.contains("HTTP/1.1"),
        "in clear on a TLS port: {answer}"
    );
}

#[test]
fn certificates_and_keys_that_are_of_no_use_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let (files, _) = certificate(directory.path());
    let (other, _) = {
        let elsewhere = directory.path().join("other");
        std::fs::create_dir(&elsewhere).unwrap();
        certificate(&elsewhere)
    };
    let refused = |certificate: &std::path::Path, key: &std::path::Path| {
        let files = tls::TlsFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let error = tls::load(&files).err().unwrap().to_string();
        error.replace(&*directory.path().to_string_lossy(), "DIR")
    };
    let missing = directory.path().join("missing.pem");
    let table = [
        refused(&missing, &files.key),
        refused(&files.key, &files.key),
        refused(&files.certificate, &missing),
        refused(&files.certificate, &files.certificate),
        refused(&files.certificate, &other.key),
        refused(std::path::Path::new("env:HOOKGATE_TEST_ABSENT"), &files.key),
        refused(std::path::Path::new("env:CARGO_PKG_NAME"), &files.key),
    ];
    insta::assert_snapshot!(table.join("\n"));
}

//! Backends for the upper rungs, in a process of their own: a real Redis, a DynamoDB in memory, and what
//! answers like SQS.
//!
//! The last one is no queue: it reads a batch, answers each entry with the digest that SQS would, and forgets
//! it. It measures the gateway, and nothing else. What is injected is a delay on the way, as of a network:
//! each call is held up, and as many are on their way as come.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use hookgate::aws::{self, AwsSettings};
use hookgate::clock::SystemClock;
use hookgate::clock::skew::Skew;
use hookgate::store::dynamodb::{DynamoSettings, DynamoStore};
use hookgate_backends::redis::Redis;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use md5::{Digest, Md5};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// The table of the DynamoDB.
const TABLE: &str = "claims";

/// Runs a Redis until the process is killed. Prints where it is, behind the delay.
#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "a program for people")]
pub async fn redis(delay: Duration) {
    let redis = Redis::start(&[]).expect("a server");
    let address = behind(redis.address(), delay).await.expect("a port");
    println!("ready: redis://{address}");
    std::future::pending::<()>().await;
}

/// Runs both services of AWS until the process is killed. Prints where they are.
#[tokio::main]
#[allow(clippy::print_stdout, reason = "a program for people")]
pub async fn aws(delay: Duration) {
    let dynamodb = dynamodb().await.expect("a port");
    let dynamodb = behind(dynamodb, delay).await.expect("a port");
    let sqs = sqs(delay).await.expect("a port");
    println!("ready: http://{dynamodb} http://{sqs}");
    std::future::pending::<()>().await;
}

async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// An address from which everything goes on to that one, each piece so much later.
async fn behind(upstream: SocketAddr, delay: Duration) -> io::Result<SocketAddr> {
    if delay.is_zero() {
        return Ok(upstream);
    }
    let (listener, address) = listen().await?;
    tokio::spawn(async move {
        while let Ok((from, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(to) = TcpStream::connect(upstream).await else {
                    return;
                };
                let _ = (from.set_nodelay(true), to.set_nodelay(true));
                let ((from, back), (mut answers, to)) = (from.into_split(), to.into_split());
                let mut back = back;
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
                carry(from, to, delay).await;
            });
        }
    });
    Ok(address)
}

/// Reads on while earlier pieces are on their way.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (send, mut on_the_way) = mpsc::unbounded_channel::<(Instant, Bytes)>();
    tokio::spawn(async move {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let piece = Bytes::copy_from_slice(&piece[..length]);
            if send.send((Instant::now() + delay, piece)).is_err() {
                return;
            }
        }
    });
    while let Some((due, piece)) = on_the_way.recv().await {
        sleep_until(due).await;
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

/// A DynamoDB in this process, with the table of claims.
async fn dynamodb() -> io::Result<SocketAddr> {
    let database = dynoxide::Database::memory().map_err(io::Error::other)?;
    let (listener, address) = listen().await?;
    tokio::spawn(dynoxide::server::serve_on(listener, database));
    let timeout = Duration::from_secs(5);
    let at = AwsSettings {
        region: Some("eu-central-1".into()),
        endpoint: Some(format!("http://{address}")),
    };
    let shared = aws::configuration(&at, timeout).await;
    let settings = DynamoSettings {
        aws: at,
        table: TABLE.into(),
        timeout,
    };
    let compared = (Arc::new(Skew::of("dynamodb")), Arc::new(SystemClock) as _);
    let store = DynamoStore::new(&shared, &settings, compared);
    store.create_table().await.map_err(io::Error::other)?;
    Ok(address)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batch {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    id: String,
    message_body: String,
}

/// What answers like a FIFO queue.
async fn sqs(delay: Duration) -> io::Result<SocketAddr> {
    let (listener, address) = listen().await?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let service = service_fn(move |request| async move {
                let answer = answer(request).await;
                sleep(delay).await;
                Ok::<_, Infallible>(answer)
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

async fn answer(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let target = request.headers().get("x-amz-target").cloned();
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes);
    let target = target.as_ref().and_then(|target| target.to_str().ok());
    let (status, answer) = match target.and_then(|target| target.strip_prefix("AmazonSQS.")) {
        Some("SendMessageBatch") => batch(&body.unwrap_or_default()),
        Some("GetQueueAttributes") => (200, attributes()),
        _ => (
            400,
            json!({ "__type": "com.amazonaws.sqs#UnsupportedOperation" }),
        ),
    };
    let mut response = Response::new(Full::from(answer.to_string()));
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    let content_type = http::HeaderValue::from_static("application/x-amz-json-1.0");
    response.headers_mut().insert("content-type", content_type);
    response
}

/// The gateway's probe, whose body no queue takes, is refused as SQS refuses it.
fn batch(body: &[u8]) -> (u16, Value) {
    let batch: Batch = serde_json::from_slice(body).expect("a batch");
    if batch
        .entries
        .iter()
        .any(|entry| entry.message_body == "\u{1}")
    {
        let refusal = json!({ "__type": "com.amazonaws.sqs#InvalidMessageContents" });
        return (400, refusal);
    }
    let taken = batch.entries.iter().map(|entry| {
        let digest = HEXLOWER.encode(&Md5::digest(&entry.message_body));
        json!({ "Id": entry.id, "MessageId": entry.id, "MD5OfMessageBody": digest, "SequenceNumber": "1" })
    });
    let taken: Vec<_> = taken.collect();
    (200, json!({ "Successful": taken, "Failed": [] }))
}

fn attributes() -> Value {
    json!({ "Attributes": {
        "FifoQueue": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ApproximateNumberOfMessages": "0",
    } })
}

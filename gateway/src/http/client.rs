//! Requests to a gateway's own listeners, from the command line.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A gateway's listeners, and where each is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Deliveries come in here.
    Ingress,
    /// Health, metrics and the queue are here.
    Admin,
}

impl Listener {
    fn hint(self) -> &'static str {
        match self {
            Self::Ingress => "`--to` or `--config` says where it listens",
            Self::Admin => "`--admin` or `--config` says where its admin listener is",
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "the gateway",
            Self::Admin => "the admin listener",
        })
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error(
        "cannot reach {listener} at {address}: {reason}\n\
         hint: is the gateway running? {}", listener.hint()
    )]
    Connect {
        /// Which.
        listener: Listener,
        /// Where.
        address: SocketAddr,
        /// The system's word for it.
        reason: io::Error,
    },
    /// Not the answer of a gateway.
    #[error("{listener} at {address} did not answer: {reason}")]
    Answer {
        /// Which.
        listener: Listener,
        /// Where.
        address: SocketAddr,
        /// What came instead.
        reason: String,
    },
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The status and body of a `GET` to the admin listener.
pub async fn get(address: SocketAddr, target: &str) -> Result<(StatusCode, Bytes), ClientError> {
    let request = Request::get(target);
    let reply = exchange(Listener::Admin, address, request, Bytes::new()).await?;
    Ok((reply.status, reply.body))
}

/// The status and body of a `POST` to the admin listener, with a header that says what it is for.
pub async fn post(
    address: SocketAddr,
    target: &str,
    header: &'static str,
) -> Result<(StatusCode, Bytes), ClientError> {
    let request = Request::post(target).header(header, "yes");
    let reply = exchange(Listener::Admin, address, request, Bytes::new()).await?;
    Ok((reply.status, reply.body))
}

/// Sends a delivery to where deliveries come in.
pub async fn deliver(
    address: SocketAddr,
    method: &Method,
    target: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Reply, ClientError> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    exchange(Listener::Ingress, address, request, body).await
}

async fn exchange(
    listener: Listener,
    address: SocketAddr,
    request: request::Builder,
    body: Bytes,
) -> Result<Reply, ClientError> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|reason| ClientError::Connect {
        listener,
        address,
        reason,
    })?;
    let request = request.header("host", address.to_string());
    let reply = send(stream, request, body).await;
    reply.map_err(|error| ClientError::Answer {
        listener,
        address,
        reason: error.to_string(),
    })
}

async fn send(
    stream: TcpStream,
    request: request::Builder,
    body: Bytes,
) -> Result<Reply, Box<dyn std::error::Error + Send + Sync>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let answer = sender.send_request(request.body(Full::new(body))?).await?;
    let (head, body) = answer.into_parts();
    Ok(Reply {
        status: head.status,
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    })
}

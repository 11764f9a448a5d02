//! A provider: delivers over HTTP, keeps its connection, and retries as providers do.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A request, signed and ready to be sent any number of times.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Signed {
    /// A POST to a source.
    pub fn post(source: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            method: "POST".into(),
            target: format!("/in/{source}"),
            headers: headers.iter().map(own).collect(),
            body: body.into(),
        }
    }
}

/// What a provider sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Whether it says that the event was known.
    pub duplicate: bool,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Whether the provider takes it as a promise.
    pub fn is_promise(&self) -> bool {
        StatusCode::from_u16(self.status).is_ok_and(|status| status.is_success())
    }
}

/// A connection to a gateway, opened anew when it is gone.
pub struct Connection {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    /// A connection that is opened when it is needed.
    pub fn to(address: SocketAddr) -> Self {
        Self {
            address,
            sender: None,
        }
    }

    /// Sends a delivery once and reads the whole answer: one that is cut is no answer.
    pub async fn deliver(&mut self, signed: &Signed) -> io::Result<Answer> {
        let answer = self.attempt(signed).await;
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    async fn attempt(&mut self, signed: &Signed) -> io::Result<Answer> {
        let mut sender = match self.sender.take() {
            Some(sender) => sender,
            None => self.open().await?,
        };
        if sender.ready().await.is_err() {
            sender = self.open().await?;
        }
        let sender = self.sender.insert(sender);
        let mut request = Request::builder()
            .method(signed.method.as_str())
            .uri(&signed.target)
            .header("host", self.address.to_string());
        for (name, value) in &signed.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(signed.body.clone()))
            .map_err(io::Error::other)?;
        let answer = sender
            .send_request(request)
            .await
            .map_err(io::Error::other)?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Answer {
            status: head.status.as_u16(),
            duplicate: header("hookgate-duplicate") == Some("true"),
            retry_after: header("retry-after").and_then(|value| value.parse().ok()),
            body,
        })
    }

    async fn open(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

//! A request to the admin listener of a running gateway, from the command line.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error(
        "cannot reach the admin listener at {address}: {reason}\n\
         hint: is the gateway running? `--admin` or `--config` says where its admin listener is"
    )]
    Connect {
        /// Where.
        address: SocketAddr,
        /// The system's word for it.
        reason: io::Error,
    },
    /// Not the answer of an admin listener.
    #[error("the admin listener at {address} did not answer: {reason}")]
    Answer {
        /// Where.
        address: SocketAddr,
        /// What came instead.
        reason: String,
    },
}

/// The status and body of a `GET`.
pub async fn get(address: SocketAddr, target: &str) -> Result<(StatusCode, Bytes), ClientError> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|reason| ClientError::Connect { address, reason })?;
    exchange(stream, address, target)
        .await
        .map_err(|error| ClientError::Answer {
            address,
            reason: error.to_string(),
        })
}

async fn exchange(
    stream: TcpStream,
    address: SocketAddr,
    target: &str,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(target).header("host", address.to_string());
    let answer = sender
        .send_request(request.body(Empty::<Bytes>::new())?)
        .await?;
    let status = answer.status();
    Ok((status, answer.into_body().collect().await?.to_bytes()))
}

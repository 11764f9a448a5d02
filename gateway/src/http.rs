//! The listeners: accept, serve, drain. Only this module and its children name hyper.

pub mod admin;
mod answer;
pub mod client;
mod ingress;
pub mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::telemetry::SharedTelemetry;

pub use ingress::Ingress;

/// Streams that an HTTP/2 connection may have at once.
const MAX_STREAMS: u32 = 128;
/// What an HTTP/2 client may send ahead of what is read, in bytes.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// What a connection may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest body, in bytes.
    pub max_body: usize,
    /// The largest head of a request, in bytes.
    pub max_header_bytes: usize,
    /// The most headers of a request.
    pub max_headers: usize,
    /// How long a head may take to arrive, idle time of a kept connection included.
    pub header_timeout: Duration,
    /// How long a body may take to arrive, counted from its head.
    pub body_timeout: Duration,
    /// The most connections at once; more wait to be accepted.
    pub max_connections: usize,
    /// What the bodies of all deliveries may hold at once, in bytes.
    pub memory_budget: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 1 << 20,
            max_header_bytes: 32 << 10,
            max_headers: 100,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(10),
            max_connections: 10_000,
            memory_budget: 256 << 20,
        }
    }
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}\nhint: {}", hint(reason, *.address, .key))]
pub struct ListenError {
    address: SocketAddr,
    key: &'static str,
    #[source]
    reason: std::io::Error,
}

fn hint(reason: &std::io::Error, address: SocketAddr, key: &str) -> String {
    match reason.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "another process has port {}; stop it or choose another `{key}`",
                address.port()
            )
        }
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE".into()
        }
        _ => format!("check the address in `{key}`"),
    }
}

/// Opens a listener at the address that the configuration has at this key.
pub async fn listen(address: SocketAddr, key: &'static str) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address)
        .await
        .map_err(|reason| ListenError {
            address,
            key,
            reason,
        })
}

/// Whether the gateway wants deliveries; shared by the listeners.
#[derive(Debug, Default)]
pub struct Readiness {
    wanted: AtomicBool,
    troubles: ArcSwap<Troubles>,
    refused: ArcSwapOption<String>,
}

/// What an operator should know of a gateway that may be of no use.
#[derive(Debug, Default)]
pub struct Troubles {
    /// Each in a sentence.
    pub all: Vec<String>,
    /// Whether they make deliveries useless here, while another gateway may take them.
    pub is_grave: bool,
}

impl Readiness {
    /// Sets whether deliveries are wanted.
    pub fn set(&self, ready: bool) {
        self.wanted.store(ready, Ordering::SeqCst);
    }

    /// Sets what is in trouble.
    pub fn trouble(&self, troubles: Troubles) {
        self.troubles.store(Arc::new(troubles));
    }

    /// What is in trouble.
    pub fn troubles(&self) -> Arc<Troubles> {
        self.troubles.load_full()
    }

    /// Sets what is wrong with the files as they are now, while what was before them holds.
    pub fn refuse(&self, why: Option<String>) {
        self.refused.store(why.map(Arc::new));
    }

    /// What is wrong with the files.
    pub fn refused(&self) -> Option<Arc<String>> {
        self.refused.load_full()
    }

    /// Whether deliveries are wanted.
    pub fn get(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) && !self.troubles.load().is_grave
    }
}

/// Answers requests of one listener.
pub trait Handle: Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = bytes::Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// Answers a request.
    fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Accepts connections until `stop` resolves, then closes idle ones and waits for the others.
pub async fn serve<H: Handle>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    limits: Limits,
    telemetry: SharedTelemetry,
    stop: impl Future<Output = ()>,
) {
    let most = limits.max_connections.min(Semaphore::MAX_PERMITS);
    let connections = Arc::new(Semaphore::new(most));
    let server = Arc::new(Server {
        http1: http1(&limits),
        http2: http2(&limits),
        tls,
        limits,
    });
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            // The permit first: what is not accepted yet costs nothing here.
            let permit = Arc::clone(&connections).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match (accepted, permit) {
            (Ok((stream, _)), Ok(permit)) => {
                let (server, handler) = (Arc::clone(&server), Arc::clone(&handler));
                let (watcher, telemetry) = (graceful.watcher(), Arc::clone(&telemetry));
                tokio::spawn(async move {
                    telemetry.connections().inc();
                    if let Err(error) = server.connection(stream, handler, watcher).await {
                        tracing::debug!(%error, "connection ended");
                    }
                    telemetry.connections().dec();
                    drop(permit);
                });
            }
            // Out of file descriptors, mostly: others must close theirs first.
            (Err(error), _) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            (_, Err(_)) => break,
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

fn http1(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.max_headers)
        .max_buf_size(limits.max_header_bytes.max(8 << 10));
    builder
}

fn http2(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let header_bytes = u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(header_bytes)
        // What a client may send ahead of what is read, for all of a connection's streams.
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(64 << 10)
        // A client that opens and resets streams faster than they are taken is cut off (CVE-2023-44487).
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(100)
        .keep_alive_interval(limits.header_timeout)
        .keep_alive_timeout(limits.header_timeout);
    builder
}

/// What every connection of a listener is served with.
struct Server {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

impl Server {
    async fn connection<H: Handle>(
        &self,
        stream: TcpStream,
        handler: Arc<H>,
        watcher: Watcher,
    ) -> Result<(), ConnectionError> {
        // An answer is one small write: waiting to fill a packet only delays it.
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            let is_http2 = timeout(self.limits.header_timeout, begins_http2(&stream)).await??;
            return self.requests(stream, is_http2, handler, watcher).await;
        };
        let stream = timeout(self.limits.header_timeout, tls.accept(stream)).await??;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.requests(stream, is_http2, handler, watcher).await
    }

    async fn requests<H: Handle>(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_http2: bool,
        handler: Arc<H>,
        watcher: Watcher,
    ) -> Result<(), ConnectionError> {
        let service = service_fn(move |request| {
            let handler = Arc::clone(&handler);
            async move { Ok::<_, Infallible>(handler.handle(request).await) }
        });
        let stream = TokioIo::new(stream);
        if is_http2 {
            watcher
                .watch(self.http2.serve_connection(stream, service))
                .await?;
        } else {
            watcher
                .watch(self.http1.serve_connection(stream, service))
                .await?;
        }
        Ok(())
    }
}

/// Whether a connection in clear begins with HTTP/2's preface (RFC 9113, 3.4). Nothing is taken from it.
async fn begins_http2(stream: &TcpStream) -> std::io::Result<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut seen = [0; PREFACE.len()];
    let mut before = 0;
    loop {
        let length = stream.peek(&mut seen).await?;
        if length == PREFACE.len() || length == 0 || !PREFACE.starts_with(&seen[..length]) {
            return Ok(seen == PREFACE);
        }
        // Peeking does not wait for more than there is: look again once there may be more.
        if length == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        before = length;
    }
}

#[cfg(test)]
mod tests;

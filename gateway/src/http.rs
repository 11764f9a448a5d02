//! The listeners: accept, serve, drain. Only this module and its children name hyper.

pub mod admin;
mod answer;
pub mod client;
mod ingress;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::SharedTelemetry;

pub use ingress::Ingress;

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
pub struct Readiness(AtomicBool);

impl Readiness {
    /// Sets whether deliveries are wanted.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::SeqCst);
    }

    /// Whether deliveries are wanted.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
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
    handler: Arc<H>,
    limits: Limits,
    telemetry: SharedTelemetry,
    stop: impl Future<Output = ()>,
) {
    let server = server(&limits);
    let connections = Arc::new(Semaphore::new(limits.max_connections));
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
                let handler = Arc::clone(&handler);
                let (server, watcher) = (server.clone(), graceful.watcher());
                let telemetry = Arc::clone(&telemetry);
                tokio::spawn(connection(
                    server, stream, handler, watcher, permit, telemetry,
                ));
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

fn server(limits: &Limits) -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.max_headers)
        .max_buf_size(limits.max_header_bytes.max(8 << 10));
    server
}

async fn connection<H: Handle>(
    server: http1::Builder,
    stream: TcpStream,
    handler: Arc<H>,
    watcher: Watcher,
    permit: OwnedSemaphorePermit,
    telemetry: SharedTelemetry,
) {
    // An answer is one small write: waiting to fill a packet only delays it.
    let _ = stream.set_nodelay(true);
    telemetry.connections().inc();
    let service = service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, std::convert::Infallible>(handler.handle(request).await) }
    });
    let served = watcher
        .watch(server.serve_connection(TokioIo::new(stream), service))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
    telemetry.connections().dec();
    drop(permit);
}

#[cfg(test)]
mod tests;

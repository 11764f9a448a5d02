//! A client that does not wait to be served: deliveries at a fixed rate, each timed from the moment it was due.
//!
//! A closed loop sends the next one when the last is answered, so that a server that stalls is asked less and
//! looks faster than it is. Here what falls due meanwhile waits for a free connection, and that counts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What is not counted: connections and caches warm up.
const WARM_UP: Duration = Duration::from_millis(500);

/// What to send, how often and for how long.
pub struct Load {
    /// The gateway.
    pub address: SocketAddr,
    /// Deliveries a second.
    pub rate: u32,
    /// How long it is counted.
    pub lasts: Duration,
    /// How many can be under way at once.
    pub connections: usize,
    /// The signature's header and the body.
    pub signature: String,
    /// The body.
    pub body: Bytes,
}

/// What came of it. Times are from the moment that a delivery was due.
pub struct Latencies {
    sorted: Vec<Duration>,
    /// Deliveries without a 202.
    pub failed: usize,
}

impl Latencies {
    /// The time within which so many of 1000 were answered.
    pub fn permille(&self, of_1000: usize) -> Duration {
        let at = (self.sorted.len() * of_1000 / 1000).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(at).copied().unwrap_or_default()
    }

    /// How many were counted.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }
}

/// What the connections share.
struct Schedule {
    load: Load,
    start: Instant,
    /// One permit for each delivery that is due.
    due: Semaphore,
    next: AtomicU64,
    taken: Mutex<Vec<Duration>>,
    failed: AtomicUsize,
}

impl Schedule {
    fn due_at(&self, number: u64) -> Instant {
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(self.load.rate.max(1));
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn total(&self) -> u64 {
        let seconds = (WARM_UP + self.load.lasts).as_millis();
        u64::try_from(seconds).unwrap_or(u64::MAX) * u64::from(self.load.rate) / 1000
    }

    /// Lets deliveries go as they fall due. The system wakes it some 50 us late, which counts for each rung.
    fn pace(&self) {
        for number in 0..self.total() {
            while let Some(early) = self.due_at(number).checked_duration_since(Instant::now()) {
                std::thread::park_timeout(early);
            }
            self.due.add_permits(1);
        }
        self.due.close();
    }

    fn request(&self, number: u64) -> Request<Full<Bytes>> {
        let id = format!("{}-{number}", self.start.elapsed().as_nanos());
        let request = Request::post("/in/t/gh")
            .header("host", "ladder")
            .header("content-type", "application/json")
            .header("x-github-event", "issues")
            .header("x-github-delivery", id)
            .header(super::decision::SIGNATURE, &self.load.signature);
        request
            .body(Full::new(self.load.body.clone()))
            .expect("a request")
    }

    /// One connection's part, until the last is due. Permits that were given are used after the end too.
    async fn deliver(&self, mut connection: SendRequest<Full<Bytes>>) {
        let counted_from = self.start + WARM_UP;
        loop {
            if let Ok(permit) = self.due.acquire().await {
                permit.forget();
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.total() {
                return;
            }
            let due = self.due_at(number);
            let good = attempt(&mut connection, self.request(number)).await;
            if due < counted_from {
                continue;
            }
            let taken = due.elapsed();
            self.taken
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(taken);
            if !good {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

async fn attempt(connection: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> bool {
    if connection.ready().await.is_err() {
        return false;
    }
    let Ok(answer) = connection.send_request(request).await else {
        return false;
    };
    let status = answer.status();
    status == StatusCode::ACCEPTED && answer.into_body().collect().await.is_ok()
}

async fn connect(address: SocketAddr) -> std::io::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(std::io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends the load. Fails where the connections cannot be had.
#[tokio::main(flavor = "current_thread")]
pub async fn run(load: Load) -> std::io::Result<Latencies> {
    let mut connections = Vec::new();
    for _ in 0..load.connections {
        connections.push(connect(load.address).await?);
    }
    let schedule = Arc::new(Schedule {
        load,
        start: Instant::now(),
        due: Semaphore::new(0),
        next: AtomicU64::new(0),
        taken: Mutex::default(),
        failed: AtomicUsize::new(0),
    });
    let pacer = Arc::clone(&schedule);
    let pacer = std::thread::spawn(move || pacer.pace());
    let mut running = JoinSet::new();
    for connection in connections {
        let schedule = Arc::clone(&schedule);
        running.spawn(async move { schedule.deliver(connection).await });
    }
    running.join_all().await;
    let _ = pacer.join();
    let mut sorted = std::mem::take(
        &mut *schedule
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    sorted.sort_unstable();
    let failed = schedule.failed.load(Ordering::Relaxed);
    Ok(Latencies { sorted, failed })
}

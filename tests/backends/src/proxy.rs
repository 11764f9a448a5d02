//! A proxy that breaks what passes through it, request by request: HTTP/1.1 (the AWS SDKs) and RESP (Redis).
//!
//! Per connection one request goes through at a time, in order, so that "cut after the backend applied it"
//! means exactly that. What is broken is told by a plan, which can be changed at any moment, and everything
//! that fired is in a log. A random plan's n-th decision depends on its seed and on n alone.

mod frame;
mod plan;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use frame::Protocol;
pub use plan::{Fault, Plan};

/// Something that was broken.
#[derive(Debug, Clone, PartialEq)]
pub struct Fired {
    /// The how manieth request of those that the plan is about, from 0; the how manieth connection, where it
    /// was refused.
    pub number: u64,
    /// The command, or the operation.
    pub operation: String,
    /// What happened to it.
    pub fault: Fault,
}

/// A proxy on a free port. Everything ends when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    protocol: Protocol,
    upstream: SocketAddr,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Plan,
    fired: Vec<Fired>,
    connections: u64,
    requests: u64,
    replies: u64,
}

impl FaultProxy {
    /// Stands in front of a server.
    pub async fn start(upstream: SocketAddr, protocol: Protocol, plan: Plan) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = State {
            plan,
            ..State::default()
        };
        let shared = Arc::new(Shared {
            protocol,
            upstream,
            state: Mutex::new(state),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Follows another plan from now on.
    pub fn set(&self, plan: Plan) {
        self.shared.state().plan = plan;
    }

    /// What was broken so far.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.state().fired.clone()
    }

    /// Requests that came in whole.
    pub fn requests(&self) -> u64 {
        self.shared.state().requests
    }

    /// Answers that were passed on.
    pub fn replies(&self) -> u64 {
        self.shared.state().replies
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection is let in.
    fn admits(&self) -> bool {
        let mut state = self.state();
        let number = state.connections;
        state.connections += 1;
        let refused = state.plan.refuses(number);
        if refused {
            state.fired.push(Fired {
                number,
                operation: "connect".to_owned(),
                fault: Fault::Refuse,
            });
        }
        !refused
    }

    /// What happens to this request.
    fn fault(&self, request: &[u8]) -> Fault {
        let operation = self.protocol.operation(request);
        let mut state = self.state();
        state.requests += 1;
        let Some((number, fault)) = state.plan.next(&operation) else {
            return Fault::None;
        };
        if fault != Fault::None {
            state.fired.push(Fired {
                number,
                operation,
                fault: fault.clone(),
            });
        }
        fault
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        // Nobody waits for the ends, so they are collected on the way.
        while connections.try_join_next().is_some() {}
        if shared.admits() {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                let _ = Connection::serve(client, &shared).await;
            });
        }
    }
}

/// One client and the server behind it.
struct Connection<'a> {
    shared: &'a Shared,
    client: TcpStream,
    from_client: Vec<u8>,
    server: TcpStream,
    from_server: Vec<u8>,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Close,
}

impl<'a> Connection<'a> {
    async fn serve(client: TcpStream, shared: &'a Shared) -> io::Result<()> {
        let server = TcpStream::connect(shared.upstream).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut connection = Self {
            shared,
            client,
            from_client: Vec::new(),
            server,
            from_server: Vec::new(),
        };
        while let Some(request) = connection.request().await? {
            if connection.pass(&request).await? == Go::Close {
                break;
            }
        }
        Ok(())
    }

    async fn request(&mut self) -> io::Result<Option<Vec<u8>>> {
        let protocol = self.shared.protocol;
        read(&mut self.client, &mut self.from_client, |bytes, _| {
            protocol.request(bytes)
        })
        .await
    }

    async fn pass(&mut self, request: &[u8]) -> io::Result<Go> {
        match self.shared.fault(request) {
            Fault::None => {}
            Fault::Delay(time) => tokio::time::sleep(time).await,
            Fault::Refuse | Fault::CutBefore => return Ok(Go::Close),
            Fault::CutAfter => {
                self.exchange(request).await?;
                return Ok(Go::Close);
            }
            Fault::Blackhole => {
                let mut ignored = [0; 4096];
                while self.client.read(&mut ignored).await? > 0 {}
                return Ok(Go::Close);
            }
            Fault::Answer(bytes) => {
                self.client.write_all(&bytes).await?;
                return Ok(Go::On);
            }
        }
        let Some(reply) = self.exchange(request).await? else {
            return Ok(Go::Close);
        };
        // Counted first: who has the answer may ask for the count.
        self.shared.state().replies += 1;
        self.client.write_all(&reply).await?;
        Ok(Go::On)
    }

    /// The server's whole answer; none where it ended instead.
    async fn exchange(&mut self, request: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.server.write_all(request).await?;
        let protocol = self.shared.protocol;
        read(&mut self.server, &mut self.from_server, |bytes, ended| {
            protocol.reply(request, bytes, ended)
        })
        .await
    }
}

/// Reads until `whole` finds the length of what stands at the beginning; none where the other end closed
/// before.
async fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    whole: impl Fn(&[u8], bool) -> Option<usize>,
) -> io::Result<Option<Vec<u8>>> {
    let mut ended = false;
    loop {
        if let Some(length) = whole(buffer, ended) {
            let rest = buffer.split_off(length);
            return Ok(Some(std::mem::replace(buffer, rest)));
        }
        if ended {
            return Ok(None);
        }
        ended = stream.read_buf(buffer).await? == 0;
    }
}

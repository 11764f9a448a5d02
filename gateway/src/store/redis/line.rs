//! One connection to one server, which many calls share: requests are pipelined, and none is ever sent twice.
//!
//! The library's own connection manager and cluster client resend after a lost connection, which would turn
//! "nobody knows" into "refused". Here connecting is a step of its own, so that what fails in it is certain
//! not to have been sent, and what fails behind it is not.
//!
//! *Cancel safety*: a call that is dropped was perhaps done. A connection that kept a caller waiting for too
//! long is left to those who still wait on it; the next call makes a new one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, Value};

use super::dial::Target;
use super::fault::Fault;

/// How long a failed attempt to connect stands for those who ask next.
const PAUSE: Duration = Duration::from_millis(100);

/// What is asked of a server.
pub(super) struct Request {
    pub command: Cmd,
    /// What has to hear of it before it counts, if anything.
    pub wait: Option<Wait>,
}

/// Replicas that have to confirm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub replicas: u32,
    pub timeout: Duration,
}

/// What it answers.
pub(super) struct Reply {
    pub value: Value,
    /// How many replicas confirmed, where that was asked for.
    pub confirmed: Option<u32>,
}

pub(super) struct Line {
    target: Arc<Target>,
    open: Mutex<Option<Open>>,
    /// Held by the one that connects. Holds the last failure.
    connecting: tokio::sync::Mutex<Option<(Instant, Fault)>>,
    made: AtomicU64,
}

#[derive(Clone)]
struct Open {
    number: u64,
    connection: MultiplexedConnection,
}

impl Line {
    pub fn new(target: Arc<Target>) -> Self {
        Self {
            target,
            open: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            made: AtomicU64::default(),
        }
    }

    /// Asks once. `asking` goes before it in the same write where a slot is on the move.
    pub async fn call(&self, request: &Request, asking: bool) -> Result<Reply, Fault> {
        let open = self.connection().await?;
        let mut watch = Watch {
            line: self,
            number: open.number,
            since: Instant::now(),
            answered: false,
        };
        let reply = request.send(open.connection, asking).await;
        watch.answered = true;
        reply.map_err(|error| {
            let fault = Fault::of_call(self.target.name(), &error);
            if fault.is_of_connection() {
                self.leave(open.number);
            }
            fault
        })
    }

    async fn connection(&self) -> Result<Open, Fault> {
        if let Some(open) = self.open().clone() {
            return Ok(open);
        }
        let mut failed = self.connecting.lock().await;
        if let Some(open) = self.open().clone() {
            return Ok(open);
        }
        match &*failed {
            Some((at, fault)) if at.elapsed() < PAUSE => return Err(fault.clone()),
            _ => {}
        }
        match self.target.connect().await {
            Ok(connection) => Ok(self.opened(connection)),
            Err(fault) => {
                *failed = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }

    fn opened(&self, connection: MultiplexedConnection) -> Open {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let open = Open { number, connection };
        *self.open() = Some(open.clone());
        open
    }

    /// No call begins on that connection any more.
    fn leave(&self, number: u64) {
        let mut open = self.open();
        if open.as_ref().is_some_and(|open| open.number == number) {
            *open = None;
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Request {
    async fn send(
        &self,
        mut connection: MultiplexedConnection,
        asking: bool,
    ) -> redis::RedisResult<Reply> {
        if !asking && self.wait.is_none() {
            let value = connection.send_packed_command(&self.command).await?;
            let (value, confirmed) = (value.extract_error()?, None);
            return Ok(Reply { value, confirmed });
        }
        let pipeline = self.pipeline(asking);
        let replies = connection.send_packed_commands(&pipeline, 0, pipeline.len());
        let mut replies = replies.await?.into_iter().map(Value::extract_error);
        if asking {
            replies.next().transpose()?;
        }
        let value = replies.next().transpose()?.unwrap_or(Value::Nil);
        let confirmed = match self.wait {
            Some(_) => Some(match replies.next().transpose()? {
                Some(Value::Int(count)) => u32::try_from(count).unwrap_or_default(),
                _ => 0,
            }),
            None => None,
        };
        Ok(Reply { value, confirmed })
    }

    fn pipeline(&self, asking: bool) -> Pipeline {
        let mut pipeline = redis::pipe();
        if asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(self.command.clone());
        if let Some(wait) = self.wait {
            let ms = u64::try_from(wait.timeout.as_millis()).unwrap_or(u64::MAX);
            pipeline.cmd("WAIT").arg(wait.replicas).arg(ms.max(1));
        }
        pipeline
    }
}

/// Leaves a connection whose caller gave up before the answer came.
struct Watch<'a> {
    line: &'a Line,
    number: u64,
    since: Instant,
    answered: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // A caller that left early says nothing about the connection.
        if !self.answered && self.since.elapsed() >= self.line.target.patience() / 2 {
            self.line.leave(self.number);
        }
    }
}

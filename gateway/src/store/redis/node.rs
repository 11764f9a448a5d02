//! A server: the connection that all calls share, and those on which a settlement waits for replicas.
//!
//! WAIT holds up whatever is behind it on its connection, and counts the writes of its own connection only.
//! So what waits is written and waits on a few connections apart from the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::dial::Target;
use super::fault::Fault;
use super::line::{Line, Reply, Request};

/// Settlements that may wait for replicas at once, per server.
pub(super) const WAITING_LINES: usize = 8;

pub(super) struct Node {
    target: Arc<Target>,
    line: Line,
    waiting: Vec<Line>,
    turn: AtomicUsize,
}

impl Node {
    /// Connects when it is first asked. `waiting` reaches the same server with more patience.
    pub fn new(target: Target, waiting: Target) -> Self {
        let (target, waiting) = (Arc::new(target), Arc::new(waiting));
        let lines = (0..WAITING_LINES).map(|_| Line::new(Arc::clone(&waiting)));
        Self {
            line: Line::new(Arc::clone(&target)),
            waiting: lines.collect(),
            turn: AtomicUsize::default(),
            target,
        }
    }

    pub fn name(&self) -> &str {
        self.target.name()
    }

    pub async fn call(&self, request: &Request, asking: bool) -> Result<Reply, Fault> {
        let line = if request.wait.is_some() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            &self.waiting[turn % WAITING_LINES]
        } else {
            &self.line
        };
        line.call(request, asking).await
    }
}

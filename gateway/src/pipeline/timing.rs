//! The bounds on time, all in one place, and the pauses between attempts.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Every bound on time that the protocol's guarantees rest on. Operators' values are validated against each
/// other (see [`Timing::check`]); tests make their own.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How long one call of the claim store may take.
    pub claim_timeout: Duration,
    /// How long one call of the queue may take.
    pub enqueue_timeout: Duration,
    /// How long the broker remembers a deduplication id (SQS FIFO: 300 s).
    pub window: Duration,
    /// How far clocks may be apart.
    pub skew: Duration,
    /// How long settling is tried.
    pub settle_for: Duration,
    /// The pause before a call is tried again; it doubles up to a second.
    pub backoff: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            claim_timeout: Duration::from_secs(1),
            enqueue_timeout: Duration::from_secs(2),
            window: Duration::from_secs(300),
            skew: Duration::from_secs(10),
            settle_for: Duration::from_secs(600),
            backoff: Duration::from_millis(50),
        }
    }
}

impl Timing {
    /// The shortest lease under which an honest owner can finish.
    pub fn lease_floor(&self) -> Duration {
        self.claim_timeout + self.enqueue_timeout + Duration::from_secs(1)
    }

    /// Whether a lease leaves room for everything that can go wrong within half the window.
    pub fn allows(&self, lease: Duration) -> bool {
        lease + 2 * self.skew + self.enqueue_timeout <= self.window / 2
    }
}

/// A pause that doubles, up to a second; each time half of it at least, the rest by chance, so that those who
/// failed together do not come back together.
pub(super) struct Backoff(Duration);

/// The deadline has come.
pub(super) struct Late;

impl Backoff {
    pub(super) fn new(first: Duration) -> Self {
        Self(first)
    }

    pub(super) async fn wait(&mut self) {
        sleep(self.0.mul_f64(fastrand::f64().midpoint(1.0))).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(1));
    }

    /// Waits, unless the deadline has come; then not any longer than until it.
    pub(super) async fn before(&mut self, deadline: Instant) -> Result<(), Late> {
        if Instant::now() >= deadline {
            return Err(Late);
        }
        let _ = timeout_at(deadline, self.wait()).await;
        Ok(())
    }
}

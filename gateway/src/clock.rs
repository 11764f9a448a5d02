//! Time as the protocol sees it: a wall clock for what is compared across processes, and a monotonic one for
//! what this process measures. Both come from here alone, so that tests own them.

pub mod skew;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The two clocks.
pub trait Clock: Send + Sync {
    /// ms since 1970. May jump in either direction.
    fn wall_ms(&self) -> u64;

    /// Time since some moment in this process's life. Never goes back; stands still while the machine sleeps.
    fn monotonic(&self) -> Duration;
}

/// A clock that all parts of a gateway share.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        #[allow(clippy::disallowed_methods, reason = "this is the clock seam")]
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// Clocks that stand still until they are moved, each by itself.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    monotonic_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that shows this wall time, in ms since 1970.
    pub fn at(wall_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            wall_ms: wall_ms.into(),
            monotonic_ms: AtomicU64::new(0),
        })
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the wall clock alone.
    pub fn set_wall(&self, wall_ms: u64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::SeqCst))
    }
}

/// A span that is over as soon as either clock says so: a process that was stopped, or a machine that slept,
/// must not believe that no time went by, and a wall clock that steps back must not lengthen it.
#[derive(Clone)]
pub struct Span {
    clock: SharedClock,
    wall_start: u64,
    monotonic_start: Duration,
    length: Duration,
}

impl Span {
    /// Begins now.
    pub fn start(clock: &SharedClock, length: Duration) -> Self {
        Self {
            clock: Arc::clone(clock),
            wall_start: clock.wall_ms(),
            monotonic_start: clock.monotonic(),
            length,
        }
    }

    /// What has passed on the clock that ran further.
    pub fn elapsed(&self) -> Duration {
        let wall = Duration::from_millis(self.clock.wall_ms().saturating_sub(self.wall_start));
        wall.max(self.clock.monotonic().saturating_sub(self.monotonic_start))
    }

    /// What is left; zero once it is over.
    pub fn left(&self) -> Duration {
        self.length.saturating_sub(self.elapsed())
    }

    /// Whether it still runs. A span of 5 s still runs at 5.0 s.
    pub fn is_running(&self) -> bool {
        self.elapsed() <= self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_700_000_000_000;

    fn span(clock: &Arc<ManualClock>) -> Span {
        let shared: SharedClock = Arc::<ManualClock>::clone(clock);
        Span::start(&shared, Duration::from_secs(5))
    }

    #[test]
    fn a_lease_counts_from_the_moment_before_its_claim_was_sent() {
        let clock = ManualClock::at(NOON);
        let lease = span(&clock);
        clock.advance(Duration::from_millis(900)); // the claim's answer
        assert_eq!(lease.left(), Duration::from_millis(4100));
        clock.advance(Duration::from_millis(4100));
        assert!(lease.is_running());
        clock.advance(Duration::from_millis(1));
        assert!(!lease.is_running());
    }

    #[test]
    fn a_suspended_owner_sees_the_wall_clocks_time() {
        let clock = ManualClock::at(NOON);
        let lease = span(&clock);
        clock.advance(Duration::from_secs(2));
        clock.set_wall(NOON + 360_000);
        assert_eq!(lease.elapsed(), Duration::from_secs(360));
        assert!(!lease.is_running());
    }

    #[test]
    fn a_wall_clock_that_steps_back_does_not_lengthen_the_lease() {
        let clock = ManualClock::at(NOON);
        let lease = span(&clock);
        clock.advance(Duration::from_secs(6));
        clock.set_wall(NOON - 3_600_000);
        assert_eq!(lease.elapsed(), Duration::from_secs(6));
        assert!(!lease.is_running());
    }
}

//! How far the clock of a backend is from this machine's: what every answer that carries the time tells.
//!
//! Only what is certain counts: a stamp made anywhere between a request and its answer is no skew, however
//! slow the call was.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A clock that is compared with this machine's.
#[derive(Debug)]
pub struct Skew {
    backend: &'static str,
    /// ms that it is certainly ahead; negative where it is behind.
    ahead_ms: AtomicI64,
}

impl Skew {
    /// Of a backend that has not told its time yet.
    pub fn of(backend: &'static str) -> Self {
        Self {
            backend,
            ahead_ms: AtomicI64::new(0),
        }
    }

    /// The backend's name in logs and metrics.
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// A stamp of the backend, exact to `resolution`, in an answer that was asked for at `asked` and had at
    /// `had` by this machine's clock; all in ms since 1970.
    pub fn observe(&self, asked: u64, had: u64, stamp: u64, resolution: Duration) {
        let resolution = u64::try_from(resolution.as_millis()).unwrap_or(u64::MAX);
        let ahead = stamp.saturating_sub(had);
        let behind = asked.saturating_sub(stamp.saturating_add(resolution));
        let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        self.ahead_ms
            .store(ms(ahead) - ms(behind), Ordering::Relaxed);
    }

    /// How far apart the clocks certainly were at the last answer.
    pub fn apart(&self) -> Duration {
        Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Seconds that the backend was ahead; negative where it was behind.
    pub fn ahead_seconds(&self) -> f64 {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a metric: 52 bits of ms are enough"
        )]
        let ms = self.ahead_ms.load(Ordering::Relaxed) as f64;
        ms / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const EXACT: Duration = Duration::ZERO;

    #[test]
    fn a_stamp_made_during_the_call_is_no_skew() {
        let skew = Skew::of("redis");
        for stamp in [10_000, 10_900, 11_000] {
            skew.observe(10_000, 11_000, stamp, EXACT);
            assert_eq!(skew.apart(), Duration::ZERO);
        }
    }

    #[test]
    fn a_whole_second_is_no_skew_within_itself() {
        let skew = Skew::of("sqs");
        skew.observe(10_999, 11_005, 10_000, SECOND);
        assert_eq!(skew.apart(), Duration::ZERO);
        skew.observe(12_500, 12_505, 10_000, SECOND);
        assert_eq!(
            (skew.apart(), skew.ahead_seconds()),
            (Duration::from_millis(1500), -1.5)
        );
    }

    #[test]
    fn a_clock_that_is_ahead_is_told_from_one_that_is_behind() {
        let skew = Skew::of("redis");
        skew.observe(10_000, 10_010, 13_010, EXACT);
        assert_eq!((skew.apart(), skew.ahead_seconds()), (3 * SECOND, 3.0));
        skew.observe(10_000, 10_010, 7_000, EXACT);
        assert_eq!((skew.apart(), skew.ahead_seconds()), (3 * SECOND, -3.0));
    }
}

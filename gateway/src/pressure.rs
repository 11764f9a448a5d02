//! Whether a queue takes new events: its depth against two water marks, and what this process feels itself.
//!
//! Below the low mark everybody is served; between the marks, tenants within their fair share of what is
//! accepted; above the high mark nobody, until half of the way down is worked off. A reading that is stale
//! counts for nothing: a queue that cannot be asked is judged by what sending to it is like. Duplicates are
//! no business of this file, and nothing here waits.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use prometheus_client::metrics::gauge::Gauge;

use crate::clock::SharedClock;
use crate::delivery::Name;
use crate::queue::{Depth, QueueError};
use crate::telemetry::SharedTelemetry;

/// A reading this many polls old is stale.
const STALE_AFTER: u32 = 6;

/// When new events are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The depth from which on nobody's new events are taken.
    pub high_water: u64,
    /// The depth from which on only those of tenants within their fair share are.
    pub low_water: u64,
    /// How often the depth is read, and shares are reckoned.
    pub poll: Duration,
    /// The most events at work in this process.
    pub max_running: usize,
    /// The average time of sending from which on it counts as between the marks.
    pub slow_send: Duration,
    /// What deliveries may hold, in bytes: three quarters of it count as between the marks.
    pub memory_budget: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            high_water: 100_000,
            low_water: 80_000,
            poll: Duration::from_secs(5),
            max_running: 10_000,
            slow_send: Duration::from_secs(1),
            memory_budget: 256 << 20,
        }
    }
}

/// Whose new events are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everybody's.
    Open,
    /// Those of tenants within their fair share.
    Shared,
    /// Nobody's.
    Full,
}

impl Level {
    /// As a metric and in `/readyz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Shared => "shared",
            Self::Full => "full",
        }
    }
}

/// A queue's pressure.
pub struct Pressure {
    limits: Limits,
    clock: SharedClock,
    telemetry: SharedTelemetry,
    /// What the last reading said, as a [`Level`].
    by_depth: AtomicU8,
    /// When that was, in ms of the monotonic clock.
    read_at: AtomicU64,
    /// The average time of sending, in us; zero where nothing was sent since the last poll.
    send_us: AtomicU64,
    /// Sends since the last poll, and how many of them were told to come later.
    sends: AtomicU64,
    throttled: AtomicU64,
    /// Whether many were in the last whole interval.
    is_throttled: AtomicU8,
    /// New events that were taken since the last poll, by tenant.
    taken: DashMap<Name, u64>,
    /// A tenant's fair share of those: an equal part of the last interval's.
    fair: AtomicU64,
}

impl Pressure {
    /// No pressure yet.
    pub fn new(limits: Limits, clock: SharedClock, telemetry: SharedTelemetry) -> Self {
        Self {
            limits,
            clock,
            telemetry,
            by_depth: AtomicU8::new(Level::Open as u8),
            read_at: AtomicU64::new(0),
            send_us: AtomicU64::new(0),
            sends: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            is_throttled: AtomicU8::new(0),
            taken: DashMap::new(),
            fair: AtomicU64::new(u64::MAX),
        }
    }

    /// How often [`Self::poll`] is due.
    pub fn interval(&self) -> Duration {
        self.limits.poll
    }

    /// Whether a tenant's new event may be taken now. If so it counts as taken.
    pub fn takes(&self, tenant: &Name) -> bool {
        let level = self.level();
        if level == Level::Full {
            return false;
        }
        let fair = match level {
            Level::Shared => self.fair.load(Ordering::Relaxed),
            _ => u64::MAX,
        };
        let take = |taken: &mut u64| {
            let takes = *taken < fair;
            *taken += u64::from(takes);
            takes
        };
        if let Some(mut taken) = self.taken.get_mut(tenant) {
            return take(&mut taken);
        }
        take(&mut self.taken.entry(tenant.clone()).or_insert(0))
    }

    /// Whose new events are taken now.
    pub fn level(&self) -> Level {
        let running = at_least_zero(self.telemetry.running());
        if running >= self.limits.max_running as u64 {
            return Level::Full;
        }
        let by_depth = match self.by_depth.load(Ordering::Relaxed) {
            full if full == Level::Full as u8 => Level::Full,
            shared if shared == Level::Shared as u8 => Level::Shared,
            _ => Level::Open,
        };
        let by_depth = if self.is_stale() {
            Level::Open
        } else {
            by_depth
        };
        by_depth.max(if self.feels_pressed() {
            Level::Shared
        } else {
            Level::Open
        })
    }

    /// Whether the last reading is too old to count. A queue that was never read is not stale: it has none.
    pub fn is_stale(&self) -> bool {
        let age = self
            .now()
            .saturating_sub(self.read_at.load(Ordering::Relaxed));
        Duration::from_millis(age) > self.limits.poll * STALE_AFTER
    }

    fn feels_pressed(&self) -> bool {
        let bytes = at_least_zero(self.telemetry.bytes_in_flight());
        let send = Duration::from_micros(self.send_us.load(Ordering::Relaxed));
        bytes >= self.limits.memory_budget as u64 / 4 * 3
            || send >= self.limits.slow_send
            || self.is_throttled.load(Ordering::Relaxed) == 1
    }

    /// A message was sent, or not, and that took so long.
    pub fn sent(&self, took: Duration, is_throttled: bool) {
        const WEIGHT: u64 = 16;
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX / WEIGHT);
        self.sends.fetch_add(1, Ordering::Relaxed);
        if is_throttled {
            self.throttled.fetch_add(1, Ordering::Relaxed);
        }
        // Lost updates among concurrent sends matter to no average.
        let average = self.send_us.load(Ordering::Relaxed);
        let average = average - average / WEIGHT + took / WEIGHT;
        self.send_us.store(average, Ordering::Relaxed);
    }

    /// Ends an interval with a new reading of the depth, or none where the queue tells none.
    pub fn poll(&self, read: Option<Result<Depth, QueueError>>) {
        self.reckon_shares();
        match read {
            Some(Ok(depth)) => self.observe(depth),
            Some(Err(error)) => tracing::warn!(%error, "the queue's depth could not be read"),
            None => self.read_at.store(self.now(), Ordering::Relaxed),
        }
        self.telemetry
            .pressure(self.level() as i64, self.is_stale());
    }

    fn observe(&self, depth: Depth) {
        let (low, high) = (self.limits.low_water, self.limits.high_water);
        let total = depth.total();
        let was_full = self.by_depth.load(Ordering::Relaxed) == Level::Full as u8;
        // Halfway down, or a depth at the mark would open and close the gate with every reading.
        let closes_at = if was_full {
            low + (high - low) / 2
        } else {
            high
        };
        let level = if total >= closes_at.max(1) {
            Level::Full
        } else if total >= low {
            Level::Shared
        } else {
            Level::Open
        };
        if level as u8 != self.by_depth.swap(level as u8, Ordering::Relaxed) {
            tracing::info!(
                depth = total,
                level = level.name(),
                "the queue's pressure changed"
            );
        }
        self.read_at.store(self.now(), Ordering::Relaxed);
        self.telemetry.queue_depth(depth);
    }

    fn reckon_shares(&self) {
        let (mut total, mut tenants) = (0, 0);
        self.taken.retain(|_, taken| {
            total += *taken;
            tenants += u64::from(*taken > 0);
            std::mem::take(taken) > 0
        });
        let fair = total
            .checked_div(tenants)
            .map_or(u64::MAX, |fair| fair.max(1));
        self.fair.store(fair, Ordering::Relaxed);
        let sends = self.sends.swap(0, Ordering::Relaxed);
        let throttled = self.throttled.swap(0, Ordering::Relaxed);
        // One in ten: a few are every busy queue's.
        let is_throttled = throttled > 0 && throttled * 10 >= sends;
        self.is_throttled
            .store(u8::from(is_throttled), Ordering::Relaxed);
        if sends == 0 {
            self.send_us.store(0, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        crate::store::millis(self.clock.monotonic())
    }
}

fn at_least_zero(gauge: &Gauge) -> u64 {
    u64::try_from(gauge.get()).unwrap_or(0)
}

#[cfg(test)]
mod tests;

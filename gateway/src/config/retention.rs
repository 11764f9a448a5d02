//! Invariant 6 against a live queue: a claim outlives every message that it stands for.
//!
//! A claim that ends first makes a new event of the provider's or an operator's next delivery, beside the
//! message that still waits. A dead-letter queue of FIFO starts the clock anew, so both retentions add up.

use std::time::Duration;

use super::Loaded;
use super::policy::AUTO_TTL;
use super::problem::{KeyPath, Problem, Problems};
use super::units::shown;
use crate::queue::Retention;

const DAY: Duration = Duration::from_hours(24);

/// What SQS can keep a message for at most, in a queue or a dead-letter queue (SQS quotas, message retention).
const SQS_MOST: Duration = Duration::from_hours(14 * 24);

/// How long claims live at least where that follows the queue: longer than the rule demands.
pub fn follows(retention: Retention) -> Duration {
    retention.total() + 2 * DAY
}

/// The same before the queue has said how long it keeps messages: as if that were as long as can be.
pub fn follows_unknown(is_sqs: bool) -> Duration {
    if is_sqs {
        follows(Retention {
            queue: SQS_MOST,
            dead_letters: Some(SQS_MOST),
        })
    } else {
        AUTO_TTL
    }
}

impl Loaded {
    /// The fixed TTLs that do not outlive what the queue keeps, and the most that any of them lacks.
    pub fn outlives(&self, retention: Retention) -> (Problems, Duration) {
        let needs = retention.total() + DAY;
        let mut problems = self.problems.none();
        let mut lacks = Duration::ZERO;
        let mut check = |path: KeyPath, ttl: Option<Duration>| {
            let Some(ttl) = ttl.filter(|ttl| *ttl <= needs) else {
                return;
            };
            lacks = lacks.max(needs.saturating_sub(ttl).max(Duration::from_secs(1)));
            problems.add(too_short(path, ttl, retention));
        };
        let of_store = self.settings.claim_ttl;
        check(KeyPath::new(&["store", "claim_ttl"]), of_store);
        for source in &self.settings.sources {
            // What holds for all was said once.
            let own = source.claim_ttl.filter(|ttl| Some(*ttl) != of_store);
            check(source.path().then("claim_ttl"), own);
        }
        self.document.locate(&mut problems);
        (problems, lacks)
    }
}

fn too_short(path: KeyPath, ttl: Duration, retention: Retention) -> Problem {
    let dead_letters = retention.dead_letters.map_or_else(
        || "it has no dead-letter queue".to_owned(),
        |kept| format!("its dead-letter queue for {} more", shown(kept)),
    );
    let what = format!(
        "{} is too short: the queue keeps messages for {}, {dead_letters}, and a claim must outlive both by more \
         than a day, or an event could be sent twice",
        shown(ttl),
        shown(retention.queue),
    );
    let hint = format!(
        "use \"auto\", or at least \"{}\", or shorten the retention of the queues",
        shown(follows(retention))
    );
    Problem::error(path, what).hint(hint)
}

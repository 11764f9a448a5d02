//! What is looked at again and again while the gateway serves: the queue's depth and retention, whether the
//! backends can be reached, and their clocks.
//!
//! A claim TTL found too short later, or a backend that fails, is told loudly, but the gateway stays ready: the
//! others have the same trouble. Only what makes deliveries useless here makes it unready: it never had its
//! backends, or its clock is too far from theirs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use super::backends::{Backends, Look};
use super::reload::Live;
use crate::backend::{Finding, Gravity};
use crate::config::problem::KeyPath;
use crate::config::validate::QueueSettings;
use crate::config::{Loaded, Problem, Problems, retention};
use crate::http::{Readiness, Troubles};
use crate::pipeline::Gateway;
use crate::queue::Retention;
use crate::store::millis;

/// How often the backends are looked at as a whole.
const CHECK: Duration = Duration::from_secs(60);

/// The same while they cannot be reached.
const RECHECK: Duration = Duration::from_secs(5);

/// Clocks that are further apart are warned of.
const SKEW_WARNED: Duration = Duration::from_secs(2);

/// The problems that a look found, as of the configuration's sections; errors among them only where `refuses`
/// says so, else warnings.
pub(super) fn problems(
    loaded: &Loaded,
    look: &Look,
    refuses: impl Fn(&Finding) -> bool,
) -> Problems {
    let mut problems = loaded.problems.none();
    for (section, found) in &look.findings {
        let path = KeyPath::new(&[section]);
        let problem = match found.gravity {
            Gravity::Error if refuses(found) => Problem::error(path, found.what.clone()),
            Gravity::Error | Gravity::Warning => Problem::warning(path, found.what.clone()),
            Gravity::Note => continue,
        };
        problems.add(problem.hint(found.hint.clone()));
    }
    if let Some(facts) = &look.queue {
        problems.extend(loaded.outlives(facts.retention).0);
        let (takes, wanted) = (facts.max_message, loaded.settings.max_message);
        if takes < wanted {
            let what = format!(
                "it is {wanted} bytes, but the queue takes messages of at most {takes}: larger ones are answered 413"
            );
            let path = KeyPath::new(&["queue", "max_message"]);
            problems
                .add(Problem::warning(path, what).hint(
                    "raise the queue's MaximumMessageSize (SQS allows 1 MiB), or lower this",
                ));
        }
    }
    loaded.located(problems)
}

/// Looks at the backends while the gateway serves.
pub(super) struct Monitor {
    live: Arc<ArcSwap<Live>>,
    retention: Arc<ArcSwap<Option<Retention>>>,
    gateway: Arc<Gateway<Backends>>,
    readiness: Arc<Readiness>,
    /// Whether both backends could be used at some time.
    was_usable: AtomicBool,
    /// What could not be used at the last look.
    out_of_reach: Mutex<Vec<String>>,
}

impl Monitor {
    pub(super) fn new(
        live: Arc<ArcSwap<Live>>,
        retention: Arc<ArcSwap<Option<Retention>>>,
        gateway: Arc<Gateway<Backends>>,
        readiness: Arc<Readiness>,
    ) -> Self {
        let is_sqs = matches!(
            live.load().loaded.settings.backend.queue,
            QueueSettings::Sqs(_)
        );
        let retained = millis(retention::follows_unknown(is_sqs));
        gateway.retained.store(retained, Ordering::Relaxed);
        Self {
            live,
            retention,
            gateway,
            readiness,
            was_usable: AtomicBool::new(false),
            out_of_reach: Mutex::default(),
        }
    }

    /// Takes over what a look found. False where a backend could not be used.
    pub(super) fn take(&self, look: &Look) -> bool {
        if let Some(facts) = &look.queue {
            let retained = millis(retention::follows(facts.retention));
            self.gateway.retained.store(retained, Ordering::Relaxed);
            self.retention.store(Arc::new(Some(facts.retention)));
            let (problems, lacks) = self.live.load().loaded.outlives(facts.retention);
            self.gateway.telemetry.claim_ttl_missing(lacks);
            for problem in problems.iter() {
                tracing::error!("{problem}");
            }
        }
        let out_of_reach: Vec<_> = look
            .findings
            .iter()
            .filter(|(_, found)| found.is_error())
            .map(|(section, found)| format!("{section}: {}", found.what))
            .collect();
        let is_usable = out_of_reach.is_empty();
        self.was_usable.fetch_or(is_usable, Ordering::SeqCst);
        *self
            .out_of_reach
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = out_of_reach;
        self.tell_readiness();
        is_usable
    }

    /// A backend that fails fails for every gateway, and a source may forward without its claim: only a
    /// gateway that never had its backends is of no use, or one whose clock is wrong.
    fn tell_readiness(&self) {
        let skewed = self.skewed();
        let is_grave = !skewed.is_empty() || !self.was_usable.load(Ordering::SeqCst);
        let out_of_reach = self.out_of_reach.lock();
        let mut all = out_of_reach.unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(skewed);
        self.readiness.trouble(Troubles { all, is_grave });
    }

    /// The clocks that are too far apart to go on, and a warning for those that are on their way.
    fn skewed(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for skew in &self.gateway.backend.skews {
            let (backend, apart) = (skew.backend(), skew.apart());
            self.gateway
                .telemetry
                .clock_skew(backend, skew.ahead_seconds());
            let text = format!(
                "the clocks of this machine and of {backend} are {:.1} s apart",
                apart.as_secs_f64()
            );
            if apart >= self.gateway.timing.skew {
                tracing::error!("{text}: deliveries are not wanted until they agree");
                troubles.push(text);
            } else if apart >= SKEW_WARNED {
                tracing::warn!("{text}");
            }
        }
        troubles
    }

    /// Looks on, for ever.
    pub(super) async fn watch(&self) {
        let pressure = &self.gateway.pressure;
        let mut polls = interval(pressure.interval());
        let mut checks = interval(RECHECK);
        for ticks in [&mut polls, &mut checks] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let mut told = BTreeSet::new();
        let mut is_usable = self.was_usable.load(Ordering::SeqCst);
        let mut since = Duration::ZERO;
        checks.tick().await;
        loop {
            tokio::select! {
                _ = polls.tick() => pressure.poll(self.gateway.backend.depth().await),
                _ = checks.tick() => {
                    since += RECHECK;
                    if is_usable && since < CHECK {
                        self.tell_readiness();
                        continue;
                    }
                    since = Duration::ZERO;
                    let look = self.gateway.backend.check().await;
                    Self::tell(&look, &mut told);
                    is_usable = self.take(&look);
                }
            }
        }
    }

    /// Tells what is new since the last look.
    fn tell(look: &Look, told: &mut BTreeSet<String>) {
        let found = look
            .findings
            .iter()
            .filter(|(_, found)| found.gravity != Gravity::Note);
        let now: BTreeSet<_> = found
            .map(|(section, found)| format!("{section}: {found}"))
            .collect();
        for text in now.difference(told) {
            tracing::warn!("{text}");
        }
        if now.is_empty() && !told.is_empty() {
            tracing::info!("the backends can be used again");
        }
        *told = now;
    }
}

#[cfg(test)]
mod tests;

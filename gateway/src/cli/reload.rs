//! Changes of the configuration, its plugins and its secrets while the gateway serves.
//!
//! Everything is read, checked and compiled first, then swapped in one step; deliveries under way finish on what
//! they began with. Any new mistake, in whatever file, leaves all as it was, and is told: in the log, in the
//! metrics and at `/readyz`. Listeners, backends and limits are what they were at the start.

mod files;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::signal::unix::Signal;
use tokio::sync::Mutex;

use super::backends::Backends;
use crate::config::secret::Process;
use crate::config::{self, Loaded, Severity};
use crate::http::Readiness;
use crate::keys::Keys;
use crate::pipeline::Gateway;
use crate::plugin::Sandbox;
use crate::plugin::registry::{Refused, Registry};
use crate::queue::Retention;
use crate::tenants::{Source, Tenants};
use files::Files;

/// For how long files must not have changed before they are taken: long for who is still writing them.
const SETTLED: Duration = Duration::from_millis(500);

/// How often a switched-off watch is looked after.
const NEVER: Duration = Duration::from_hours(24);

/// What the gateway runs on.
pub(super) struct Live {
    /// What was configured.
    pub loaded: Loaded,
    /// The plugins.
    pub registry: Registry,
    /// What fetches keys by URL.
    pub keys: Option<Arc<Keys>>,
}

/// What swaps it.
pub(super) struct Reload {
    file: PathBuf,
    sandbox: Sandbox,
    live: Arc<ArcSwap<Live>>,
    gateway: Arc<Gateway<Backends>>,
    readiness: Arc<Readiness>,
    /// How long the queue keeps messages, as it last said.
    retention: Arc<ArcSwap<Option<Retention>>>,
    /// What the files were when they were last tried.
    tried: Mutex<Files>,
}

impl Reload {
    /// Of a gateway that was started on `live`.
    pub(super) fn new(
        file: &Path,
        sandbox: Sandbox,
        live: Arc<ArcSwap<Live>>,
        gateway: Arc<Gateway<Backends>>,
        readiness: Arc<Readiness>,
    ) -> Arc<Self> {
        let tried = Files::look(file, &live.load().loaded.settings, &Files::default());
        Arc::new(Self {
            file: file.to_owned(),
            sandbox,
            live,
            gateway,
            readiness,
            retention: Arc::default(),
            tried: Mutex::new(tried),
        })
    }

    /// Where the monitor says how long the queue keeps messages.
    pub(super) fn retention(&self) -> Arc<ArcSwap<Option<Retention>>> {
        Arc::clone(&self.retention)
    }

    /// Looks at the files for ever, and at once where `hangup` comes.
    pub(super) async fn watch(self: Arc<Self>, mut hangup: Signal) {
        let mut changed: Option<Files> = None;
        loop {
            let watch = self.live.load().loaded.settings.watch;
            let every = watch.unwrap_or(NEVER);
            let pause = if changed.is_some() {
                every.min(SETTLED)
            } else {
                every
            };
            tokio::select! {
                _ = hangup.recv() => {
                    tracing::info!("SIGHUP: reading the configuration and the plugins");
                    changed = None;
                    self.attempt().await;
                }
                () = tokio::time::sleep(pause) => {
                    if watch.is_none() {
                        continue;
                    }
                    let now = self.look().await;
                    let is_tried = now == *self.tried.lock().await;
                    // Twice the same: nobody is still writing.
                    let is_settled = changed.as_ref() == Some(&now);
                    changed = Some(now).filter(|_| !is_tried && !is_settled);
                    if !is_tried && is_settled {
                        self.attempt().await;
                    }
                }
            }
        }
    }

    async fn look(self: &Arc<Self>) -> Files {
        let this = Arc::clone(self);
        let before = this.tried.lock().await.clone();
        let look = move || Files::look(&this.file, &this.live.load().loaded.settings, &before);
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Tries the files as they are, and tells what came of it.
    async fn attempt(self: &Arc<Self>) {
        // Before they are read: a change meanwhile is found by the next look.
        let now = self.look().await;
        *self.tried.lock().await = now;
        let this = Arc::clone(self);
        let outcome = tokio::task::spawn_blocking(move || this.take()).await;
        let outcome = outcome.unwrap_or_else(|error| Err(format!("trying them failed: {error}")));
        self.gateway.telemetry.reloaded(outcome.is_ok());
        match &outcome {
            Ok(sources) => tracing::info!(sources, "the configuration and the plugins were taken"),
            Err(why) => tracing::error!(
                "the files as they are now are refused; what was before holds\n{why}"
            ),
        }
        self.readiness.refuse(outcome.err());
    }

    /// Reads, checks and compiles everything, then swaps it. The error says why nothing was swapped.
    fn take(&self) -> Result<usize, String> {
        let old = self.live.load_full();
        let mut loaded = config::load(&self.file, &Process).map_err(|found| found.to_string())?;
        let fixed = loaded.settings.keep_fixed(&old.loaded.settings);
        let (registry, mut warnings) = loaded.plugins_after(&self.sandbox, &old.registry);
        if let Some(problem) = warnings.iter().find(|p| p.severity == Severity::Error) {
            return Err(problem.to_string());
        }
        let refused = new_refusals(&registry, &old.registry);
        if !refused.is_empty() {
            return Err(refused.join("\n"));
        }
        let telemetry = &self.gateway.telemetry;
        let (keys, found) = match &old.keys {
            Some(keys) => (Some(Arc::clone(keys)), loaded.problems.none()),
            None => loaded.keys(&self.gateway.clock, telemetry),
        };
        if found.has_errors() {
            return Err(found.to_string());
        }
        let (tenants, found) = loaded.tenants(&registry, &Process, telemetry, keys.as_ref());
        let broken = newly_broken(&tenants, &self.gateway.tenants.load());
        if !broken.is_empty() {
            return Err(broken.join("\n"));
        }
        if let Some(retention) = **self.retention.load() {
            let (short, _) = loaded.outlives(retention);
            if short.has_errors() {
                return Err(short.to_string());
            }
        }
        warnings.extend(found);
        for problem in warnings.iter() {
            tracing::warn!("{problem}");
        }
        if !fixed.is_empty() {
            let sections = fixed.join(", ");
            tracing::warn!("changes in {sections} take effect at the next start");
        }
        let count = tenants.sources().count();
        let unavailable = tenants
            .sources()
            .filter(|source| source.state.is_err())
            .count();
        telemetry.sources_unavailable(unavailable);
        self.gateway.tenants.store(Arc::new(tenants));
        self.live.store(Arc::new(Live {
            loaded,
            registry,
            keys,
        }));
        Ok(count)
    }
}

/// Files that are refused now and were not before, as they are.
fn new_refusals(now: &Registry, before: &Registry) -> Vec<String> {
    let was = |file: &&Refused| {
        let same = |old: &Refused| old.path == file.path && old.digest == file.digest;
        !before.refused.iter().any(same)
    };
    now.refused
        .iter()
        .filter(was)
        .map(ToString::to_string)
        .collect()
}

/// Sources that would not work, and do now or are new.
fn newly_broken(now: &Tenants, before: &Tenants) -> Vec<String> {
    let was_broken = |source: &Source| {
        let old = before.find(source.tenant.as_str(), source.name.as_str());
        old.is_some_and(|old| old.state.is_err())
    };
    let broken = now.sources().filter(|source| !was_broken(source));
    let mut reasons: Vec<_> = broken
        .filter_map(|source| {
            let reason = &source.state.as_ref().err()?.reason;
            Some(format!("/{}/{}: {reason}", source.tenant, source.name))
        })
        .collect();
    reasons.sort();
    reasons
}

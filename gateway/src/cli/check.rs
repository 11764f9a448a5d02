//! `hookgate check`: every problem of a configuration at once, its plugins, secrets and backends included.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::backends::Backends;
use super::{CONFIG, OK, monitor};
use crate::clock::{SharedClock, SystemClock};
use crate::config::problem::KeyPath;
use crate::config::secret::Process;
use crate::config::{self, Loaded, Problem, Problems};
use crate::http::{client, tls};
use crate::plugin::Sandbox;
use crate::telemetry::{self, Telemetry};

/// How long the backends may take to answer, all together.
const AT_MOST: Duration = Duration::from_secs(15);

/// How long a running gateway may take to tell its metrics.
const GATEWAY_AT_MOST: Duration = Duration::from_secs(1);

/// What to check.
#[derive(Debug, clap::Args)]
pub struct CheckCommand {
    /// The configuration file; env:NAME is an environment variable that holds its text
    #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
    config: PathBuf,
    /// Leave the store and the queue alone: check only what can be told without them
    #[arg(long)]
    offline: bool,
}

/// Prints the problems; 78 where any is an error.
pub(super) fn run(check: &CheckCommand, out: &mut dyn Write) -> u8 {
    let problems = match problems(check) {
        Ok(problems) | Err(problems) => problems,
    };
    let _ = writeln!(out, "{problems}");
    if problems.has_errors() { CONFIG } else { OK }
}

/// In stages: what the file says, its plugins, its sources and their secrets, then the backends.
fn problems(check: &CheckCommand) -> Result<Problems, Problems> {
    let loaded = config::load(&check.config, &Process)?;
    let mut problems = loaded.problems.clone();
    if let Some(Err(error)) = loaded.settings.tls.as_ref().map(tls::load) {
        problems.add(Problem::error(
            KeyPath::new(&["server", "tls_certificate"]),
            error.to_string(),
        ));
    }
    let sandbox = match Sandbox::new(loaded.settings.plugin.clone()) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            problems.add(Problem::error(
                KeyPath::new(&["plugins"]),
                error.to_string(),
            ));
            return Err(problems);
        }
    };
    let (registry, found) = loaded.plugins(&sandbox);
    problems.extend(found);
    let (clock, telemetry) = (Arc::new(SystemClock), Arc::new(Telemetry::default()));
    let (_, found) = loaded.keys(&(clock as SharedClock), &telemetry);
    problems.extend(found);
    let (_, found) = loaded.tenants(&registry, &Process, &Telemetry::default(), None);
    problems.extend(found);
    if !check.offline {
        if loaded.settings.backend.is_remote() {
            problems.extend(backends(&loaded));
        }
        problems.extend(unstable_ids(&loaded));
    }
    Ok(problems)
}

/// What a running gateway noticed of its providers' ids. That none runs is no problem.
fn unstable_ids(loaded: &Loaded) -> Problems {
    let mut problems = loaded.problems.none();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return problems;
    };
    let metrics = runtime.block_on(async {
        let asked = client::get(loaded.settings.admin_listen, "/metrics");
        timeout(GATEWAY_AT_MOST, asked).await.ok()?.ok()
    });
    let Some((_, metrics)) = metrics else {
        return problems;
    };
    let metrics = String::from_utf8_lossy(&metrics);
    for source in &loaded.settings.sources {
        let name = telemetry::unstable_ids_of(&source.tenant, &source.name);
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        let count = line
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0_u64);
        if count > 0 {
            let what = format!(
                "{count} events had a body that had come under another id minutes before: the provider's retries \
                 may carry new ids, and each retry would be one more event"
            );
            problems.add(Problem::warning(source.path(), what).hint(
                "let `options` name an id that stays the same over retries, or leave the id out and let \
                 `no_event_id = \"hash\"` take the content as id",
            ));
        }
    }
    problems
}

/// What the live backends have against the configuration.
fn backends(loaded: &Loaded) -> Problems {
    let settings = &loaded.settings;
    let mut problems = loaded.problems.none();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            problems.add(Problem::error(KeyPath::new(&["store"]), error.to_string()));
            return problems;
        }
    };
    let look = runtime.block_on(async {
        let clock: SharedClock = Arc::new(SystemClock);
        // The embedded database belongs to the gateway that runs.
        let opened =
            Backends::open(&settings.backend.remote_only(), &clock, &settings.timing).await;
        let opened = opened.map_err(|error| error.to_string())?;
        let look = timeout(AT_MOST, opened.check()).await;
        look.map_err(|_| "the backends did not answer in time".to_owned())
    });
    match look {
        Ok(look) => monitor::problems(loaded, &look, |_| true),
        Err(error) => {
            problems.add(Problem::error(KeyPath::new(&["store"]), error));
            problems
        }
    }
}

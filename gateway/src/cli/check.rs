//! `hookgate check`: every problem of a configuration at once, its plugins and secrets included.

use std::io::Write;
use std::path::Path;

use super::{CONFIG, OK};
use crate::config::problem::KeyPath;
use crate::config::secret::Process;
use crate::config::{self, Problem, Problems};
use crate::http::tls;
use crate::plugin::Sandbox;
use crate::telemetry::Telemetry;

/// Prints the problems; 78 where any is an error.
pub(super) fn run(file: &Path, out: &mut dyn Write) -> u8 {
    let problems = match problems(file) {
        Ok(problems) | Err(problems) => problems,
    };
    let _ = writeln!(out, "{problems}");
    if problems.has_errors() { CONFIG } else { OK }
}

/// In stages: what the file says, then its plugins, then its sources and their secrets.
fn problems(file: &Path) -> Result<Problems, Problems> {
    let loaded = config::load(file, &Process)?;
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
    let (_, found) = loaded.tenants(&registry, &Process, &Telemetry::default());
    problems.extend(found);
    Ok(problems)
}

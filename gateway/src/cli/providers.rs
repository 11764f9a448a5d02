//! `hookgate providers`: what the plugins and presets at hand are for, and how well each is known.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::{CONFIG, FAILED, OK};
use crate::config;
use crate::config::secret::Process;
use crate::plugin::registry::Registry;
use crate::plugin::{Manifest, Plugin as _, Sandbox};

/// Where the plugins are.
#[derive(Debug, clap::Args)]
pub struct ProvidersCommand {
    /// The configuration whose plugin directory is listed
    #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
    config: PathBuf,
    /// The plugin directory to list instead
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    plugins: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(command: &ProvidersCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let (directory, limits) = match &command.plugins {
        Some(directory) => (directory.clone(), crate::plugin::Limits::default()),
        None => match config::load(&command.config, &Process) {
            Ok(loaded) => {
                let settings = loaded.settings;
                (settings.plugin_directory, settings.plugin)
            }
            Err(problems) => {
                let _ = writeln!(err, "{problems}");
                return CONFIG;
            }
        },
    };
    match list(&directory, limits, out) {
        Ok(()) => OK,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

fn list(
    directory: &std::path::Path,
    limits: crate::plugin::Limits,
    out: &mut dyn Write,
) -> Result<(), String> {
    let sandbox = Sandbox::new(limits).map_err(|error| error.to_string())?;
    let registry = Registry::open(&sandbox, directory).map_err(|error| {
        format!(
            "cannot read the plugins in {}: {error}\nhint: `make plugins` builds them into target/plugins",
            directory.display()
        )
    })?;
    let manifests: Vec<_> = registry
        .names()
        .filter_map(|name| registry.get(name))
        .map(|plugin| plugin.manifest())
        .collect();
    let rows = manifests.iter().map(|manifest| row(manifest));
    let head = [
        "PROVIDER",
        "KNOWN BY",
        "EVENT ID",
        "RETRIES FOR",
        "WAITS FOR",
        "HANDSHAKE",
        "SCHEME",
    ]
    .map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..6).map(width).collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}  "));
        let line: String = cells.chain([row[6].clone()]).collect();
        writeln!(out, "{}", line.trim_end()).map_err(|error| error.to_string())?;
    }
    for refused in &registry.refused {
        writeln!(out, "{refused}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Name, evidence, whether there is an id, how long the provider retries and waits, whether it tries who listens,
/// and its scheme.
fn row(manifest: &Manifest) -> [String; 7] {
    let shown = |time: Duration| humantime::format_duration(time).to_string();
    let retries = manifest.retries().unwrap_or_else(|| "unknown".into());
    let waits = manifest
        .timeout_ms
        .map_or("unknown".into(), |ms| shown(Duration::from_millis(ms)));
    let has_id = manifest.every_delivery_has_id
        || manifest.id_stable
        || manifest
            .options
            .iter()
            .any(|option| option.name == "id" && option.default.is_some());
    [
        manifest.name.clone(),
        manifest
            .evidence
            .map_or("options", |evidence| evidence.name())
            .to_owned(),
        if has_id { "yes" } else { "content" }.to_owned(),
        retries,
        waits,
        manifest.handshake.as_ref().map_or("", |_| "yes").to_owned(),
        manifest.scheme(),
    ]
}

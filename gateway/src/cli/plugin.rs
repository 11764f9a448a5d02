//! `hookgate plugin new | build | inspect | test | bench`: the tools of who writes a plugin.
//!
//! Prints to the writers it is given and never ends the process; the caller turns what is returned into an
//! exit code. Knows no configuration: a plugin is built, shown and tested by itself.

mod bench;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use data_encoding::HEXLOWER;

use crate::crypto;
use crate::plugin::build::{self, BuildError};
use crate::plugin::manifest::{Evidence, OptionSpec, SecretKind, SecretSpec, SignedTime};

use crate::plugin::scaffold::{self, ScaffoldError};
use crate::plugin::{Limits, Manifest, Plugin, Sandbox, SandboxError, WasmPlugin};
use crate::vectors::{self, Presets, Report, VectorsError};

/// Makes, builds, shows, tests and measures provider plugins.
#[derive(Debug, clap::Subcommand)]
pub enum PluginCommand {
    /// Makes the crate of a new plugin: a plain HMAC of the body, or a copy of one of the project's own
    New {
        /// The provider's name: lower-case letters, digits and hyphens
        name: String,
        /// The plugin to start from: github, shopify, slack, standard-webhooks, stripe or twilio
        #[arg(long, value_name = "PLUGIN")]
        like: Option<String>,
        /// Where the crate goes [default: a directory of the plugin's name]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Builds the plugins of a crate or workspace: cargo, then a component around each module
    Build {
        /// The directory of the crate or workspace
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Where the components go [default: target/plugins of the workspace around the current directory]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Shows what a plugin says of itself: its schemes, secrets and options
    Inspect {
        /// The component
        file: PathBuf,
        /// What the plugin may be and cost
        #[command(flatten)]
        limits: RuntimeLimits,
    },
    /// Runs published signatures through a plugin
    Test {
        /// The component
        file: PathBuf,
        /// The signatures, and what must come of each
        #[arg(long, value_name = "FILE")]
        vectors: PathBuf,
        /// The options of a generic plugin by "scheme/provider" or "scheme"
        #[arg(long, value_name = "FILE")]
        options: Option<PathBuf>,
        /// Try other key forms, hashes, spellings and bodies where a signature does not fit, and say which does
        #[arg(long)]
        explain: bool,
        /// What the plugin may be and cost
        #[command(flatten)]
        limits: RuntimeLimits,
    },
    /// Measures what a delivery costs in the sandbox, beside the same hashing without one
    Bench {
        /// The component
        file: PathBuf,
        /// Signatures, of which the first valid one is measured [default: the plugin's sample, signed]
        #[arg(long, value_name = "FILE")]
        vectors: Option<PathBuf>,
        /// The options of a generic plugin by "scheme/provider" or "scheme"
        #[arg(long, value_name = "FILE")]
        options: Option<PathBuf>,
        /// What the plugin may be and cost
        #[command(flatten)]
        limits: RuntimeLimits,
    },
}

/// What a plugin may be and cost.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct RuntimeLimits {
    /// Take a plugin that brings a language's runtime, as with `plugins.runtimes`
    #[arg(long)]
    runtimes: bool,
}

/// Whether what was asked for came out well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Finding {
    /// It did: exit code 0.
    Good,
    /// It did not, and that is printed: exit code 1.
    Bad,
}

impl Finding {
    /// The process's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
        }
    }
}

/// Why a command could not be carried out. Each says what was being done to what, and ends with a hint where
/// there is one.
#[derive(Debug, thiserror::Error)]
pub enum PluginCommandError {
    /// No plugin was built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The file cannot be read.
    #[error("reading {}: {source}\nhint: `hookgate plugin build DIR` writes plugins to target/plugins", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no plugin.
    #[error("loading {}: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: SandboxError,
    },
    /// There is no sandbox to run it in.
    #[error(transparent)]
    Sandbox(SandboxError),
    /// No crate was made.
    #[error(transparent)]
    Scaffold(#[from] ScaffoldError),
    /// Nothing can be measured.
    #[error("{0}")]
    Bench(String),
    /// The vectors or options cannot be used.
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    /// The output is gone.
    #[error("writing the output: {0}")]
    Output(#[from] io::Error),
}

/// Carries out a command. `out` gets what was asked for, `err` progress and warnings.
pub fn run(
    command: PluginCommand,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Finding, PluginCommandError> {
    match command {
        PluginCommand::New {
            name,
            like,
            out: to,
        } => {
            let to = to.unwrap_or_else(|| PathBuf::from(&name));
            scaffold::write(&to, &name, like.as_deref())?;
            say_next(&to, &name, out)?;
            Ok(Finding::Good)
        }
        PluginCommand::Build { directory, out: to } => {
            let to = to.unwrap_or_else(|| build::default_output(Path::new(".")));
            build_plugins(&directory, &to, out, err)
        }
        PluginCommand::Inspect { file, limits } => {
            let digest = crypto::sha256(&read(&file)?);
            let finding = inspect(&load(&file, limits)?, out, err)?;
            writeln!(out, "{:18}{}", "SHA-256", HEXLOWER.encode(&digest))?;
            Ok(finding)
        }
        PluginCommand::Bench {
            file,
            vectors,
            options,
            limits,
        } => {
            let presets = options.as_deref().map(vectors::read_presets).transpose()?;
            let vectors = vectors.as_deref().map(vectors::read).transpose()?;
            let bytes = read(&file)?.len();
            let started = Instant::now();
            let plugin = load(&file, limits)?;
            let loaded = bench::Loaded {
                plugin: &plugin,
                bytes,
                compiled_in: started.elapsed(),
            };
            let (vectors, presets) = (vectors.unwrap_or_default(), presets.unwrap_or_default());
            bench::run(&loaded, &vectors, &presets, out)
        }
        PluginCommand::Test {
            file,
            vectors,
            options,
            explain,
            limits,
        } => {
            let presets = options.as_deref().map(vectors::read_presets);
            let presets = presets.transpose()?.unwrap_or_default();
            let vectors = vectors::read(&vectors)?;
            test(&load(&file, limits)?, &vectors, &presets, explain, out)
        }
    }
}

fn say_next(at: &Path, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let at = at.display();
    writeln!(
        out,
        "made {at}: say in src/lib.rs and manifest.json what the provider's documentation says, then\n"
    )?;
    writeln!(out, "  hookgate plugin build {at} --out plugins")?;
    writeln!(
        out,
        "  hookgate plugin test plugins/{name}.wasm --vectors {at}/vectors.json --explain"
    )
}

fn read(file: &Path) -> Result<Vec<u8>, PluginCommandError> {
    std::fs::read(file).map_err(|source| PluginCommandError::Unreadable {
        path: file.into(),
        source,
    })
}

fn load(file: &Path, of: RuntimeLimits) -> Result<WasmPlugin, PluginCommandError> {
    let bytes = read(file)?;
    let limits = Limits {
        concurrent_calls: 1,
        ..Limits::of(of.runtimes)
    };
    let sandbox = Sandbox::new(limits).map_err(PluginCommandError::Sandbox)?;
    sandbox
        .load(&bytes)
        .map_err(|source| PluginCommandError::Refused {
            path: file.into(),
            source,
        })
}

fn build_plugins(
    directory: &Path,
    to: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Finding, PluginCommandError> {
    // Progress that cannot be shown is no reason not to build.
    let built = build::build(directory, to, |line| {
        let _ = writeln!(err, "{line}");
    })?;
    for plugin in built {
        let (path, bytes) = (plugin.path.display(), plugin.bytes);
        writeln!(out, "{}: {path}, {bytes} bytes", plugin.name)?;
    }
    Ok(Finding::Good)
}

fn inspect(
    plugin: &WasmPlugin,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Finding, PluginCommandError> {
    let manifest = plugin.manifest();
    show(manifest, out)?;
    let unknown: Vec<_> = manifest.unknown.keys().map(String::as_str).collect();
    if !unknown.is_empty() {
        let keys = unknown.join(", ");
        writeln!(
            err,
            "warning: this gateway does not know the manifest's {keys}"
        )?;
    }
    Ok(Finding::Good)
}

/// One line for each thing that the manifest says, and nothing for what it leaves out.
fn show(manifest: &Manifest, out: &mut dyn Write) -> io::Result<()> {
    let one = one_by_one(manifest);
    let secrets = manifest.secrets.iter().map(|spec| ("secret", secret(spec)));
    let options = manifest.options.iter().map(|spec| ("option", option(spec)));
    let rows = one.into_iter().chain(secrets).chain(options);
    rows.filter(|(_, value)| !value.is_empty())
        .try_for_each(|(name, value)| writeln!(out, "{name:18}{value}"))
}

fn one_by_one(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let retries_on = manifest.retries_on.as_deref().unwrap_or_default();
    let signed_time = manifest.signed_time.map(|time| match time {
        SignedTime::Attempt => "the attempt's: every retry is signed anew",
        SignedTime::Event => "the event's: a retry is as old as the event",
    });
    let public_url = "public_url: the scheme signs the URL";
    let needs = manifest.needs_public_url.then_some(public_url);
    vec![
        ("name", manifest.name.clone()),
        ("version", manifest.version.clone()),
        ("documentation", manifest.documentation.clone()),
        ("schemes", manifest.schemes.join(", ")),
        (
            "known by",
            manifest.evidence.map_or("", Evidence::name).to_owned(),
        ),
        ("handshake", manifest.handshake.clone().unwrap_or_default()),
        (
            "batch",
            if manifest.batch {
                "several events in one delivery, one message"
            } else {
                ""
            }
            .into(),
        ),
        (
            "signature header",
            manifest.signature_header.clone().unwrap_or_default(),
        ),
        ("signed time", signed_time.unwrap_or_default().into()),
        ("answer within", unit(manifest.timeout_ms, "ms")),
        (
            "first retry",
            unit(manifest.first_retry_ms, "ms after the failure"),
        ),
        ("retries for", unit(manifest.retry_window_s, "s")),
        ("retries on", retries_on.join(", ")),
        ("attempts", unit(manifest.max_attempts, "at most")),
        ("accepted with", unit(manifest.accepted_status, "")),
        ("promises", promises(manifest).join(", ")),
        ("keys from", manifest.key_hosts.join(", ")),
        ("needs", needs.unwrap_or_default().into()),
    ]
}

fn unit(value: Option<impl Display>, unit: &str) -> String {
    value.map_or_else(String::new, |value| {
        format!("{value} {unit}").trim_end().to_owned()
    })
}

fn promises(manifest: &Manifest) -> Vec<&'static str> {
    let promises = [
        (manifest.every_delivery_has_id, "every delivery has an id"),
        (manifest.id_stable, "retries carry the same id"),
        (manifest.body_stable, "retries carry the same bytes"),
        (manifest.id_signed, "the id is signed"),
    ];
    let kept = promises.into_iter().filter(|(holds, _)| *holds);
    kept.map(|(_, promise)| promise).collect()
}

fn secret(spec: &SecretSpec) -> String {
    let kind = match spec.kind {
        SecretKind::Mac => "mac",
        SecretKind::Token => "token",
        SecretKind::PublicKey => "public key",
    };
    let form = format!("{:?}", spec.form).to_lowercase();
    let required = if spec.required {
        "required"
    } else {
        "optional"
    };
    let head = format!("{} ({kind}, {form}, {required})", spec.name);
    described(head, &spec.description)
}

fn option(spec: &OptionSpec) -> String {
    let head = match (&spec.default, spec.required) {
        (Some(default), _) => format!("{} (default {default:?})", spec.name),
        (None, true) => format!("{} (required)", spec.name),
        (None, false) => spec.name.clone(),
    };
    described(head, &spec.description)
}

fn described(head: String, description: &str) -> String {
    match description {
        "" => head,
        _ => format!("{head}: {description}"),
    }
}

fn test(
    plugin: &WasmPlugin,
    vectors: &[vectors::Vector],
    presets: &Presets,
    explain: bool,
    out: &mut dyn Write,
) -> Result<Finding, PluginCommandError> {
    let report = vectors::run(plugin, vectors, presets);
    for line in &report.lines {
        writeln!(out, "{line}")?;
        let failed = vectors
            .get(line.place - 1)
            .filter(|vector| explain && !line.passed && vector.expect == vectors::Expect::Valid);
        for why in failed
            .iter()
            .flat_map(|vector| vectors::explain(plugin, vector, presets))
        {
            writeln!(out, "         {why}")?;
        }
    }
    writeln!(out, "{}", skipped(&report))?;
    writeln!(
        out,
        "{} passed, {} failed",
        report.passed(),
        report.failed()
    )?;
    Ok(if report.is_success() {
        Finding::Good
    } else {
        Finding::Bad
    })
}

fn skipped(report: &Report) -> String {
    let schemes = report.skipped.iter();
    let schemes: Vec<_> = schemes.map(|(name, n)| format!("{name} ({n})")).collect();
    let count: usize = report.skipped.values().sum();
    match (count, report.lines.is_empty()) {
        (0, true) => "nothing was run: there are no vectors".into(),
        (0, false) => "0 skipped".into(),
        (_, none) => {
            let run = if none { "nothing was run; " } else { "" };
            let schemes = schemes.join(", ");
            format!("{run}{count} skipped, of schemes that the manifest does not name: {schemes}")
        }
    }
}

#[cfg(test)]
mod tests;

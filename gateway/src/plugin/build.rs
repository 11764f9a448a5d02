//! Builds provider plugins: cargo for the WebAssembly target, then the component around each module.
//!
//! The one build helper: the project's own plugins and a third party's crate go through it alike. Runs
//! cargo in a directory that holds a crate or a workspace, and writes one `<name>.wasm` for each of its
//! cdylib packages. Knows nothing of what a plugin does and prints nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

/// A small stack, since an instance's memory is set up anew for every delivery. rustc has wasm-ld place
/// it below the data, so that what overflows it traps.
const STACK: &str = "target.wasm32-unknown-unknown.rustflags=[\"-Clink-arg=-zstack-size=16384\"]";

/// A component that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The plugin's name: the package's, without `hookgate-` before it and `-plugin` after it.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The file's length in bytes.
    pub bytes: u64,
}

/// Why no plugin was built. Every message says what was being done to what.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The directory holds no crate.
    #[error("building {}: no Cargo.toml there\nhint: name the directory of a plugin's crate; `hookgate plugin new` makes one", .0.display())]
    NoManifest(PathBuf),
    /// Cargo is not installed.
    #[error("building {}: cargo was not found\nhint: install Rust from https://rustup.rs, or put cargo's directory into PATH", .0.display())]
    NoCargo(PathBuf),
    /// Rust is installed without the WebAssembly target.
    #[error("building {}: Rust's target {TARGET} is not installed\nhint: rustup target add {TARGET}", .0.display())]
    NoTarget(PathBuf),
    /// Cargo failed; `messages` is what it wrote.
    #[error("building {}: cargo failed\n{}\nhint: mend what cargo reports; `cargo check --target {TARGET}` in that directory repeats it", directory.display(), messages.trim_end())]
    Cargo {
        /// Where cargo ran.
        directory: PathBuf,
        /// Cargo's own messages, without those about its progress.
        messages: String,
    },
    /// No package builds a module.
    #[error("building {}: no package there is a plugin\nhint: a plugin's Cargo.toml has `crate-type = [\"cdylib\"]` under [lib]", .0.display())]
    NoPlugin(PathBuf),
    /// Two packages have the same plugin's name.
    #[error("building {}: two packages make a plugin named {name}\nhint: rename one; `hookgate-` and `-plugin` do not count", directory.display())]
    SameName {
        /// Where cargo ran.
        directory: PathBuf,
        /// The name that both have.
        name: String,
    },
    /// The module does not say which interface it is made for.
    #[error("making a component of {}: the module describes no interface\nhint: export the plugin's type with `hookgate_sdk::provider!`", .0.display())]
    NotAComponent(PathBuf),
    /// The module and the interface that it describes do not fit.
    #[error("making a component of {}: {problem}\nhint: use the hookgate-sdk of this gateway's version", module.display())]
    Component {
        /// The module.
        module: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// A file or a process could not be used.
    #[error("{doing} {}: {source}\nhint: check that the path exists and that this user may use it", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Builds every plugin of the crate or workspace in `directory` and writes it into `out`, which is
/// made where it is missing. `progress` is given cargo's progress line by line.
///
/// # Errors
///
/// See [`BuildError`]. Nothing is written unless all plugins became components; each file is replaced
/// in one step.
pub fn build(
    directory: &Path,
    out: &Path,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Built>, BuildError> {
    if !directory.join("Cargo.toml").is_file() {
        return Err(BuildError::NoManifest(directory.into()));
    }
    let root = workspace_root(directory)?;
    let messages = run_cargo(directory, root.join("Cargo.lock").is_file(), &mut progress)?;
    let components = modules(&messages, &root, directory)?
        .into_iter()
        .map(|(name, module)| Ok((name, component(&module)?)))
        .collect::<Result<Vec<_>, BuildError>>()?;
    io_at("creating the directory", out, fs::create_dir_all(out))?;
    components
        .into_iter()
        .map(|(name, bytes)| write(out, name, &bytes))
        .collect()
}

/// Where plugins go unless told otherwise: `target/plugins` of the workspace around a directory, or of the
/// directory itself where there is none.
pub fn default_output(directory: &Path) -> PathBuf {
    let root = workspace_root(directory).unwrap_or_else(|_| directory.into());
    root.join("target/plugins")
}

/// The directory of the workspace's manifest: cargo keeps the lock file there.
fn workspace_root(directory: &Path) -> Result<PathBuf, BuildError> {
    let mut command = cargo(directory);
    command.args(["locate-project", "--workspace", "--message-format", "plain"]);
    let output = command
        .output()
        .map_err(|source| not_started(directory, source))?;
    if !output.status.success() {
        return Err(failed(
            directory,
            String::from_utf8_lossy(&output.stderr).into(),
        ));
    }
    let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
    Ok(manifest.parent().unwrap_or(directory).into())
}

/// Runs the build and returns its messages, one JSON document a line.
fn run_cargo(
    directory: &Path,
    locked: bool,
    progress: &mut impl FnMut(&str),
) -> Result<String, BuildError> {
    let mut command = cargo(directory);
    command.args(["build", "--release", "--target", TARGET, "--config", STACK]);
    command.arg("--message-format=json-render-diagnostics");
    command.args(locked.then_some("--locked"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| not_started(directory, source))?;
    let (messages, complaints) = io_at(
        "reading cargo's output in",
        directory,
        drain(&mut child, progress),
    )?;
    let status = io_at("waiting for cargo in", directory, child.wait())?;
    if status.success() {
        Ok(messages)
    } else {
        Err(explain(directory, complaints))
    }
}

fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(program("CARGO", "cargo"));
    // Flags for the machine's own processor and linker would break the WebAssembly build; colours
    // would hide which lines are progress.
    command
        .current_dir(directory)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_TERM_COLOR", "never");
    command
}

fn program(variable: &str, default: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| default.into())
}

/// Reads both outputs at once, lest cargo wait on a full pipe: all of stdout, and stderr's complaints.
fn drain(child: &mut Child, progress: &mut impl FnMut(&str)) -> io::Result<(String, String)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let messages = scope.spawn(move || {
            let mut text = String::new();
            stdout
                .map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text))
                .map(|_| text)
        });
        let complaints = stderr.map_or(Ok(String::new()), |pipe| sort_lines(pipe, progress));
        let messages = messages
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        Ok((messages?, complaints?))
    })
}

/// Hands lines about progress on, and returns the others.
fn sort_lines(pipe: impl Read, progress: &mut impl FnMut(&str)) -> io::Result<String> {
    let mut complaints = String::new();
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if let Some(text) = progress_of(&line) {
            progress(text);
        } else {
            complaints.push_str(&line);
            complaints.push('\n');
        }
    }
    Ok(complaints)
}

/// Cargo sets its progress off by a verb that ends in the twelfth column.
fn progress_of(line: &str) -> Option<&str> {
    let (verb, rest) = line.split_at_checked(12)?;
    let verb = verb.trim_start();
    let is_verb = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_verb && verb.len() < 12 && rest.starts_with(' ')).then(|| line.trim())
}

fn not_started(directory: &Path, source: io::Error) -> BuildError {
    match source.kind() {
        io::ErrorKind::NotFound => BuildError::NoCargo(directory.into()),
        _ => BuildError::Io {
            doing: "running cargo in",
            path: directory.into(),
            source,
        },
    }
}

fn failed(directory: &Path, messages: String) -> BuildError {
    BuildError::Cargo {
        directory: directory.into(),
        messages,
    }
}

/// The target is looked for only after a failure: a standard library built from source needs none.
fn explain(directory: &Path, complaints: String) -> BuildError {
    if target_is_installed(directory) {
        failed(directory, complaints)
    } else {
        BuildError::NoTarget(directory.into())
    }
}

fn target_is_installed(directory: &Path) -> bool {
    let mut command = Command::new(program("RUSTC", "rustc"));
    command
        .current_dir(directory)
        .args(["--print", "target-libdir", "--target", TARGET]);
    // Where rustc cannot say, cargo's own messages say more than a guess.
    let Ok(output) = command.output() else {
        return true;
    };
    Path::new(String::from_utf8_lossy(&output.stdout).trim_end()).is_dir()
}

/// The modules that the workspace's packages built, by their plugins' names.
fn modules(
    messages: &str,
    root: &Path,
    directory: &Path,
) -> Result<BTreeMap<String, PathBuf>, BuildError> {
    let mut modules = BTreeMap::new();
    let parsed = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for (name, module) in parsed.filter_map(|message| module(&message, root)) {
        if modules.insert(name.clone(), module).is_some() {
            return Err(BuildError::SameName {
                directory: directory.into(),
                name,
            });
        }
    }
    if modules.is_empty() {
        Err(BuildError::NoPlugin(directory.into()))
    } else {
        Ok(modules)
    }
}

/// The plugin's name and module, where the message is about one. A dependency from elsewhere that also
/// builds a cdylib is none.
fn module(message: &Value, root: &Path) -> Option<(String, PathBuf)> {
    let own = Path::new(message["manifest_path"].as_str()?).starts_with(root);
    let is_cdylib = message["target"]["kind"]
        .as_array()?
        .iter()
        .any(|kind| kind == "cdylib");
    if !own || !is_cdylib || message["reason"] != "compiler-artifact" {
        return None;
    }
    let files = message["filenames"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let file = files
        .map(Path::new)
        .find(|file| file.extension() == Some("wasm".as_ref()))?;
    Some((
        plugin_name(package(message["package_id"].as_str()?)).into(),
        file.into(),
    ))
}

/// The name in a package id, `URL#NAME@VERSION` or, where the URL ends in the name, `URL#VERSION`.
fn package(id: &str) -> &str {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

fn plugin_name(package: &str) -> &str {
    let name = package.strip_prefix("hookgate-").unwrap_or(package);
    name.strip_suffix("-plugin").unwrap_or(name)
}

/// The component around a module.
fn component(module: &Path) -> Result<Vec<u8>, BuildError> {
    let bytes = io_at("reading", module, fs::read(module))?;
    let problem = |error| BuildError::Component {
        module: module.into(),
        problem: format!("{error:#}"),
    };
    let (described, _) = wit_component::metadata::decode(&bytes).map_err(problem)?;
    if described.is_none() {
        return Err(BuildError::NotAComponent(module.into()));
    }
    let encoder = ComponentEncoder::default()
        .module(&bytes)
        .map_err(problem)?;
    encoder.validate(true).encode().map_err(problem)
}

/// Writes beside the file and renames: who watches the directory never sees half a plugin.
fn write(out: &Path, name: String, bytes: &[u8]) -> Result<Built, BuildError> {
    let path = out.join(format!("{name}.wasm"));
    let temporary = out.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    io_at("writing", &path, written)?;
    Ok(Built {
        name,
        path,
        bytes: bytes.len() as u64,
    })
}

fn io_at<T>(doing: &'static str, path: &Path, result: io::Result<T>) -> Result<T, BuildError> {
    result.map_err(|source| BuildError::Io {
        doing,
        path: path.into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affixes_are_no_part_of_a_plugins_name() {
        let cases = [
            (
                "path+file:///w/plugins/github#hookgate-github@0.1.0",
                "github",
            ),
            ("path+file:///w/acme-plugin#0.1.0", "acme"),
            ("path+file:///w/x#acme@1.0.0", "acme"),
            (
                "git+https://host/r?branch=b#hookgate-acme-plugin@1.0.0",
                "acme",
            ),
        ];
        for (id, name) in cases {
            assert_eq!(plugin_name(package(id)), name, "{id}");
        }
    }

    #[test]
    fn progress_is_told_from_complaints() {
        assert_eq!(
            progress_of("   Compiling acme v0.1.0"),
            Some("Compiling acme v0.1.0")
        );
        assert_eq!(
            progress_of("    Finished `release` profile"),
            Some("Finished `release` profile")
        );
        for line in [
            "error: no",
            "   --> src/lib.rs:1:1",
            "   |",
            "12 | let x",
            "",
            "warning: unused",
        ] {
            assert_eq!(progress_of(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_directory_without_a_crate_is_refused() {
        let error = build(Path::new("no-such-directory"), Path::new("out"), |_| {}).unwrap_err();
        assert!(matches!(error, BuildError::NoManifest(_)));
        assert!(error.to_string().contains("\nhint: "), "{error}");
    }
}

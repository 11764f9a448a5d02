//! The real binary as a process on free ports, and a look at its queue through the admin listener.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Generous: a busy machine must not fail a test.
const START: Duration = Duration::from_mins(1);

/// A running gateway. Killed when it is dropped.
pub struct Gateway {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Writes its log.
    log: JoinHandle<()>,
    /// Where deliveries go.
    pub ingress: SocketAddr,
    /// Where health checks and metrics are.
    pub admin: SocketAddr,
}

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The binary could not be run.
    #[error("cannot run {}: {source}; `make build` makes it", path.display())]
    Run {
        /// The binary.
        path: PathBuf,
        /// The system's word for it.
        source: io::Error,
    },
    /// It ended instead.
    #[error("the gateway ended with {status}:\n{stderr}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// It did not say that it is ready.
    #[error("the gateway was not ready in time")]
    Late,
}

/// A file of the development build, beside the program that asks.
pub fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let directories = program.ancestors().skip(1);
    let found = directories
        .map(|directory| directory.join(name))
        .find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from("target/debug").join(name))
}

/// The directory of the built plugins, which stands beside the build's profile.
pub fn plugins() -> PathBuf {
    built("hookgate")
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("target"))
        .join("plugins")
}

/// The command that runs the gateway in a directory that holds its `hookgate.toml`.
pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(built("hookgate"));
    command
        .current_dir(directory)
        .kill_on_drop(true)
        .stdin(Stdio::null());
    command
}

impl Gateway {
    /// Starts the gateway and waits until it is ready. Its log goes to `log` in its directory.
    pub async fn start(directory: &Path, environment: &[(&str, &str)]) -> Result<Self, StartError> {
        let mut command = command(directory);
        command.arg("serve").envs(environment.iter().copied());
        Self::spawn(command, directory).await
    }

    /// Runs a command that serves, and waits until it is ready. Its log goes to `log` in the directory.
    pub async fn spawn(mut command: Command, directory: &Path) -> Result<Self, StartError> {
        let run = |source| StartError::Run {
            path: built("hookgate"),
            source,
        };
        let log = open_log(directory).map_err(run)?;
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(run)?;
        let stdout = child.stdout.take().ok_or(StartError::Late)?;
        let mut stderr = child.stderr.take().ok_or(StartError::Late)?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = timeout(START, stdout.read_line(&mut line)).await;
        read.map_err(|_| StartError::Late)?.map_err(run)?;
        let Some((ingress, admin)) = addresses(&line) else {
            let mut said = String::new();
            let _ = stderr.read_to_string(&mut said).await;
            let status = child.wait().await.map_err(run)?;
            return Err(StartError::Ended {
                status,
                stderr: said,
            });
        };
        // Read on, or a full pipe would stop the gateway.
        let log = tokio::spawn(async move {
            let mut log = tokio::fs::File::from_std(log);
            let _ = tokio::io::copy(&mut stderr, &mut log).await;
        });
        Ok(Self {
            child,
            stdout,
            log,
            ingress,
            admin,
        })
    }

    /// Kills it as a power cut would: no destructor runs, no buffer is flushed.
    pub async fn kill(mut self) -> io::Result<ExitStatus> {
        self.child.start_kill()?;
        self.child.wait().await
    }

    /// Waits until it ends by itself, as at a fail point.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// The process as the kernel sees it: `/proc/PID`.
    fn process(&self) -> io::Result<PathBuf> {
        let id = self.child.id().ok_or(io::ErrorKind::NotFound)?;
        Ok(Path::new("/proc").join(id.to_string()))
    }

    /// Whether every thread of it is stopped (SIGSTOP), so that nothing runs until it is continued.
    pub fn is_stopped(&self) -> io::Result<bool> {
        for thread in fs::read_dir(self.process()?.join("task"))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            // `PID (NAME) STATE …`; a name may hold anything.
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
            if !state.is_some_and(|state| state.starts_with('T')) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Its memory at this moment, in bytes: the resident set, shared pages included.
    pub fn memory(&self) -> io::Result<usize> {
        let status = fs::read_to_string(self.process()?.join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: Option<usize> = kib.and_then(|kib| kib.parse().ok());
        Ok(kib.ok_or(io::ErrorKind::InvalidData)? * 1024)
    }

    /// The value of a metric without labels.
    pub async fn metric(&self, name: &str) -> io::Result<i64> {
        let answer = hookgate::http::client::get(self.admin, "/metrics").await;
        let (_, text) = answer.map_err(io::Error::other)?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let value = lines.find(|(found, _)| *found == name);
        let value = value.and_then(|(_, value)| value.parse().ok());
        value.ok_or_else(|| io::Error::other(format!("no metric {name}")))
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        match id.and_then(Pid::from_raw) {
            Some(id) => Ok(kill_process(id, signal)?),
            None => Ok(()),
        }
    }

    /// Asks it to stop (SIGTERM) and waits. Its log is whole then.
    pub async fn terminate(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let mut rest = String::new();
        let _ = self.stdout.read_to_string(&mut rest).await;
        let status = self.child.wait().await;
        let _ = self.log.await;
        status
    }

    /// Every message in the queue, in order.
    pub async fn events(&self) -> io::Result<Vec<Value>> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all
                .last()
                .and_then(|event| event["sequence"].as_u64())
                .unwrap_or(0);
            let target = format!("/events?after={after}&limit=500");
            let answer = hookgate::http::client::get(self.admin, &target).await;
            let (_, body) = answer.map_err(io::Error::other)?;
            let mut page: Value = serde_json::from_slice(&body).map_err(io::Error::other)?;
            match page["events"].take() {
                Value::Array(page) if page.is_empty() => return Ok(all),
                Value::Array(page) => all.extend(page),
                _ => return Err(io::Error::other(format!("no events: {page}"))),
            }
        }
    }
}

fn open_log(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    options.open(directory.join("log"))
}

/// Of `ready: deliveries http[s]://ADDRESS admin http://ADDRESS`.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let mut urls = line.split("://").skip(1);
    let mut next = || urls.next()?.split_whitespace().next()?.parse().ok();
    Some((next()?, next()?))
}

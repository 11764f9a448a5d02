//! The stand-in for DynamoDB and SQS: one process on a free port. Accounts do not see each other, and an
//! access key of twelve digits is an account, so that tests share it without meeting.

use std::path::{Path, PathBuf};

use crate::process::{Process, StartError, free_port};

const BY_HAND: &str = "or: pip install ministack, in the virtual environment target/venv";

/// A running stand-in.
#[derive(Debug)]
pub struct Aws {
    process: Process,
    port: u16,
}

impl Aws {
    /// Starts one.
    pub fn start() -> Result<Self, StartError> {
        let system = |reason| StartError::System {
            program: "ministack".into(),
            reason,
        };
        let port = free_port().map_err(system)?;
        let program = installed().ok_or_else(|| StartError::Missing {
            program: "ministack".into(),
            by_hand: BY_HAND,
        })?;
        let arguments = [
            format!("GATEWAY_PORT={port}"),
            "BIND_HOST=127.0.0.1".into(),
            "MINISTACK_HOST=127.0.0.1".into(),
            "SERVICES=dynamodb,sqs".into(),
            program.display().to_string(),
        ];
        let process = Process::start("env", &arguments, BY_HAND)?;
        process.says("Running on")?;
        Ok(Self { process, port })
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process, to be stopped and continued.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// An account that nobody has used: the access key that stands for it.
    pub fn account() -> String {
        format!("{:012}", fastrand::u64(1..1_000_000_000_000))
    }
}

/// Beside what cargo builds, of which the running program is a part.
fn installed() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let mut found = program
        .ancestors()
        .map(|above| above.join("venv/bin/ministack"));
    found.find(|path: &PathBuf| Path::is_file(path))
}

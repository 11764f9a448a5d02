//! `hookgate health`: whether a running gateway wants deliveries, for health checks in images without a shell.
//!
//! Asks `/readyz` of the admin listener. Reads the configuration for its address alone: no plugin is loaded, no
//! secret is read and no backend is asked, so it may be called every few seconds.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::timeout;

use super::events::{AdminAddress, EventsError};
use super::{FAILED, OK};
use crate::http::client::{self, ClientError};

/// How long the gateway may take: less than health checks wait by default (5 s in ECS).
const AT_MOST: Duration = Duration::from_secs(3);

/// Which gateway.
#[derive(Debug, clap::Args)]
pub struct HealthCommand {
    /// Where the admin listener is
    #[command(flatten)]
    admin: AdminAddress,
}

#[derive(Debug, thiserror::Error)]
enum HealthError {
    #[error(transparent)]
    Address(#[from] EventsError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(
        "the admin listener at {0} did not answer within {AT_MOST:?}\nhint: its log says what it is doing"
    )]
    Late(SocketAddr),
    #[error("the gateway is not ready: {0}")]
    NotReady(String),
    #[error("the admin listener at {0} answers {1} to /readyz\nhint: is it a gateway's?")]
    Foreign(SocketAddr, StatusCode),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// 0 where it is ready, else 1: container engines know no other codes.
pub(super) fn run(command: &HealthCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match ask(&command.admin) {
        Ok(()) => {
            let _ = writeln!(out, "ready");
            OK
        }
        // As `check` and `serve` report it.
        Err(HealthError::Address(EventsError::Config(problems))) => {
            let _ = writeln!(err, "{problems}");
            FAILED
        }
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

fn ask(admin: &AdminAddress) -> Result<(), HealthError> {
    let address = admin.resolve()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let asked = runtime.block_on(async { timeout(AT_MOST, client::get(address, "/readyz")).await });
    let (status, body) = asked.map_err(|_| HealthError::Late(address))??;
    match (status, serde_json::from_slice::<Value>(&body)) {
        (StatusCode::OK, Ok(_)) => Ok(()),
        (StatusCode::SERVICE_UNAVAILABLE, Ok(says)) => Err(HealthError::NotReady(reason(&says))),
        _ => Err(HealthError::Foreign(address, status)),
    }
}

/// What is in trouble. A gateway that is not ready and has no trouble was told to stop.
fn reason(says: &Value) -> String {
    let troubles = says["troubles"].as_array().into_iter().flatten();
    let troubles: Vec<_> = troubles.filter_map(Value::as_str).collect();
    if troubles.is_empty() {
        "it is draining".into()
    } else {
        troubles.join("; ")
    }
}

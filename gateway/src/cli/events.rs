//! `hookgate events`: what stands in the queue of a running gateway.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use clap::Subcommand;
use serde_json::Value;

use super::{CONFIG, FAILED, OK, here};
use crate::config;
use crate::config::secret::Process;
use crate::http::client::{self, ClientError};

/// Events that `tail` asks for at once.
const PAGE: u16 = 500;
/// How long `tail` waits before it looks for more.
const POLL: Duration = Duration::from_millis(500);

/// The commands on events.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// List the events in the queue, in order
    List {
        /// Where the admin listener is
        #[command(flatten)]
        admin: AdminAddress,
        /// Begin behind this sequence
        #[arg(long, default_value_t = 0)]
        after: u64,
        /// Show at most this many (at most 500)
        #[arg(long, default_value_t = 100)]
        limit: u16,
    },
    /// Print the events in the queue and those that come, one a line, until interrupted
    Tail {
        /// Where the admin listener is
        #[command(flatten)]
        admin: AdminAddress,
        /// Begin behind this sequence
        #[arg(long, default_value_t = 0)]
        after: u64,
    },
    /// Show one event whole, as JSON
    Show {
        /// Its sequence, as `list` shows it
        sequence: u64,
        /// Where the admin listener is
        #[command(flatten)]
        admin: AdminAddress,
    },
}

/// Where the admin listener is.
#[derive(Debug, clap::Args)]
pub struct AdminAddress {
    /// The admin listener's address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    admin: Option<SocketAddr>,
    /// A configuration file that says where the admin listener is
    #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
    config: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    #[error("{0}")]
    Config(config::Problems),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(
        "the admin listener's port is 0 in {}: the system chose one when the gateway was started\n\
         hint: `serve` printed its address then; name it with `--admin`",
        _0.display()
    )]
    AnyPort(PathBuf),
    #[error("the gateway says: {0}")]
    Refused(String),
    #[error(
        "there is no event {0} in the queue\nhint: `hookgate events list` shows which there are"
    )]
    NoEvent(u64),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Runs a command.
pub(super) fn run(command: &EventsCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = match command {
        EventsCommand::List {
            admin,
            after,
            limit,
        } => list(admin, *after, *limit, out),
        EventsCommand::Tail { admin, after } => tail(admin, *after, out),
        EventsCommand::Show { sequence, admin } => show(admin, *sequence, out),
    };
    match result {
        Ok(()) => OK,
        // As `check` and `serve` report it.
        Err(EventsError::Config(problems)) => {
            let _ = writeln!(err, "{problems}");
            CONFIG
        }
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

impl AdminAddress {
    pub(super) fn resolve(&self) -> Result<SocketAddr, EventsError> {
        match self.admin {
            Some(address) => Ok(address),
            None => self.configured(),
        }
    }

    fn configured(&self) -> Result<SocketAddr, EventsError> {
        let loaded = config::load(&self.config, &Process).map_err(EventsError::Config)?;
        match loaded.settings.admin_listen {
            address if address.port() == 0 => Err(EventsError::AnyPort(self.config.clone())),
            address => Ok(here(address)),
        }
    }

    fn events(&self, after: u64, limit: u16) -> Result<Vec<Value>, EventsError> {
        runtime()?.block_on(events(self.resolve()?, after, limit))
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// A page of the queue's events behind a sequence.
async fn events(address: SocketAddr, after: u64, limit: u16) -> Result<Vec<Value>, EventsError> {
    let target = format!("/events?after={after}&limit={limit}");
    let (status, body) = client::get(address, &target).await?;
    let mut answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match answer["events"].take() {
        Value::Array(events) => Ok(events),
        _ => Err(EventsError::Refused(match answer["error"].as_str() {
            Some(error) => error.to_owned(),
            None => status.to_string(),
        })),
    }
}

fn list(
    admin: &AdminAddress,
    after: u64,
    limit: u16,
    out: &mut dyn Write,
) -> Result<(), EventsError> {
    let events = admin.events(after, limit)?;
    let rows: Vec<_> = events.iter().map(row).collect();
    let titles = ["SEQUENCE", "SENT", "SOURCE", "TYPE", "ID", "GROUP", "BYTES"].map(str::to_owned);
    write_table(&titles, &rows, out)?;
    let plural = if rows.len() == 1 { "" } else { "s" };
    writeln!(out, "{} event{plural}", rows.len())?;
    Ok(())
}

/// Ends only with an error, such as a reader of its output that is gone.
fn tail(admin: &AdminAddress, mut after: u64, out: &mut dyn Write) -> Result<(), EventsError> {
    let address = admin.resolve()?;
    let runtime = runtime()?;
    loop {
        let events = runtime.block_on(events(address, after, PAGE))?;
        for event in &events {
            writeln!(out, "{}", row(event).join("  "))?;
            after = event["sequence"].as_u64().unwrap_or(after).max(after);
        }
        out.flush()?;
        if events.is_empty() {
            runtime.block_on(tokio::time::sleep(POLL));
        }
    }
}

fn row(event: &Value) -> [String; 7] {
    let attribute = |name: &str| event["attributes"][name].as_str().unwrap_or("-").to_owned();
    let sent = Duration::from_millis(event["sent_at"].as_u64().unwrap_or(0));
    [
        event["sequence"].to_string(),
        humantime::format_rfc3339_millis(UNIX_EPOCH + sent).to_string(),
        attribute("ce-source"),
        attribute("ce-type"),
        attribute("ce-id"),
        event["group_id"].as_str().unwrap_or("-").to_owned(),
        event["body"].as_str().map_or(0, str::len).to_string(),
    ]
}

/// Columns as wide as their widest cell.
fn write_table<const N: usize>(
    titles: &[String; N],
    rows: &[[String; N]],
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .chain([titles])
            .map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    for row in [titles].into_iter().chain(rows) {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn show(admin: &AdminAddress, sequence: u64, out: &mut dyn Write) -> Result<(), EventsError> {
    let events = admin.events(sequence.saturating_sub(1), 1)?;
    match events.first() {
        Some(event) if event["sequence"].as_u64() == Some(sequence) => {
            writeln!(out, "{event:#}")?;
            Ok(())
        }
        _ => Err(EventsError::NoEvent(sequence)),
    }
}

//! `hookgate dev`: what a stand-in for AWS lacks. In production Terraform makes it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;

use super::backends::{Backends, Queues, Stores};
use super::{CONFIG, FAILED, OK};
use crate::clock::{SharedClock, SystemClock};
use crate::config::secret::Process;
use crate::config::{self, Settings};

/// The commands for development.
#[derive(Debug, Subcommand)]
pub enum DevCommand {
    /// Make the table and the queues that the configuration names, where they are not there yet
    CreateTables {
        /// The configuration that names them; it must have `aws.endpoint`
        #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
        config: PathBuf,
    },
}

/// Runs a command.
pub(super) fn run(command: &DevCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let DevCommand::CreateTables { config } = command;
    let settings = match config::load(config, &Process) {
        Ok(loaded) => loaded.settings,
        Err(problems) => {
            let _ = writeln!(err, "{problems}");
            return CONFIG;
        }
    };
    match create(&settings, out) {
        Ok(()) => OK,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

fn create(settings: &Settings, out: &mut dyn Write) -> Result<(), String> {
    if settings.aws_endpoint.is_none() {
        return Err("`aws.endpoint` is not set, and AWS itself is Terraform's\n\
                    hint: infra/ makes table and queues there; for a stand-in name its endpoint"
            .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let clock: SharedClock = Arc::new(SystemClock);
        let opened = Backends::open(&settings.backend, &clock, &settings.timing).await;
        let opened = opened.map_err(|error| error.to_string())?;
        if let Stores::DynamoDb(store) = &opened.store {
            store.create_table().await?;
            let _ = writeln!(out, "the table is there");
        }
        if let Queues::Sqs(queue) = &opened.queue {
            queue.create_queues().await?;
            let _ = writeln!(out, "the queue and its dead-letter queue are there");
        }
        Ok(())
    })
}

//! The command line, which is a contract: commands, flags, exit codes.
//!
//! Commands write to what they are given and return an exit code; only `main` prints and exits.

mod backends;
mod check;
mod claims;
mod dev;
mod events;
mod health;
mod monitor;
pub mod plugin;
mod providers;
mod reload;
mod send;
mod serve;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Everything went well.
pub const OK: u8 = 0;
/// Something went wrong that is said on standard error.
pub const FAILED: u8 = 1;
/// The configuration is at fault (`EX_CONFIG` of sysexits.h).
pub const CONFIG: u8 = 78;

/// An edge webhook gateway: authenticates, deduplicates and queues every event before it answers.
#[derive(Debug, Parser)]
#[command(name = "hookgate", version, max_term_width = 100)]
pub struct Cli {
    /// How log lines look; what is logged is set by RUST_LOG (default: info)
    #[arg(long, value_enum, default_value_t = LogFormat::Text, global = true)]
    pub log_format: LogFormat,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For machines: one JSON object a line
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Receive deliveries until SIGTERM or SIGINT; a second signal ends it at once, and SIGHUP has it read its files anew
    Serve(ConfigFile),
    /// Check a configuration, its plugins, its secrets and the backends that it names, and print every problem
    Check(check::CheckCommand),
    /// Ask a running gateway whether it is ready; 1 where it is not, with the reason
    Health(health::HealthCommand),
    /// Look into the queue of a running gateway, through its admin listener
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Look into the claim store: what is known of an event, and let it be sent once more
    #[command(subcommand)]
    Claims(claims::ClaimsCommand),
    /// Make what a stand-in for AWS lacks, for development and tests
    #[command(subcommand)]
    Dev(dev::DevCommand),
    /// Send a running gateway the sample of a source's plugin, signed with the source's secret
    Send(send::SendCommand),
    /// List the providers that the plugins and presets at hand are for
    Providers(providers::ProvidersCommand),
    /// Build, inspect and test plugins
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
}

/// The configuration to use.
#[derive(Debug, clap::Args)]
pub struct ConfigFile {
    /// The configuration file; env:NAME is an environment variable that holds its text
    #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
    pub config: PathBuf,
}

/// Where a listener of this machine is reached. One on every interface is on this machine's own.
fn here(listen: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    (ip, listen.port()).into()
}

/// Runs a command and returns its exit code.
pub fn run(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match command {
        Command::Serve(file) => serve::run(&file.config, out, err),
        Command::Check(check) => check::run(&check, out),
        Command::Claims(command) => claims::run(&command, out, err),
        Command::Dev(command) => dev::run(&command, out, err),
        Command::Events(command) => events::run(&command, out, err),
        Command::Health(command) => health::run(&command, out, err),
        Command::Send(command) => send::run(&command, out, err),
        Command::Providers(command) => providers::run(&command, out, err),
        Command::Plugin(command) => match plugin::run(command, out, err) {
            Ok(finding) => finding.exit_code(),
            Err(error) => {
                let _ = writeln!(err, "error: {error}");
                FAILED
            }
        },
    }
}

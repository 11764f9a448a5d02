//! `hookgate claims`: what is known of an event, and a second message for it.
//!
//! A store that gateways share is asked directly, with the credentials of whoever runs this. The embedded one
//! belongs to the running gateway alone, which is asked through its admin listener.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use clap::Subcommand;
use data_encoding::HEXLOWER_PERMISSIVE;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;

use super::backends::Backends;
use super::{CONFIG, FAILED, OK};
use crate::clock::{Clock as _, SharedClock, SystemClock};
use crate::config::secret::Process;
use crate::config::validate::StoreSettings;
use crate::config::{self, Problems, Settings};
use crate::delivery::{EventId, EventKey, Name};
use crate::http::admin::FORGET_HEADER;
use crate::http::client::{self, ClientError};
use crate::store::claims::{self, Looked};
use crate::store::{Claim, State};

/// How long the store may take.
const AT_MOST: Duration = Duration::from_secs(10);

/// The commands on claims.
#[derive(Debug, Subcommand)]
pub enum ClaimsCommand {
    /// Show what is known of an event
    Show(Which),
    /// Let the next delivery of an accepted event be sent once more, as its next generation
    Forget(Which),
}

/// Which event, and where.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The event as TENANT/SOURCE/ID, the ID as the message's `ce-id` has it; or the claim's key
    #[arg(value_name = "EVENT")]
    event: String,
    /// The configuration that says where the claims are
    #[arg(long, value_name = "FILE", default_value = "hookgate.toml")]
    config: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
enum ClaimsError {
    #[error("{0}")]
    Config(Problems),
    #[error(
        "`{0}` is neither TENANT/SOURCE/ID nor a claim's key\nhint: tenant and source are named as in the configuration"
    )]
    Event(String),
    #[error("{0}")]
    Open(String),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Store(String),
    #[error(
        "nothing is known of this event: its next delivery is a new one\nhint: for a source with `same_id_other_body = \"distinct\"` the ID ends in `~` and the body's digest, as in `ce-id`"
    )]
    Unknown,
    #[error("the event is still being processed (generation {0}): there is nothing to forget")]
    AtWork(u32),
    #[error(
        "the admin listener's port is 0 in the configuration: the system chose one\nhint: give `admin.listen` a port"
    )]
    AnyPort,
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Runs a command.
pub(super) fn run(command: &ClaimsCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let (which, forgets) = match command {
        ClaimsCommand::Show(which) => (which, false),
        ClaimsCommand::Forget(which) => (which, true),
    };
    match look(which, forgets).and_then(|looked| tell(which, forgets, &looked, out)) {
        Ok(()) => OK,
        Err(ClaimsError::Config(problems)) => {
            let _ = writeln!(err, "{problems}");
            CONFIG
        }
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

fn look(which: &Which, forgets: bool) -> Result<Looked, ClaimsError> {
    let loaded = config::load(&which.config, &Process).map_err(ClaimsError::Config)?;
    let key = key_of(&which.event).ok_or_else(|| ClaimsError::Event(which.event.clone()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(ClaimsError::Output)?;
    let settings = &loaded.settings;
    runtime.block_on(async {
        let looked = async {
            match settings.backend.store {
                StoreSettings::Embedded { .. } | StoreSettings::Memory => {
                    through_gateway(settings.admin_listen, &key, forgets).await
                }
                _ => directly(settings, &key, forgets).await,
            }
        };
        let late = |_| ClaimsError::Store("the claim store did not answer in time".into());
        timeout(AT_MOST, looked).await.map_err(late)?
    })
}

async fn directly(settings: &Settings, key: &str, forgets: bool) -> Result<Looked, ClaimsError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let remote = settings.backend.remote_only();
    let opened = Backends::open(&remote, &clock, &settings.timing).await;
    let opened = opened.map_err(|error| ClaimsError::Open(error.to_string()))?;
    let looked = claims::look(&opened.store, key, forgets).await;
    looked.map_err(|error| ClaimsError::Store(error.to_string()))
}

async fn through_gateway(
    admin: SocketAddr,
    key: &str,
    forgets: bool,
) -> Result<Looked, ClaimsError> {
    if admin.port() == 0 {
        return Err(ClaimsError::AnyPort);
    }
    let target = format!("/claims/{}", utf8_percent_encode(key, NON_ALPHANUMERIC));
    let (status, body) = match forgets {
        true => client::post(admin, &target, FORGET_HEADER).await?,
        false => client::get(admin, &target).await?,
    };
    let text = String::from_utf8_lossy(&body);
    let refused = || ClaimsError::Store(format!("the gateway says {status}: {text}"));
    if !status.is_success() {
        return Err(refused());
    }
    serde_json::from_slice(&body).map_err(|_| refused())
}

/// The claim's key of `TENANT/SOURCE/ID`, or the key itself.
fn key_of(event: &str) -> Option<String> {
    let mut parts = event.splitn(3, '/');
    let parts = (parts.next()?, parts.next(), parts.next());
    let (tenant, Some(source), Some(id)) = parts else {
        return (!event.contains('/') && !event.is_empty()).then(|| event.to_owned());
    };
    let (id, digest) = match id.rsplit_once('~') {
        Some((id, digest)) if digest.len() == 64 => {
            let digest = HEXLOWER_PERMISSIVE.decode(digest.as_bytes()).ok()?;
            (id, Some(digest.try_into().ok()?))
        }
        _ => (id, None),
    };
    let id = EventId::from_provider(id)?;
    Some(EventKey::new(Name::new(tenant)?, Name::new(source)?, id, digest).claim_key())
}

fn tell(
    which: &Which,
    forgets: bool,
    looked: &Looked,
    out: &mut dyn Write,
) -> Result<(), ClaimsError> {
    if which.json {
        let json = serde_json::to_string_pretty(looked).unwrap_or_default();
        writeln!(out, "{json}")?;
    }
    let claim = looked.claim.as_ref().ok_or(ClaimsError::Unknown)?;
    if forgets && !looked.forgotten {
        return Err(ClaimsError::AtWork(claim.generation));
    }
    if which.json {
        return Ok(());
    }
    if looked.forgotten {
        writeln!(
            out,
            "forgotten: the next delivery of the event is sent as generation {}",
            claim.generation
        )?;
        return Ok(());
    }
    Ok(write!(out, "{}", shown(claim))?)
}

/// A claim as a person reads it.
fn shown(claim: &Claim) -> String {
    let at = |ms| humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms));
    let state = match (claim.state, claim.lease_left(SystemClock.wall_ms())) {
        (State::Accepted, _) => "accepted: its message is in the queue".to_owned(),
        (State::Processing, Some(left)) => {
            format!("processing: its owner has {} ms left", left.as_millis())
        }
        (State::Processing, None) => {
            "processing: its owner is gone, the next delivery takes it over".to_owned()
        }
    };
    let accepted = claim
        .accepted_at
        .map_or("-".into(), |ms| at(ms).to_string());
    let response = claim.response.as_ref().map_or("-".into(), |response| {
        let status = response
            .status
            .map_or("the default status".into(), |status| status.to_string());
        format!("{status}, {} bytes", response.body.len())
    });
    let rows = [
        ("state", state),
        ("generation", claim.generation.to_string()),
        ("first claimed", at(claim.first_at).to_string()),
        ("accepted", accepted),
        (
            "expires",
            at(claim.expires_at.saturating_mul(1000)).to_string(),
        ),
        ("queue", claim.queue.clone()),
        ("group", claim.group.clone()),
        ("body SHA-256", claim.body_sha256.clone()),
        ("first answer", response),
    ];
    let rows = rows
        .iter()
        .map(|(name, value)| format!("{name:<14}{value}\n"));
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_named_as_its_message_is_or_by_its_key() {
        assert_eq!(key_of("acme/gh/a.b").as_deref(), Some("acme.gh.a.b"));
        assert_eq!(key_of("acme.gh.a.b").as_deref(), Some("acme.gh.a.b"));
        let slashed = key_of("acme/gh/a/b");
        assert_eq!(slashed.as_deref(), Some("acme.gh.a/b"));
        let digest = "ab".repeat(32);
        let distinct = key_of(&format!("acme/gh/id~{digest}")).unwrap();
        assert!(
            distinct.starts_with('~') && distinct.len() == 44,
            "{distinct}"
        );
        for none in ["", "acme/gh", "acme//id", "Acme/gh/id", "/"] {
            assert_eq!(key_of(none), None, "{none}");
        }
    }
}

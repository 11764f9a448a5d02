//! `hookgate send`: the sample of a source's plugin, signed with the source's secret, to a running gateway.
//!
//! Needs no signer per scheme: what is to be signed is what the plugin asks the host to verify. Reads the same
//! configuration as the gateway, so it needs its secrets; they are printed no more than the gateway does.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{ConfigFile, FAILED, OK, here};
use crate::clock::{Clock, SystemClock};
use crate::config::secret::Process;
use crate::config::{self, Loaded, Problems};
use crate::http::client::{self, ClientError, Reply};
use crate::plugin::registry::Registry;
use crate::plugin::sample::{self, Draft, Request, SampleError};
use crate::plugin::{Sandbox, SandboxError, Setup, WasmPlugin};
use crate::telemetry::Telemetry;

/// What to send, and where to.
#[derive(Debug, clap::Args)]
pub struct SendCommand {
    /// The source
    #[arg(value_name = "TENANT/SOURCE")]
    source: String,
    /// The configuration that says how the source is verified
    #[command(flatten)]
    config: ConfigFile,
    /// The gateway's address, as http://HOST:PORT [default: where the configuration says that it listens]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The event's id; with --count, all deliveries have it [default: a new one for each]
    #[arg(long)]
    id: Option<String>,
    /// How often to send it, one after the other
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// A file to send in the place of the sample's body, as it is
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// A header in the place of the sample's, or beside them; {id} and {timestamp} are filled in
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("it has no `:`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Why nothing was sent, or nothing came back.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("{0}")]
    Config(Problems),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("there is no source `{0}`\nhint: name it as TENANT/SOURCE, as in its URL")]
    NoSource(String),
    #[error("the source cannot work: {0}")]
    Unavailable(String),
    #[error("signing the sample: {0}")]
    Sample(#[from] SampleError),
    #[error("reading {}: {reason}", path.display())]
    Body { path: PathBuf, reason: io::Error },
    #[error(
        "the gateway listens with TLS, which `send` does not speak\n\
         hint: `--to http://HOST:PORT` names a listener without, of a gateway with the same secrets"
    )]
    Tls,
    #[error("`--to {0}` is no address\nhint: write it as http://HOST:PORT")]
    Address(String),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Sends; 0 where every answer was a 2xx.
pub(super) fn run(send: &SendCommand, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match send.run(out) {
        Ok(true) => OK,
        Ok(false) => FAILED,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILED
        }
    }
}

/// A source as the gateway has it.
struct Target {
    plugin: Arc<WasmPlugin>,
    setup: Arc<Setup>,
    address: SocketAddr,
    /// Ends the sandboxes' clock when it is dropped.
    _sandbox: Sandbox,
}

impl SendCommand {
    fn run(&self, out: &mut dyn Write) -> Result<bool, SendError> {
        let target = self.target()?;
        let body = self.body.as_deref().map(read).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut good = true;
        for _ in 0..self.count {
            let request = sample::sign(&target.plugin, &target.setup, &self.draft(body.clone()))?;
            writeln!(
                out,
                "{} http://{}{}",
                request.method, target.address, request.target
            )?;
            let reply = runtime.block_on(post(target.address, request))?;
            show(&reply, out)?;
            good &= reply.status.is_success();
        }
        Ok(good)
    }

    fn target(&self) -> Result<Target, SendError> {
        let loaded = config::load(&self.config.config, &Process).map_err(SendError::Config)?;
        let sandbox = Sandbox::new(loaded.settings.plugin.clone())?;
        if loaded.settings.tls.is_some() && self.to.is_none() {
            return Err(SendError::Tls);
        }
        let (registry, _) = loaded.plugins(&sandbox);
        let (plugin, setup) = self.source(&loaded, &registry)?;
        Ok(Target {
            plugin,
            setup,
            address: self.address(loaded.settings.listen)?,
            _sandbox: sandbox,
        })
    }

    fn source(
        &self,
        loaded: &Loaded,
        registry: &Registry,
    ) -> Result<(Arc<WasmPlugin>, Arc<Setup>), SendError> {
        let (tenants, _) = loaded.tenants(registry, &Process, &Telemetry::default(), None);
        let none = || SendError::NoSource(self.source.clone());
        let (tenant, name) = self.source.split_once('/').ok_or_else(none)?;
        let source = tenants.find(tenant, name).ok_or_else(none)?;
        let ready = source.state.as_ref();
        let ready = ready.map_err(|state| SendError::Unavailable(state.reason.clone()))?;
        let plugin = registry
            .get(&ready.plugin.manifest().name)
            .ok_or_else(none)?;
        Ok((Arc::clone(plugin), Arc::clone(&ready.setup)))
    }

    /// Where the gateway is.
    fn address(&self, listen: SocketAddr) -> Result<SocketAddr, SendError> {
        let Some(to) = &self.to else {
            return Ok(here(listen));
        };
        let host = to.strip_prefix("http://");
        let host = host.map(|host| host.trim_end_matches('/'));
        let found = host.and_then(|host| host.to_socket_addrs().ok()?.next());
        found.ok_or_else(|| SendError::Address(to.clone()))
    }

    fn draft(&self, body: Option<Bytes>) -> Draft {
        let id = self.id.clone();
        Draft {
            path: format!("/in/{}", self.source),
            id: id.unwrap_or_else(|| format!("send-{}", uuid::Uuid::now_v7())),
            now_ms: SystemClock.wall_ms(),
            headers: self.headers.clone(),
            body,
        }
    }
}

fn read(path: &Path) -> Result<Bytes, SendError> {
    let bytes = std::fs::read(path).map_err(|reason| SendError::Body {
        path: path.into(),
        reason,
    })?;
    Ok(bytes.into())
}

async fn post(address: SocketAddr, request: Request) -> Result<Reply, ClientError> {
    let Request {
        method,
        target,
        headers,
        body,
    } = request;
    client::deliver(address, &method, &target, &headers, body).await
}

/// The status, the headers that say what became of the delivery, and the body.
fn show(reply: &Reply, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", reply.status)?;
    let tells = |name: &str| name.starts_with("hookgate-") || name == "retry-after";
    for (name, value) in &reply.headers {
        if tells(name.as_str()) {
            writeln!(out, "{name}: {}", String::from_utf8_lossy(value.as_bytes()))?;
        }
    }
    if !reply.body.is_empty() {
        writeln!(out, "{}", String::from_utf8_lossy(&reply.body).trim_end())?;
    }
    Ok(())
}

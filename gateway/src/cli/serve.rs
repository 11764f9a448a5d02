//! `hookgate serve`: puts the parts together, serves, and drains when told to stop.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::backends::{Backends, Look};
use super::monitor::{self, Monitor};
use super::reload::{Live, Reload};
use super::{CONFIG, FAILED, OK};
use crate::clock::{SharedClock, SystemClock};
use crate::config::secret::Process;
use crate::config::{self, Problems, Severity};
use crate::http::{self, Ingress, Readiness, admin::Admin};
use crate::pipeline::Gateway;
use crate::plugin::Sandbox;
use crate::pressure::Pressure;
use crate::telemetry::Telemetry;

/// How long running events may take once no more are accepted. An unsettled claim is safe.
const DRAIN: Duration = Duration::from_secs(30);

/// Why the gateway does not serve: what to print, and the exit code.
struct Refusal(u8, String);

impl Refusal {
    fn because(error: &dyn Display) -> Self {
        Self(FAILED, format!("error: {error}\n"))
    }
}

/// Serves until a signal.
pub(super) fn run(file: &Path, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match prepare(file).and_then(|ready| ready.serve(out)) {
        Ok(()) => OK,
        Err(Refusal(code, message)) => {
            let _ = write!(err, "{message}");
            code
        }
    }
}

struct Prepared {
    runtime: Runtime,
    live: Arc<ArcSwap<Live>>,
    tls: Option<TlsAcceptor>,
    gateway: Arc<Gateway<Backends>>,
    readiness: Arc<Readiness>,
    /// What the first look at the live backends found.
    look: Look,
    reload: Arc<Reload>,
}

fn prepare(file: &Path) -> Result<Prepared, Refusal> {
    let refuse = |problems: Problems| Refusal(CONFIG, format!("{problems}\n"));
    let loaded = config::load(file, &Process).map_err(refuse)?;
    if loaded.problems.has_errors() {
        return Err(refuse(loaded.problems));
    }
    log(&loaded.problems);
    let settings = &loaded.settings;
    let tls = settings.tls.as_ref().map(http::tls::load).transpose();
    let tls = tls.map_err(|error| Refusal(CONFIG, format!("error: {error}\n")))?;
    let sandbox = Sandbox::new(settings.plugin.clone()).map_err(|e| Refusal::because(&e))?;
    let (registry, problems) = loaded.plugins(&sandbox);
    log(&problems);
    let telemetry = Arc::new(Telemetry::default());
    let clock: SharedClock = Arc::new(SystemClock);
    let (keys, problems) = loaded.keys(&clock, &telemetry);
    if problems.has_errors() {
        return Err(refuse(problems));
    }
    log(&problems);
    let (tenants, problems) = loaded.tenants(&registry, &Process, &telemetry, keys.as_ref());
    log(&problems);
    telemetry.sources_unavailable(tenants.sources().filter(|s| s.state.is_err()).count());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Refusal::because(&error))?;
    let (backends, look) = runtime.block_on(async {
        let opened = Backends::open(&settings.backend, &clock, &settings.timing).await;
        let opened = opened.map_err(|error| Refusal::because(&error))?;
        let look = opened.check().await;
        Ok((opened, look))
    })?;
    // What a retry cannot mend is a configuration that does not fit; anything else may pass.
    let problems = monitor::problems(&loaded, &look, |found| !found.passes);
    if problems.has_errors() {
        return Err(refuse(problems));
    }
    log(&problems);
    let mut gateway = Gateway::new(backends, clock, telemetry, settings.timing.clone());
    let takes = look
        .queue
        .as_ref()
        .map_or(usize::MAX, |facts| facts.max_message);
    gateway.max_message = settings.max_message.min(takes);
    let (clock, telemetry) = (Arc::clone(&gateway.clock), Arc::clone(&gateway.telemetry));
    gateway.pressure = Pressure::new(settings.pressure.clone(), clock, telemetry);
    gateway.tenants.store(Arc::new(tenants));
    let gateway = Arc::new(gateway);
    let live = Live {
        loaded,
        registry,
        keys,
    };
    let live = Arc::new(ArcSwap::from_pointee(live));
    let readiness = Arc::new(Readiness::default());
    let reload = Reload::new(
        file,
        sandbox,
        Arc::clone(&live),
        Arc::clone(&gateway),
        Arc::clone(&readiness),
    );
    Ok(Prepared {
        runtime,
        live,
        tls,
        gateway,
        readiness,
        look,
        reload,
    })
}

fn log(problems: &Problems) {
    for problem in problems.iter() {
        match problem.severity {
            Severity::Error => tracing::error!("{problem}"),
            Severity::Warning => tracing::warn!("{problem}"),
        }
    }
}

/// Takes as many files as the system lets this process have: each connection is one, and the usual soft limit
/// is far below what is wanted here.
fn raise_file_limit(max_connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let have = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // Beside connections: the database, listeners, the runtime's own.
    let wanted = max_connections as u64 + 64;
    if have.is_some_and(|have| have < wanted) {
        let have = have.unwrap_or_default();
        tracing::warn!(
            "this process may have {have} files, fewer than `server.max_connections` = {max_connections}; \
             raise the hard limit (ulimit -Hn)"
        );
    }
}

impl Prepared {
    fn serve(self, out: &mut dyn Write) -> Result<(), Refusal> {
        let settings = self.live.load().loaded.settings.clone();
        raise_file_limit(settings.http.max_connections);
        self.runtime.block_on(async {
            let ingress = http::listen(settings.listen, "server.listen").await;
            let ingress = ingress.map_err(|error| Refusal::because(&error))?;
            let admin = http::listen(settings.admin_listen, "admin.listen").await;
            let admin = admin.map_err(|error| Refusal::because(&error))?;
            let hangup = signal(SignalKind::hangup()).map_err(|error| Refusal::because(&error))?;
            let signals = Signals::new().map_err(|error| Refusal::because(&error))?;
            let at = |listener: &TcpListener| {
                listener
                    .local_addr()
                    .map_or_else(|_| "?".into(), |address| address.to_string())
            };
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let (ingress_at, admin_at) = (at(&ingress), at(&admin));
            let _ = writeln!(
                out,
                "ready: deliveries {scheme}://{ingress_at} admin http://{admin_at}"
            );
            let _ = out.flush();
            let reload = tokio::spawn(Arc::clone(&self.reload).watch(hangup));
            let served = self.serve_on(ingress, admin, signals).await;
            reload.abort();
            served
        })
    }

    async fn serve_on(
        &self,
        ingress: TcpListener,
        admin: TcpListener,
        mut signals: Signals,
    ) -> Result<(), Refusal> {
        let readiness = Arc::clone(&self.readiness);
        let settings = self.live.load().loaded.settings.clone();
        readiness.set(true);
        let monitor = Monitor::new(
            Arc::clone(&self.live),
            self.reload.retention(),
            Arc::clone(&self.gateway),
            Arc::clone(&readiness),
        );
        monitor.take(&self.look);
        let limits = settings.http.clone();
        let telemetry = || Arc::clone(&self.gateway.telemetry);
        let (stop_ingress, ingress_stopped) = watch::channel(());
        let (stop_admin, admin_stopped) = watch::channel(());
        let deliveries = tokio::spawn(http::serve(
            ingress,
            self.tls.clone(),
            Arc::new(Ingress::new(Arc::clone(&self.gateway), limits.clone())),
            limits.clone(),
            telemetry(),
            closed(ingress_stopped),
        ));
        let operators = tokio::spawn(http::serve(
            admin,
            None,
            Arc::new(Admin::new(
                Arc::clone(&self.gateway),
                Arc::clone(&readiness),
            )),
            limits,
            telemetry(),
            closed(admin_stopped),
        ));
        tokio::select! {
            () = signals.next() => {}
            () = monitor.watch() => {}
        }
        tracing::info!(delay = ?settings.drain_delay, "draining");
        readiness.set(false);
        let drained = async {
            tokio::time::sleep(settings.drain_delay).await;
            drop(stop_ingress);
            let _ = deliveries.await;
            self.gateway.drain(DRAIN).await
        };
        let drained = tokio::select! {
            drained = drained => drained,
            () = signals.next() => {
                // Never closed, or a disk that hangs would keep the process.
                std::mem::forget(Arc::clone(&self.gateway));
                return Err(Refusal(FAILED, "ended by a second signal\n".into()));
            }
        };
        drop(stop_admin);
        let _ = operators.await;
        tracing::info!(settled = drained, "stopped");
        Ok(())
    }
}

/// Resolves once the sender is gone.
async fn closed(mut channel: watch::Receiver<()>) {
    while channel.changed().await.is_ok() {}
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

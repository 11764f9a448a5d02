//! The sandboxes: one engine, compiled plugins, and a fresh instance for every delivery.
//!
//! Every limit that a plugin can run into stands in [`Limits`] and is told apart from the others when it does.
//! A store that trapped is dropped like any other: nothing of one delivery survives into the next.

use std::borrow::Cow;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use wasmtime::component::{Component, Linker};
use wasmtime::{
    Cache, CacheConfig, Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
};

use super::host::{self, Asked, Call, bindings};
use super::limits;
use super::limits::Limits;
use super::manifest::ManifestError;
use super::{Fault, Handled, Manifest, Plugin, Setup};
use crate::delivery::Delivery;

/// How often the wall clock of running plugins is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Core instances, memories and tables that one component may be made of. Plain Rust plugins need three
/// instances.
const INSTANCES_PER_PLUGIN: u32 = 8;
const MEMORIES_PER_PLUGIN: u32 = 2;
const TABLES_PER_PLUGIN: u32 = 4;
/// The same for those that bring a language's runtime: componentize-py 0.25 links one of each library.
const INSTANCES_PER_RUNTIME: u32 = 64;
const TABLES_PER_RUNTIME: u32 = 16;

/// Sandboxes beside those of deliveries: a plugin that is being loaded is asked for its manifest in one, and
/// must take none from a delivery that holds a slot.
const LOADING: u32 = 1;

/// Why there is no sandbox, or why a file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not have what the limits demand.
    #[error(
        "cannot reserve {calls} sandboxes of {memory} bytes: {reason}\n\
         hint: lower `plugins.concurrent_calls`, or raise the limit of virtual memory (ulimit -v)"
    )]
    Reserve {
        /// How many sandboxes.
        calls: u32,
        /// The memory of each in bytes.
        memory: usize,
        /// The runtime's word for it.
        reason: String,
    },
    /// The compile cache's directory is of no use.
    #[error(
        "cannot use {} as the compile cache: {reason}\n\
         hint: `plugins.cache` names a directory that the gateway's user can write to",
        path.display()
    )]
    Cache {
        /// The directory.
        path: std::path::PathBuf,
        /// The runtime's word for it.
        reason: String,
    },
    /// Some other file.
    #[error("it is not WebAssembly\nhint: build it with `hookgate plugin build DIR`")]
    NotWasm,
    /// Truncated, larger than the limits from the start, or of features that are not allowed.
    #[error("it is not a valid component: {reason}")]
    Invalid {
        /// The runtime's word for it.
        reason: String,
    },
    /// A core module.
    #[error(
        "it is a core module, not a component\nhint: build it with `hookgate plugin build DIR`"
    )]
    CoreModule,
    /// Compiled already, by whom nobody knows.
    #[error("it is machine code, not WebAssembly; compiled plugins are not loaded")]
    Precompiled,
    /// Imports beyond the interface.
    #[error(
        "it imports {}, which no plugin gets\n\
         hint: plugins import hookgate:provider@1 alone; build for wasm32-unknown-unknown, without WASI",
        names.join(", ")
    )]
    ForeignImports {
        /// Their names.
        names: Vec<String>,
    },
    /// Imports WASI, which brings a language's runtime with it.
    #[error(
        "it imports WASI ({} interfaces), as plugins do that bring a language's runtime\n\
         hint: build Rust for wasm32-unknown-unknown, without WASI; what has to bring a runtime, as JavaScript and \
         Python do, is taken with `plugins.runtimes = true`",
        .names.len()
    )]
    Wasi {
        /// The interfaces.
        names: Vec<String>,
    },
    /// Not the interface of hookgate:provider@1.
    #[error(
        "it does not fit hookgate:provider@1: {reason}\n\
         hint: build it with the SDK, or from the wit/, of this gateway's version"
    )]
    Mismatch {
        /// The runtime's word for it.
        reason: String,
    },
    /// The manifest could not be had.
    #[error("its manifest cannot be had: {0}")]
    Manifest(Fault),
    /// The manifest is not valid.
    #[error(transparent)]
    BadManifest(#[from] ManifestError),
}

/// The engine that compiles and runs plugins, and its limits.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<Call>,
    limits: Limits,
    slots: Arc<Semaphore>,
    /// Held while a plugin is asked for its manifest.
    loading: Mutex<()>,
    /// Dropped with the sandbox and the last of its plugins, which ends the ticker.
    ticker: Arc<mpsc::Sender<()>>,
}

impl Sandbox {
    /// Reserves the sandboxes.
    pub fn new(limits: Limits) -> Result<Self, SandboxError> {
        let cache = limits.cache.as_deref().map(open_cache).transpose()?;
        Self::with_cache(limits, cache)
    }

    fn with_cache(limits: Limits, cache: Option<Cache>) -> Result<Self, SandboxError> {
        let reserve = |error: wasmtime::Error| SandboxError::Reserve {
            calls: limits.concurrent_calls,
            memory: limits.memory,
            reason: format!("{error:#}"),
        };
        let mut config = Config::new();
        config
            .consume_fuel(true)
            .epoch_interruption(true)
            .max_wasm_stack(256 << 10)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(&limits)))
            .cache(cache);
        let engine = Engine::new(&config).map_err(reserve)?;
        let mut linker = Linker::new(&engine);
        host::add_to_linker(&mut linker).map_err(reserve)?;
        let slots = Arc::new(Semaphore::new(limits.concurrent_calls as usize));
        let ticker = start_ticker(&engine);
        Ok(Self {
            engine,
            linker,
            limits,
            slots,
            loading: Mutex::new(()),
            ticker,
        })
    }

    /// Compiles a component and asks for its manifest.
    pub fn load(&self, bytes: &[u8]) -> Result<WasmPlugin, SandboxError> {
        if Engine::detect_precompiled(bytes).is_some() {
            return Err(SandboxError::Precompiled);
        }
        if !bytes.starts_with(b"\0asm") {
            return Err(SandboxError::NotWasm);
        }
        // `\0asm`, then the version: a core module's layer is 0.
        if bytes.starts_with(b"\0asm\x01\0\0\0") {
            return Err(SandboxError::CoreModule);
        }
        let component =
            Component::from_binary(&self.engine, bytes).map_err(|error| SandboxError::Invalid {
                reason: format!("{error:#}"),
            })?;
        let wasi = self.refuse_foreign_imports(&component)?;
        let mismatch = |error: wasmtime::Error| SandboxError::Mismatch {
            reason: format!("{error:#}"),
        };
        let mut linker = Cow::Borrowed(&self.linker);
        if !wasi.is_empty() {
            grant_nothing(linker.to_mut(), &component, &wasi).map_err(mismatch)?;
        }
        let pre = linker.instantiate_pre(&component).map_err(mismatch)?;
        let pre = bindings::ProviderPre::new(pre).map_err(mismatch)?;
        let mut plugin = WasmPlugin {
            pre,
            engine: self.engine.clone(),
            limits: self.limits.clone(),
            slots: Arc::clone(&self.slots),
            _ticker: Arc::clone(&self.ticker),
            manifest: Manifest::parse(r#"{"v":1,"name":"unknown","version":"0"}"#)?,
        };
        let json = {
            let _turn = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
            plugin.read_manifest().map_err(SandboxError::Manifest)?
        };
        plugin.manifest = Manifest::parse(&json)?;
        Ok(plugin)
    }

    /// The interfaces of WASI that it imports beside Hookgate's; nothing else may be imported.
    fn refuse_foreign_imports(&self, component: &Component) -> Result<Vec<String>, SandboxError> {
        let ty = component.component_type();
        let names = ty.imports(&self.engine).map(|(name, _)| name.to_owned());
        let names: Vec<_> = names
            .filter(|name| !name.starts_with("hookgate:provider/"))
            .collect();
        if names.is_empty() {
            Ok(names)
        } else if !names.iter().all(|name| name.starts_with("wasi:")) {
            Err(SandboxError::ForeignImports { names })
        } else if self.limits.runtimes {
            Ok(names)
        } else {
            Err(SandboxError::Wasi { names })
        }
    }
}

/// The most random bytes that a runtime gets at once.
const MAX_ZEROS: usize = 4096;

/// WASI that gives nothing: no files, no network, no clock. Who calls any of it ends its delivery. What runtimes
/// ask for as they start is answered: the environment is empty, and random bytes are all zero, so that the verdict
/// depends on the delivery alone.
fn grant_nothing(
    linker: &mut Linker<Call>,
    component: &Component,
    wasi: &[String],
) -> wasmtime::Result<()> {
    let environment = wasi
        .iter()
        .find(|name| name.starts_with("wasi:cli/environment@"));
    if let Some(environment) = environment {
        let mut instance = linker.instance(environment)?;
        instance.func_wrap("get-environment", |_, (): ()| {
            Ok((Vec::<(String, String)>::new(),))
        })?;
        instance.func_wrap("get-arguments", |_, (): ()| Ok((Vec::<String>::new(),)))?;
    }
    let random = wasi
        .iter()
        .find(|name| name.starts_with("wasi:random/random@"));
    if let Some(random) = random {
        let mut instance = linker.instance(random)?;
        instance.func_wrap("get-random-bytes", |_, (count,): (u64,)| {
            let count = usize::try_from(count).unwrap_or(MAX_ZEROS).min(MAX_ZEROS);
            Ok((vec![0_u8; count],))
        })?;
        instance.func_wrap("get-random-u64", |_, (): ()| Ok((0_u64,)))?;
    }
    linker.define_unknown_imports_as_traps(component)
}

fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    let calls = limits.concurrent_calls.saturating_add(LOADING);
    let (instances, tables) = match limits.runtimes {
        true => (INSTANCES_PER_RUNTIME, TABLES_PER_RUNTIME),
        false => (INSTANCES_PER_PLUGIN, TABLES_PER_PLUGIN),
    };
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(instances))
        .total_memories(calls.saturating_mul(MEMORIES_PER_PLUGIN))
        .total_tables(calls.saturating_mul(tables))
        .max_core_instances_per_component(instances)
        .max_memories_per_component(MEMORIES_PER_PLUGIN)
        .max_tables_per_component(tables)
        .max_tables_per_module(tables)
        .max_memory_size(limits.memory)
        .table_elements(limits.table_elements)
        // Zeroing the small memory of a plain plugin by hand is cheaper than giving its pages back.
        .linear_memory_keep_resident(256 << 10)
        .table_keep_resident(64 << 10);
    pool
}

fn open_cache(path: &std::path::Path) -> Result<Cache, SandboxError> {
    let refused = |reason: String| SandboxError::Cache {
        path: path.to_owned(),
        reason,
    };
    std::fs::create_dir_all(path).map_err(|error| refused(error.to_string()))?;
    // The runtime takes absolute paths only.
    let absolute = path
        .canonicalize()
        .map_err(|error| refused(error.to_string()))?;
    let mut config = CacheConfig::new();
    config.with_directory(absolute);
    Cache::new(config).map_err(|error| refused(format!("{error:#}")))
}

/// Ticks until what it returns is dropped.
fn start_ticker(engine: &Engine) -> Arc<mpsc::Sender<()>> {
    let (alive, dropped) = mpsc::channel();
    let engine = engine.weak();
    let tick = move || {
        while dropped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("sandbox-clock".into())
        .spawn(tick)
        .expect("the system has no thread for the sandboxes' clock");
    Arc::new(alive)
}

/// A compiled plugin.
#[derive(Clone)]
pub struct WasmPlugin {
    pre: bindings::ProviderPre<Call>,
    engine: Engine,
    limits: Limits,
    slots: Arc<Semaphore>,
    /// Without it, nothing would end what fuel does not.
    _ticker: Arc<mpsc::Sender<()>>,
    manifest: Manifest,
}

impl WasmPlugin {
    /// The same plugin as another provider's: with the manifest of a preset.
    #[must_use]
    pub fn with_manifest(&self, manifest: Manifest) -> Self {
        Self {
            manifest,
            ..self.clone()
        }
    }

    fn store(&self, call: Call) -> Result<Store<Call>, Fault> {
        let mut store = Store::new(&self.engine, call);
        store.limiter(|call| &mut call.guard);
        store.set_hostcall_fuel(self.limits.output);
        let ticks = self
            .limits
            .wall_clock
            .as_millis()
            .div_ceil(TICK.as_millis())
            + 1;
        // Half of all ticks: the deadline is added to those that have passed.
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX / 2));
        store
            .set_fuel(self.limits.fuel)
            .map_err(|error| self.fault(&error, &mut store))?;
        Ok(store)
    }

    fn read_manifest(&self) -> Result<String, Fault> {
        let call = Call::new(Arc::new(host::no_delivery()), Arc::default(), &self.limits);
        let mut store = self.store(call)?;
        let provider = self
            .pre
            .instantiate(&mut store)
            .map_err(|error| self.fault(&error, &mut store))?;
        provider
            .call_manifest(&mut store)
            .map_err(|error| self.fault(&error, &mut store))
    }

    /// Decides about a delivery and tells what was asked of the host meanwhile, with the MACs that would have
    /// fitted. For whoever owns the secrets and signs a request of their own.
    pub fn rehearse(
        &self,
        delivery: &Arc<Delivery>,
        setup: &Arc<Setup>,
    ) -> Result<(Handled, Vec<Asked>), Fault> {
        let mut call = Call::new(Arc::clone(delivery), Arc::clone(setup), &self.limits);
        call.asked = Some(Vec::new());
        let (handled, mut call) = self.call(call)?;
        Ok((handled, call.asked.take().unwrap_or_default()))
    }

    fn call(&self, call: Call) -> Result<(Handled, Call), Fault> {
        let slots = self.limits.concurrent_calls;
        let _slot = self
            .slots
            .try_acquire()
            .map_err(|_| Fault::NoSlot { slots })?;
        let mut store = self.store(call)?;
        let provider = self
            .pre
            .instantiate(&mut store)
            .map_err(|error| self.fault(&error, &mut store))?;
        let verdict = provider
            .call_handle(&mut store)
            .map_err(|error| self.fault(&error, &mut store))?;
        let left = store.get_fuel().unwrap_or(0);
        let mut call = store.into_data();
        let verdict = host::verdict(verdict, &call)?;
        let handled = Handled {
            verdict,
            key: call.matched.take(),
            confirm: call.confirm.take(),
            fuel: self.limits.fuel.saturating_sub(left),
        };
        Ok((handled, call))
    }

    /// What ended a call.
    fn fault(&self, error: &wasmtime::Error, store: &mut Store<Call>) -> Fault {
        limits::fault(error, &self.limits, &store.data().guard)
    }
}

impl Plugin for WasmPlugin {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn handle(&self, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> Result<Handled, Fault> {
        let call = Call::new(Arc::clone(delivery), Arc::clone(setup), &self.limits);
        self.call(call).map(|(handled, _)| handled)
    }
}

#[cfg(test)]
mod tests;

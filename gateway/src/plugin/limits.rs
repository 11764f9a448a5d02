//! What one delivery may cost, and what a plugin that wanted more is told apart by.

use std::path::PathBuf;
use std::time::Duration;

use wasmtime::{ResourceLimiter, Trap};

use super::Fault;

/// What one delivery may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Computation in units of fuel: about one a WebAssembly instruction, and one a byte that a host function
    /// hashes, scans or copies. A unit takes about a nanosecond or less.
    pub fuel: u64,
    /// Linear memory, in bytes.
    pub memory: usize,
    /// Elements of all tables.
    pub table_elements: usize,
    /// What the plugin may hand to the host in one call, the verdict included, in bytes.
    pub output: usize,
    /// The wall clock's backstop. Generous: on a busy machine an honest plugin may wait for its core.
    pub wall_clock: Duration,
    /// How many deliveries may be in sandboxes at once.
    pub concurrent_calls: u32,
    /// Whether plugins that bring a language's runtime are taken.
    pub runtimes: bool,
    /// Where compiled plugins are kept, if anywhere.
    pub cache: Option<PathBuf>,
}

/// The table of functions of a language's runtime: componentize-js 0.23 has 7,711 entries, componentize-py 0.25
/// fewer.
const RUNTIME_TABLE: usize = 16_384;

impl Limits {
    /// The limits that hold unless the operator says otherwise.
    pub fn of(runtimes: bool) -> Self {
        let plain = Self::default();
        Self {
            runtimes,
            table_elements: if runtimes {
                RUNTIME_TABLE
            } else {
                plain.table_elements
            },
            ..plain
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 20_000_000,
            memory: 16 << 20,
            table_elements: 1024,
            output: 1 << 20,
            wall_clock: Duration::from_secs(1),
            concurrent_calls: 64,
            runtimes: false,
            cache: None,
        }
    }
}

/// Refuses growth beyond the limits, and remembers it: the plugin's trap that follows says nothing of it.
/// What counts is the sum over all of a component's memories, and over all of its tables.
pub(super) struct Guard {
    memory: Quota,
    table_elements: Quota,
    refused: Option<Fault>,
}

/// How much of something there may be, and is.
struct Quota {
    what: &'static str,
    limit: usize,
    used: usize,
}

impl Quota {
    fn of(limit: usize, what: &'static str) -> Self {
        Self {
            what,
            limit,
            used: 0,
        }
    }

    /// Takes what a memory or table grows by. What its own maximum forbids is not taken: growth fails then.
    fn take(&mut self, from: usize, to: usize, maximum: Option<usize>) -> Result<(), Fault> {
        if maximum.is_some_and(|maximum| to > maximum) {
            return Ok(());
        }
        let asked = self.used.saturating_add(to.saturating_sub(from));
        if asked > self.limit {
            let (what, limit) = (self.what, self.limit);
            return Err(Fault::OutOfMemory { what, asked, limit });
        }
        self.used = asked;
        Ok(())
    }
}

impl Guard {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            memory: Quota::of(limits.memory, "bytes of memory"),
            table_elements: Quota::of(limits.table_elements, "table elements"),
            refused: None,
        }
    }

    fn allow(&mut self, taken: Result<(), Fault>) -> bool {
        let allowed = taken.is_ok();
        self.refused = taken.err().or(self.refused.take());
        allowed
    }
}

impl ResourceLimiter for Guard {
    fn memory_growing(
        &mut self,
        from: usize,
        to: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let taken = self.memory.take(from, to, maximum);
        Ok(self.allow(taken))
    }

    fn table_growing(
        &mut self,
        from: usize,
        to: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let taken = self.table_elements.take(from, to, maximum);
        Ok(self.allow(taken))
    }
}

/// What ended a call: the host's own word, a limit, a trap, or an answer that cannot be read.
pub(super) fn fault(error: &wasmtime::Error, limits: &Limits, guard: &Guard) -> Fault {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    match (error.downcast_ref::<Trap>(), &guard.refused) {
        (Some(Trap::OutOfFuel), _) => Fault::OutOfFuel { limit: limits.fuel },
        (Some(Trap::Interrupt), _) => Fault::WallClock {
            limit: limits.wall_clock,
        },
        (_, Some(refused)) => refused.clone(),
        (Some(trap), None) => Fault::Trap {
            reason: trap.to_string(),
        },
        (None, None) => Fault::Refused {
            what: format!("{error:#}"),
        },
    }
}

//! The plugins of a directory, by the names in their manifests.
//!
//! One file that is no plugin does not stop the others: it is reported, and only the sources that name it
//! are unavailable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Plugin, Sandbox, SandboxError, WasmPlugin};

/// The plugins at hand.
#[derive(Default)]
pub struct Registry {
    plugins: BTreeMap<String, Arc<WasmPlugin>>,
    /// What was found that is no plugin.
    pub refused: Vec<Refused>,
}

/// A file that is no plugin.
#[derive(Debug, thiserror::Error)]
#[error("plugin {} is refused: {reason}", path.display())]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: RefusedReason,
}

/// Why a file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum RefusedReason {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is not a plugin.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Two files claim one name.
    #[error("its manifest's name {0:?} is taken by another file")]
    NameTaken(String),
}

impl Registry {
    /// Loads every `*.wasm` of a directory, in the order of their names.
    pub fn open(sandbox: &Sandbox, directory: &Path) -> std::io::Result<Self> {
        let mut paths = std::fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        paths.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        });
        paths.sort();
        let mut registry = Self::default();
        for path in paths {
            if let Err(reason) = registry.add(sandbox, &path) {
                registry.refused.push(Refused { path, reason });
            }
        }
        Ok(registry)
    }

    fn add(&mut self, sandbox: &Sandbox, path: &Path) -> Result<(), RefusedReason> {
        let plugin = sandbox.load(&std::fs::read(path)?)?;
        let name = plugin.manifest().name.clone();
        if self.plugins.contains_key(&name) {
            return Err(RefusedReason::NameTaken(name));
        }
        self.plugins.insert(name, Arc::new(plugin));
        Ok(())
    }

    /// The plugin of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<WasmPlugin>> {
        self.plugins.get(name)
    }

    /// The names of all plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.keys().map(String::as_str)
    }
}

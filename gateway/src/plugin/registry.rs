//! The plugins of a directory, by the names in their manifests, and the presets beside them.
//!
//! One file that is no plugin does not stop the others: it is reported, and only the sources that name it
//! are unavailable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::preset::{Preset, PresetError};
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
    /// It is not a preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// Two files claim one name.
    #[error("its manifest's name {0:?} is taken by another file")]
    NameTaken(String),
}

impl Registry {
    /// Loads every `*.wasm` of a directory, in the order of their names, then every preset, `*.json`.
    pub fn open(sandbox: &Sandbox, directory: &Path) -> std::io::Result<Self> {
        let mut paths = std::fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        let is = |path: &Path, kind: &str| path.extension().is_some_and(|found| found == kind);
        let (plugins, rest): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| is(path, "wasm"));
        let presets = rest.into_iter().filter(|path| is(path, "json"));
        let mut registry = Self::default();
        for path in plugins.into_iter().chain(presets) {
            let added = match is(&path, "wasm") {
                true => registry.add_plugin(sandbox, &path),
                false => registry.add_preset(&path),
            };
            if let Err(reason) = added {
                registry.refused.push(Refused { path, reason });
            }
        }
        Ok(registry)
    }

    fn add_plugin(&mut self, sandbox: &Sandbox, path: &Path) -> Result<(), RefusedReason> {
        self.add(sandbox.load(&std::fs::read(path)?)?)
    }

    fn add_preset(&mut self, path: &Path) -> Result<(), RefusedReason> {
        let preset = Preset::parse(&std::fs::read(path)?)?;
        let of = self.plugins.get(&preset.of);
        let of = of.ok_or_else(|| PresetError::NoPlugin(preset.of.clone()))?;
        let manifest = preset.manifest(of.manifest())?;
        self.add(of.with_manifest(manifest))
    }

    fn add(&mut self, plugin: WasmPlugin) -> Result<(), RefusedReason> {
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

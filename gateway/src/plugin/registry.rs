//! The plugins of a directory, by the names in their manifests, and the presets beside them.
//!
//! One file that is no plugin does not stop the others: it is reported, and only the sources that name it
//! are unavailable. What was compiled before is not compiled again: a component is known by its digest.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;

use super::preset::{Preset, PresetError};
use super::{Plugin, Sandbox, SandboxError, WasmPlugin};
use crate::crypto;

/// The SHA-256 digest of a file.
pub type Digest = [u8; 32];

/// The digests that files must have, by the names in their manifests.
pub type Pins = BTreeMap<String, Digest>;

/// The plugins at hand.
#[derive(Default)]
pub struct Registry {
    plugins: BTreeMap<String, (Arc<WasmPlugin>, Digest)>,
    compiled: HashMap<Digest, Arc<WasmPlugin>>,
    /// What was found that is no plugin.
    pub refused: Vec<Refused>,
}

/// A file that is no plugin.
#[derive(Debug, thiserror::Error)]
#[error("plugin {} is refused: {reason}", path.display())]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// Its digest, where it can be read.
    pub digest: Option<Digest>,
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
    /// Another file than the one that the operator chose.
    #[error(
        "its SHA-256 is {}, and `{name}` is pinned to {}\n\
         hint: if you trust this file, write its digest at `plugins.pinned.{name}`",
        HEXLOWER.encode(found), HEXLOWER.encode(pinned)
    )]
    Pinned {
        /// The name in its manifest.
        name: String,
        /// Its digest.
        found: Digest,
        /// What it should be.
        pinned: Digest,
    },
    /// Two files claim one name.
    #[error("its manifest's name {0:?} is taken by another file")]
    NameTaken(String),
}

impl Registry {
    /// Loads every `*.wasm` of a directory, in the order of their names, then every preset, `*.json`.
    pub fn open(sandbox: &Sandbox, directory: &Path) -> std::io::Result<Self> {
        Self::reopen(sandbox, directory, &Pins::new(), &Self::default())
    }

    /// The same, held to pins, and without compiling what another registry has.
    pub fn reopen(
        sandbox: &Sandbox,
        directory: &Path,
        pins: &Pins,
        before: &Self,
    ) -> std::io::Result<Self> {
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
            let mut digest = None;
            let added = std::fs::read(&path).map_err(RefusedReason::from);
            let added = added.and_then(|bytes| {
                let found = *digest.insert(crypto::sha256(&bytes));
                let plugin = match is(&path, "wasm") {
                    true => registry.compiled(sandbox, &bytes, found, before)?,
                    false => registry.preset(&bytes)?,
                };
                registry.add(plugin, found, pins)
            });
            if let Err(reason) = added {
                registry.refused.push(Refused {
                    path,
                    digest,
                    reason,
                });
            }
        }
        Ok(registry)
    }

    fn compiled(
        &mut self,
        sandbox: &Sandbox,
        bytes: &[u8],
        digest: Digest,
        before: &Self,
    ) -> Result<Arc<WasmPlugin>, RefusedReason> {
        let plugin = match before.compiled.get(&digest) {
            Some(plugin) => Arc::clone(plugin),
            None => Arc::new(sandbox.load(bytes)?),
        };
        self.compiled.insert(digest, Arc::clone(&plugin));
        Ok(plugin)
    }

    fn preset(&self, bytes: &[u8]) -> Result<Arc<WasmPlugin>, RefusedReason> {
        let preset = Preset::parse(bytes)?;
        let of = self.get(&preset.of);
        let of = of.ok_or_else(|| PresetError::NoPlugin(preset.of.clone()))?;
        let manifest = preset.manifest(of.manifest())?;
        Ok(Arc::new(of.with_manifest(manifest)))
    }

    fn add(
        &mut self,
        plugin: Arc<WasmPlugin>,
        found: Digest,
        pins: &Pins,
    ) -> Result<(), RefusedReason> {
        let name = plugin.manifest().name.clone();
        if let Some(pinned) = pins.get(&name).copied().filter(|pinned| *pinned != found) {
            return Err(RefusedReason::Pinned {
                name,
                found,
                pinned,
            });
        }
        if self.plugins.contains_key(&name) {
            return Err(RefusedReason::NameTaken(name));
        }
        self.plugins.insert(name, (plugin, found));
        Ok(())
    }

    /// The plugin of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<WasmPlugin>> {
        self.plugins.get(name).map(|(plugin, _)| plugin)
    }

    /// The digest of that plugin's file, or of its preset's.
    pub fn digest(&self, name: &str) -> Option<&Digest> {
        self.plugins.get(name).map(|(_, digest)| digest)
    }

    /// The names of all plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.keys().map(String::as_str)
    }
}

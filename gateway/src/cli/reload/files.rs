//! The files that a running gateway is made of, and what is in them.
//!
//! Looked at again and again instead of being watched: what editors, `git pull` and Kubernetes do to files (new
//! ones in the place of old, links that lead elsewhere) is all seen, on every file system. A file whose metadata
//! are as before is not read again; one that was only touched has not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::Settings;
use crate::config::secret::SecretRef;
use crate::crypto;
use crate::plugin::registry::Digest;

/// A file's place on its disk, size and times: what changes with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what the path leads to, through links.
    fn of(path: &Path) -> Option<Self> {
        let of = std::fs::metadata(path).ok()?;
        Some(Self {
            device: of.dev(),
            inode: of.ino(),
            size: of.size(),
            modified: (of.mtime(), of.mtime_nsec()),
            changed: (of.ctime(), of.ctime_nsec()),
        })
    }
}

#[derive(Debug, Clone)]
struct Content {
    stamp: Option<Stamp>,
    /// None where it cannot be read.
    digest: Option<Digest>,
}

/// Files, and what was in them when they were looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Files(BTreeMap<PathBuf, Content>);

/// Equal where all contents are.
impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        let both = self.0.iter().zip(&other.0);
        let same = |((path, content), (other_path, other)): ((_, &Content), (_, &Content))| {
            path == other_path && content.digest == other.digest
        };
        self.0.len() == other.0.len() && both.into_iter().all(same)
    }
}

impl Files {
    /// Looks at the configuration, the plugins and the files of secrets, and reads what is new since `before`.
    pub(super) fn look(config: &Path, settings: &Settings, before: &Self) -> Self {
        let secrets = settings
            .sources
            .iter()
            .flat_map(|s| s.secrets.values().flatten());
        let secrets = secrets.filter_map(|secret| match secret {
            SecretRef::File(path) => Some(path.clone()),
            SecretRef::Env(_) => None,
        });
        let own =
            Some(config.to_owned()).filter(|path| !path.to_string_lossy().starts_with("env:"));
        let plugins = plugin_files(&settings.plugin_directory);
        let all: BTreeSet<_> = own.into_iter().chain(plugins).chain(secrets).collect();
        let content = |path: PathBuf| {
            let stamp = Stamp::of(&path);
            let known = before
                .0
                .get(&path)
                .filter(|known| stamp.is_some() && known.stamp == stamp);
            let digest = match known {
                Some(known) => known.digest,
                None => std::fs::read(&path)
                    .ok()
                    .map(|bytes| crypto::sha256(&bytes)),
            };
            (path, Content { stamp, digest })
        };
        Self(all.into_iter().map(content).collect())
    }
}

/// The plugins and presets of a directory; none where it cannot be read.
fn plugin_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_plugin = |path: &PathBuf| {
        path.extension()
            .is_some_and(|of| of == "wasm" || of == "json")
    };
    paths.filter(is_plugin).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::{self, secret::Process};

    /// A directory with a configuration, a plugin and a secret.
    fn directory() -> tempfile::TempDir {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir(at.path().join("plugins")).unwrap();
        fs::write(at.path().join("plugins/a.wasm"), "a").unwrap();
        fs::write(at.path().join("plugins/notes.txt"), "a").unwrap();
        fs::write(at.path().join("key"), "secret").unwrap();
        let text = "[tenants.t.sources.s]\nplugin = \"a\"\nsecrets.secret = [\"file:key\"]\n";
        fs::write(at.path().join("hookgate.toml"), text).unwrap();
        at
    }

    fn look(at: &tempfile::TempDir, before: &Files) -> Files {
        let file = at.path().join("hookgate.toml");
        let loaded = config::load(&file, &Process).unwrap();
        Files::look(&file, &loaded.settings, before)
    }

    #[test]
    fn new_changed_replaced_and_removed_files_are_seen_and_touched_ones_are_not() {
        let at = directory();
        let path = |name: &str| at.path().join(name);
        let mut last = look(&at, &Files::default());
        assert_eq!(last.0.len(), 3, "{last:?}");
        let mut is_seen = |what: &str, expected: bool| {
            let now = look(&at, &last);
            assert_eq!(now != last, expected, "{what}");
            last = now;
        };
        is_seen("nothing", false);
        fs::write(path("plugins/a.wasm"), "a").unwrap();
        is_seen("the same bytes again", false);
        fs::write(path("plugins/a.wasm"), "b").unwrap();
        is_seen("in place", true);
        fs::write(path("new"), "c").unwrap();
        fs::rename(path("new"), path("plugins/a.wasm")).unwrap();
        is_seen("by rename", true);
        fs::write(path("plugins/b.json"), "{}").unwrap();
        is_seen("a new one", true);
        fs::remove_file(path("plugins/b.json")).unwrap();
        is_seen("one less", true);
        fs::write(path("plugins/notes.txt"), "b").unwrap();
        is_seen("no plugin", false);
        fs::write(path("key"), "rotated").unwrap();
        is_seen("a secret", true);
        fs::remove_file(path("key")).unwrap();
        is_seen("no secret", true);
    }

    /// As Kubernetes mounts a ConfigMap: links through a link, which alone is replaced.
    #[test]
    fn links_that_lead_elsewhere_are_seen() {
        let at = directory();
        let path = |name: &str| at.path().join(name);
        for (version, content) in [("v1", "one"), ("v2", "two")] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("c.wasm"), content).unwrap();
        }
        symlink("../v1", path("plugins/..data")).unwrap();
        symlink("..data/c.wasm", path("plugins/c.wasm")).unwrap();
        let before = look(&at, &Files::default());
        assert_eq!(before.0.len(), 4, "{before:?}");
        symlink("../v2", path("plugins/..new")).unwrap();
        fs::rename(path("plugins/..new"), path("plugins/..data")).unwrap();
        let now = look(&at, &before);
        assert_ne!(now, before);
        assert_eq!(look(&at, &now), now);
    }
}

//! A provider that a generic plugin serves by options alone: a JSON file beside the plugins.
//!
//! It names the plugin (`of`), the options (`options`), and whatever else of the plugin's manifest is another
//! for this provider: its name, its secrets' descriptions, what is known of its retries. Such a file is data:
//! it can do nothing that a source's own options could not.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::manifest::{Manifest, ManifestError};

/// A preset's file.
#[derive(Debug, Deserialize)]
pub(super) struct Preset {
    /// The plugin that it is for.
    pub(super) of: String,
    options: BTreeMap<String, String>,
    /// Keys of a manifest.
    #[serde(flatten)]
    manifest: BTreeMap<String, Value>,
}

/// Why a file is no preset.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// Not the JSON of a preset.
    #[error("it is not a preset: {0}\nhint: it needs `v`, `name`, `version`, `of` and `options`")]
    Json(#[from] serde_json::Error),
    /// What it makes of the manifest is none.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its plugin is not there.
    #[error("there is no plugin `{0}`, which it is for")]
    NoPlugin(String),
    /// Its plugin knows no such option.
    #[error("the plugin `{plugin}` has no option `{option}`")]
    NoOption {
        /// The plugin.
        plugin: String,
        /// The option.
        option: String,
    },
}

impl Preset {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, PresetError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The manifest of the provider: the plugin's, with what the preset says, and its options as defaults.
    pub(super) fn manifest(&self, of: &Manifest) -> Result<Manifest, PresetError> {
        let unknown = |option: &&String| !of.options.iter().any(|known| known.name == **option);
        if let Some(option) = self.options.keys().find(unknown) {
            return Err(PresetError::NoOption {
                plugin: of.name.clone(),
                option: option.clone(),
            });
        }
        let mut json = of.json.clone();
        json.extend(self.manifest.clone());
        let mut manifest = Manifest::parse(&serde_json::to_string(&json)?)?;
        // As the plugin has them, which may be a preset itself.
        manifest.options.clone_from(&of.options);
        for option in &mut manifest.options {
            if let Some(own) = self.options.get(&option.name) {
                option.default = Some(own.clone());
            }
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERIC: &str = r#"{"v":1,"name":"generic","version":"1","timeout_ms":5000,"id_stable":true,
        "options":[{"name":"header","required":true},{"name":"encoding","default":"hex"}]}"#;

    fn made(preset: &str) -> Result<Manifest, PresetError> {
        let of = Manifest::parse(GENERIC).unwrap();
        Preset::parse(preset.as_bytes())?.manifest(&of)
    }

    #[test]
    fn a_preset_changes_what_it_names_and_keeps_the_rest() {
        let manifest = made(
            r#"{"v":1,"name":"acme","version":"2","of":"generic","timeout_ms":100,"evidence":"reported",
                "options":{"header":"X-Acme"}}"#,
        );
        let manifest = manifest.unwrap();
        assert_eq!(
            (manifest.name.as_str(), manifest.timeout_ms),
            ("acme", Some(100))
        );
        assert!(
            manifest.id_stable && manifest.unknown.is_empty(),
            "{:?}",
            manifest.unknown
        );
        let defaults = manifest
            .options
            .iter()
            .map(|option| option.default.as_deref());
        assert_eq!(defaults.collect::<Vec<_>>(), [Some("X-Acme"), Some("hex")]);
    }

    #[test]
    fn what_is_no_preset_is_told_by_its_reason() {
        let refused = |text: &str| made(text).unwrap_err().to_string();
        assert!(
            refused("{").starts_with("it is not a preset: EOF"),
            "{}",
            refused("{")
        );
        assert!(refused(r#"{"of":"generic"}"#).contains("missing field `options`"));
        let text = r#"{"v":1,"name":"acme","version":"2","of":"generic","options":{"haeder":"X"}}"#;
        assert_eq!(refused(text), "the plugin `generic` has no option `haeder`");
        let text = r#"{"v":1,"name":"Acme","version":"2","of":"generic","options":{}}"#;
        assert!(
            refused(text).contains("is not lower-case letters"),
            "{}",
            refused(text)
        );
    }
}

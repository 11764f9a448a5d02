//! What a plugin says of itself and its provider, as JSON that may grow.
//!
//! Configuration is checked against it and policies get their defaults from it. Keys that this gateway does
//! not know are kept by name, so that a newer plugin's can be warned of.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::crypto::{KeyForm, Keyring, PublicAlgorithm};
use crate::keys::HostPattern;

/// A plugin's manifest.
#[derive(Debug, Clone, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a promise of the provider's, independent of the others"
)]
pub struct Manifest {
    /// The format's version: 1.
    pub v: u32,
    /// The plugin's name, which is the provider's: the first part of `ce-type`.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// The provider's page about its webhooks.
    #[serde(default)]
    pub documentation: String,
    /// The signature schemes it verifies, as the vectors name them.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// How the scheme is known.
    pub evidence: Option<Evidence>,
    /// The secrets it asks the host to verify with.
    #[serde(default)]
    pub secrets: Vec<SecretSpec>,
    /// The header that carries the signature. `option:NAME`: the one that the option names.
    pub signature_header: Option<String>,
    /// How long the provider waits for an answer, in ms.
    pub timeout_ms: Option<u64>,
    /// How long after a failed attempt the provider's first retry comes, in ms.
    pub first_retry_ms: Option<u64>,
    /// How long the provider goes on retrying, in seconds.
    pub retry_window_s: Option<u64>,
    /// How often the provider sends an event by itself; 1 where it never retries, none where unknown.
    pub max_attempts: Option<u32>,
    /// The answers it retries on, as `4xx`, `5xx` or a status; none where unknown, which counts as all.
    pub retries_on: Option<Vec<String>>,
    /// The status it expects of an accepted event, where 202 will not do.
    pub accepted_status: Option<u16>,
    /// Whether retries carry the same id.
    #[serde(default)]
    pub id_stable: bool,
    /// Whether retries carry the same bytes.
    #[serde(default)]
    pub body_stable: bool,
    /// Whether every delivery has an id.
    #[serde(default)]
    pub every_delivery_has_id: bool,
    /// Whether the id is under the signature.
    #[serde(default)]
    pub id_signed: bool,
    /// Whether the signed time is the attempt's or the event's.
    pub signed_time: Option<SignedTime>,
    /// The hosts that keys and certificates are fetched from, and handshakes confirmed at; a `*` stands for one
    /// label, as in `sns.*.amazonaws.com`.
    #[serde(default)]
    pub key_hosts: Vec<String>,
    /// What a certificate by URL must be, beside valid when the delivery arrives.
    pub certificates: Option<CertificateSpec>,
    /// How the provider tries who listens, in a few words; none where it does not.
    pub handshake: Option<String>,
    /// Whether the answer to that holds a MAC, for which the source needs `sign_challenges`.
    #[serde(default)]
    pub signs_challenges: bool,
    /// Whether one delivery may hold several of the provider's events: they travel as one message.
    #[serde(default)]
    pub batch: bool,
    /// Whether the scheme signs the URL that the provider called.
    #[serde(default)]
    pub needs_public_url: bool,
    /// The options it reads.
    #[serde(default)]
    pub options: Vec<OptionSpec>,
    /// A request to sign, for trying a source out.
    pub sample: Option<Sample>,
    /// Keys that this gateway does not know.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, serde_json::Value>,
    /// All that it was read from, for presets to change.
    #[serde(skip)]
    pub(super) json: BTreeMap<String, serde_json::Value>,
}

/// What a certificate by URL must be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct CertificateSpec {
    /// The names that its subject may have; a `*` stands for one label.
    pub names: Vec<String>,
    /// Whether it must be signed, by what is at the same URL, up to an authority that the system trusts. Where
    /// not, that it came from its host by HTTPS is what vouches for it.
    #[serde(default)]
    pub chain: bool,
}

/// How a provider's signature scheme is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Signatures that the provider published are verified in the tests.
    PublishedSignatures,
    /// The provider's own documentation or code.
    Documentation,
    /// Others' word: try it with a delivery of the provider before relying on it.
    Reported,
}

impl Evidence {
    /// As in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::PublishedSignatures => "published signatures",
            Self::Documentation => "documentation",
            Self::Reported => "reported",
        }
    }
}

/// Whose time a provider signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignedTime {
    /// The attempt's: every retry is signed anew.
    Attempt,
    /// The event's: a retry is as old as the event.
    Event,
}

/// What a secret is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretKind {
    /// The key of a MAC.
    Mac,
    /// A value that the delivery itself carries.
    Token,
    /// A public key.
    PublicKey,
}

/// A secret that a plugin names.
#[derive(Debug, Clone, Deserialize)]
pub struct SecretSpec {
    /// Its name in the source's `secrets`.
    pub name: String,
    /// What it is used for.
    pub kind: SecretKind,
    /// How the configured value becomes a key, unless the source says otherwise.
    #[serde(default)]
    pub form: KeyForm,
    /// What a public key must be for; none where any will do.
    pub algorithm: Option<PublicAlgorithm>,
    /// Whether the source is of no use without it. Where none of several is required, one of them is.
    #[serde(default = "yes")]
    pub required: bool,
    /// What it is, and where the provider shows it.
    #[serde(default)]
    pub description: String,
}

fn yes() -> bool {
    true
}

/// An option that a plugin reads.
#[derive(Debug, Clone, Deserialize)]
pub struct OptionSpec {
    /// Its name in the source's `options`.
    pub name: String,
    /// Whether the source is of no use without it.
    #[serde(default)]
    pub required: bool,
    /// What holds where it is not given.
    pub default: Option<String>,
    /// The secret the names of whose values, in the form `named`, hold where it is not given, with spaces between.
    pub names_of: Option<String>,
    /// What it is.
    #[serde(default)]
    pub description: String,
}

/// A request as the provider would send it, with `{id}`, `{timestamp}` (seconds since 1970;
/// also `{timestamp:ms}` and `{timestamp:rfc3339}`), `{signature:hex}` or `{signature:base64}` to fill in. Generic plugins have `{option:NAME}` and `{signature}`,
/// which is encoded as the plugin asks for.
#[derive(Debug, Clone, Deserialize)]
pub struct Sample {
    /// The method.
    pub method: String,
    /// What follows the source in the path, and the query.
    #[serde(default)]
    pub target: String,
    /// The headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: String,
}

/// Why a manifest is none.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not the JSON that the interface describes.
    #[error("its manifest is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// Of another format.
    #[error("its manifest has the version {0}; this gateway reads version 1")]
    Version(u32),
    /// An answer that is no promise.
    #[error("its manifest's accepted_status is {0}, which is no 2xx")]
    AcceptedStatus(u16),
    /// A host that is none.
    #[error("its manifest names {0:?}, which is no host's name")]
    Host(String),
    /// A name that cannot stand in a configuration or in `ce-type`.
    #[error("its manifest's name {0:?} is not lower-case letters, digits and hyphens")]
    Name(String),
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(json: &str) -> Result<Self, ManifestError> {
        let mut manifest: Self = serde_json::from_str(json)?;
        manifest.json = serde_json::from_str(json)?;
        if manifest.v != 1 {
            return Err(ManifestError::Version(manifest.v));
        }
        let status = manifest.accepted_status;
        if let Some(status) = status.filter(|status| !(200..=299).contains(status)) {
            return Err(ManifestError::AcceptedStatus(status));
        }
        let certified = manifest.certificates.iter().flat_map(|spec| &spec.names);
        let mut hosts = manifest.key_hosts.iter().chain(certified);
        if let Some(host) = hosts.find(|host| HostPattern::new(host).is_none()) {
            return Err(ManifestError::Host(host.clone()));
        }
        if crate::delivery::Name::new(&manifest.name).is_none() {
            return Err(ManifestError::Name(manifest.name));
        }
        Ok(manifest)
    }

    /// The specification of a secret.
    pub fn secret(&self, name: &str) -> Option<&SecretSpec> {
        self.secrets.iter().find(|secret| secret.name == name)
    }

    /// How deliveries prove themselves, in a few words: what the options say of a generic plugin, which is what
    /// presets are, else the schemes' names.
    pub fn scheme(&self) -> String {
        let option = |name: &str| {
            let mut named = self.options.iter().filter(|option| option.name == name);
            named.next().and_then(|option| option.default.as_deref())
        };
        match (
            option("algorithms"),
            option("token"),
            option("signed"),
            option("header"),
        ) {
            (Some(algorithms), ..) => format!("JSON Web Token, {algorithms}"),
            (None, Some(place), ..) => format!("token in {}", place.replacen(':', " ", 1)),
            (None, None, Some(signed), Some(header)) => {
                let algorithm = option("algorithm").unwrap_or_default();
                let encoding = option("encoding").unwrap_or_default();
                format!("{algorithm} of {signed} as {encoding} in {header}")
            }
            _ => self.schemes.join(", "),
        }
    }

    /// How long the provider goes on retrying, in words; none where that is not known.
    pub fn retries(&self) -> Option<String> {
        match (self.retry_window_s, self.max_attempts) {
            (_, Some(1)) => Some("never retries".into()),
            (Some(window), _) => {
                let window = std::time::Duration::from_secs(window);
                Some(humantime::format_duration(window).to_string())
            }
            (None, attempts) => attempts.map(|attempts| format!("{attempts} attempts")),
        }
    }

    /// A keyring that knows every name of the manifest, without a value yet.
    pub fn keyring(&self) -> Keyring {
        let mut keys = Keyring::default();
        for secret in &self.secrets {
            match secret.kind {
                SecretKind::PublicKey => keys.declare_public(&secret.name),
                SecretKind::Mac | SecretKind::Token => keys.declare(&secret.name),
            }
        }
        keys
    }

    /// Whether the provider sends the event again after this answer.
    pub fn retries_on(&self, status: u16) -> bool {
        let class = format!("{}xx", status / 100);
        let status = status.to_string();
        let named = |on: &Vec<String>| on.iter().any(|on| *on == class || *on == status);
        self.retries_on.as_ref().is_none_or(named)
    }

    /// Whether the provider never sends an event again by itself.
    pub fn never_retries(&self) -> bool {
        self.max_attempts == Some(1)
    }

    /// The header that carries the signature, given the source's options.
    pub fn signature_header(&self, options: &BTreeMap<String, String>) -> Option<String> {
        let header = self.signature_header.as_deref()?;
        match header.strip_prefix("option:") {
            Some(option) => options.get(option).cloned(),
            None => Some(header.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_for_accepted_events_that_is_no_2xx_is_refused() {
        let parse = |status: u16| {
            let json =
                format!(r#"{{"v":1,"name":"acme","version":"1","accepted_status":{status}}}"#);
            Manifest::parse(&json)
        };
        assert_eq!(parse(204).unwrap().accepted_status, Some(204));
        let refused = parse(503).unwrap_err().to_string();
        assert_eq!(
            refused,
            "its manifest's accepted_status is 503, which is no 2xx"
        );
    }
}

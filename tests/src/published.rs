//! Published signatures (`plugins/*/vectors.json`) as sources of a real configuration and deliveries to them.
//!
//! Their timestamps are years old, so their sources take any age, except where age is what is wrong with them.
//! Many were published without the headers that carry ids: their sources know events by their content.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use serde_json::Value;

use crate::provider::Signed;

/// A published signature, and the source that its delivery goes to.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says something else of a delivery"
)]
pub struct Published {
    /// The plugin.
    pub plugin: String,
    /// `scheme/provider`.
    pub title: String,
    /// Whether the delivery must be accepted.
    pub valid: bool,
    /// Whether its source takes any age.
    pub any_age: bool,
    /// Whether it is an event, not a handshake.
    pub is_event: bool,
    /// Whether its message would be larger than a queue takes.
    pub too_large: bool,
    /// The delivery.
    pub delivery: Signed,
    /// The source's part of the configuration.
    pub config: String,
}

/// The tenant that the sources belong to.
const TENANT: &str = "published";

/// Plugins whose vectors are run in the host alone: tokens that ended long ago by a clock that nobody can set here,
/// and certificates that would have to be fetched from their providers.
const ELSEWHERE: [&str; 4] = ["aws-sns", "jwt", "messagebird", "paypal"];

/// The plugins that bring vectors, in the order of their names.
pub fn plugins(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.path().join("vectors.json").exists() && !ELSEWHERE.iter().any(|no| name == *no) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Every vector of a plugin; its secrets are written into `secrets`, which stands beside the configuration.
pub fn load(plugins: &Path, plugin: &str, secrets: &Path) -> io::Result<Vec<Published>> {
    let read = |name: &str| -> io::Result<Value> {
        let text = fs::read(plugins.join(plugin).join(name))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    };
    let vectors = read("vectors.json")?;
    let manifest = read("manifest.json")?;
    let options = read("options.json").unwrap_or_default();
    let vectors = vectors.as_array().cloned().unwrap_or_default();
    let publish = |(n, vector): (usize, &Value)| -> io::Result<Published> {
        let source = format!("{plugin}-{n}");
        let secrets = write_secrets(&manifest, vector, &source, secrets)?;
        Ok(published(plugin, &source, vector, &options, &secrets))
    };
    vectors.iter().enumerate().map(publish).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Writes the values into files, and returns the configuration's lines that name them.
fn write_secrets(
    manifest: &Value,
    vector: &Value,
    source: &str,
    directory: &Path,
) -> io::Result<String> {
    fs::create_dir_all(directory)?;
    let mut lines = String::new();
    let public = vector["public_key"].as_str().map(|key| vec![key]);
    let secrets = vector["secrets"].as_array().into_iter().flatten();
    let secrets = secrets.filter_map(Value::as_str).collect();
    for (name, values) in [
        (secret_name(manifest, false), secrets),
        (secret_name(manifest, true), public.unwrap_or_default()),
    ] {
        let mut files = Vec::new();
        for (n, value) in values.into_iter().enumerate() {
            let file = format!("{source}-{name}-{n}");
            // The gateway refuses empty keys; where one was published, the header is malformed anyway.
            let value = if value.is_empty() { "stand-in" } else { value };
            fs::write(directory.join(&file), value)?;
            files.push(format!("\"file:secrets/{file}\""));
        }
        if !files.is_empty() {
            let _ = writeln!(lines, "secrets.{name} = [{}]", files.join(", "));
        }
    }
    // What the manifest demands beside it, and this delivery does not need.
    let own = [secret_name(manifest, false), secret_name(manifest, true)];
    for other in manifest["secrets"].as_array().into_iter().flatten() {
        let name = text(other, "name");
        if other["required"] != false && !own.iter().any(|own| own == name) {
            fs::write(directory.join("other"), "a secret that is not needed")?;
            let _ = writeln!(lines, "secrets.{name} = [\"file:secrets/other\"]");
        }
    }
    Ok(lines)
}

/// What no message can hold beside its attributes, in bytes.
const TOO_LARGE: usize = 1 << 20;

/// The name of the first secret of that kind: `mac` and `token` are for what is secret.
fn secret_name(manifest: &Value, is_public: bool) -> String {
    let all = manifest["secrets"].as_array().into_iter().flatten();
    let mut fitting = all.filter(|secret| (text(secret, "kind") == "public-key") == is_public);
    let first = fitting.next().map(|secret| text(secret, "name").to_owned());
    first.unwrap_or_else(|| if is_public { "public_key" } else { "secret" }.into())
}

fn published(
    plugin: &str,
    source: &str,
    vector: &Value,
    options: &Value,
    secrets: &str,
) -> Published {
    let (scheme, provider) = (text(vector, "scheme"), text(vector, "provider"));
    let entry = [format!("{scheme}/{provider}"), scheme.to_owned()];
    let entry = entry
        .iter()
        .map(|key| &options[key.as_str()])
        .find(|entry| !entry.is_null());
    let valid = text(vector, "expect") == "valid";
    let notes = text(vector, "notes");
    let any_age = valid
        || !["old", "in the place of"]
            .iter()
            .any(|age| notes.contains(age));
    let (url, query) = split_url(text(vector, "url"));
    let mut config = format!("[tenants.{TENANT}.sources.{source}]\nplugin = \"{plugin}\"\n");
    config.push_str(secrets);
    let _ = writeln!(
        config,
        "allow_weak_key = true\nsign_challenges = true\nno_event_id = \"hash\""
    );
    if any_age {
        let _ = writeln!(config, "max_age = \"100years\"");
    }
    let url = if url.is_empty() {
        "https://example.test/"
    } else {
        url
    };
    let _ = writeln!(config, "public_url = {url:?}");
    let header = vector["sig_header"]
        .as_str()
        .map(|header| ("header", header));
    let given = entry
        .and_then(|entry| entry["options"].as_object())
        .into_iter()
        .flatten();
    let given = given.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
    let given: Vec<_> = given
        .filter(|(name, _)| header.is_none() || *name != "header")
        .collect();
    for (name, value) in given.into_iter().chain(header.filter(|_| entry.is_some())) {
        // A bound of the plugin's own is no less than a source's.
        let value = if name == "max_age" && any_age {
            "3153600000"
        } else {
            value
        };
        let _ = writeln!(config, "options.{name} = {value:?}");
    }
    let forms = entry
        .and_then(|entry| entry["key_forms"].as_object())
        .into_iter()
        .flatten();
    for (name, form) in forms {
        let _ = writeln!(config, "key_forms.{name} = {form}");
    }
    let is_event = text(vector, "kind") != "handshake";
    Published {
        is_event,
        too_large: body(vector).len() >= TOO_LARGE,
        plugin: plugin.to_owned(),
        title: format!("{scheme}/{provider}"),
        valid,
        any_age,
        delivery: delivery(source, vector, query),
        config,
    }
}

fn split_url(url: &str) -> (&str, &str) {
    url.find('?').map_or((url, ""), |at| url.split_at(at))
}

fn delivery(source: &str, vector: &Value, query: &str) -> Signed {
    let headers = vector["headers"].as_object().into_iter().flatten();
    let own = |(name, value): (&String, &Value)| {
        (name.clone(), value.as_str().unwrap_or_default().to_owned())
    };
    Signed {
        method: vector["method"].as_str().unwrap_or("POST").to_owned(),
        target: format!("/in/{TENANT}/{source}{query}"),
        headers: headers.map(own).collect(),
        body: body(vector),
    }
}

fn body(vector: &Value) -> Bytes {
    if let Some(base64) = vector["body_base64"].as_str() {
        return data_encoding::BASE64
            .decode(base64.as_bytes())
            .unwrap_or_default()
            .into();
    }
    let repeat = &vector["body_repeat"];
    if let Some(times) = repeat["times"].as_u64() {
        let times = usize::try_from(times).unwrap_or_default();
        return text(repeat, "text").repeat(times).into();
    }
    text(vector, "body").to_owned().into()
}

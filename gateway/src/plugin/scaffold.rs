//! `hookgate plugin new`: the crate of a plugin, ready to be built, with the SDK of this very gateway in it.
//!
//! A crate that was made needs nothing but cargo: the SDK and the interface are written beside it, so they fit.
//! Starts from a plain HMAC of the body, or from one of the project's own plugins.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

use crate::crypto::{self, Hash, Key, KeyForm, Mac, Piece};
use crate::delivery::Name;
use crate::encoding::Encoding;

static SDK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../plugins/sdk/src");
const WIT: &str = include_str!("../../../wit/provider.wit");
/// Where the version of what the SDK is generated with stands.
const PLUGINS: &str = include_str!("../../../plugins/Cargo.toml");

/// A plugin to start from.
struct Model {
    name: &'static str,
    source: Dir<'static>,
    manifest: &'static str,
    vectors: &'static str,
}

static MODELS: &[Model] = &[
    Model {
        name: "github",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/github/src"),
        manifest: include_str!("../../../plugins/github/manifest.json"),
        vectors: include_str!("../../../plugins/github/vectors.json"),
    },
    Model {
        name: "shopify",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/shopify/src"),
        manifest: include_str!("../../../plugins/shopify/manifest.json"),
        vectors: include_str!("../../../plugins/shopify/vectors.json"),
    },
    Model {
        name: "slack",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/slack/src"),
        manifest: include_str!("../../../plugins/slack/manifest.json"),
        vectors: include_str!("../../../plugins/slack/vectors.json"),
    },
    Model {
        name: "standard-webhooks",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/standard-webhooks/src"),
        manifest: include_str!("../../../plugins/standard-webhooks/manifest.json"),
        vectors: include_str!("../../../plugins/standard-webhooks/vectors.json"),
    },
    Model {
        name: "stripe",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/stripe/src"),
        manifest: include_str!("../../../plugins/stripe/manifest.json"),
        vectors: include_str!("../../../plugins/stripe/vectors.json"),
    },
    Model {
        name: "twilio",
        source: include_dir!("$CARGO_MANIFEST_DIR/../plugins/twilio/src"),
        manifest: include_str!("../../../plugins/twilio/manifest.json"),
        vectors: include_str!("../../../plugins/twilio/vectors.json"),
    },
];

/// Why no crate was made.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// Not a name that a plugin can have.
    #[error(
        "making the plugin {0:?}: its name is not lower-case letters, digits and hyphens\n\
         hint: name the provider, such as `acme` or `acme-billing`"
    )]
    Name(String),
    /// Nothing to start from.
    #[error("making a plugin like {like:?}: there is none to start from\nhint: start from one of {}", known.join(", "))]
    Model {
        /// What was asked for.
        like: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Something is there already.
    #[error("making the plugin in {}: it is there already\nhint: remove it, or choose another name", .0.display())]
    Exists(PathBuf),
    /// A file could not be written.
    #[error("writing {}: {source}\nhint: check that this user may write there", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Writes the crate of a plugin of that name into `directory`, which must not be there.
pub fn write(directory: &Path, name: &str, like: Option<&str>) -> Result<(), ScaffoldError> {
    if Name::new(name).is_none() {
        return Err(ScaffoldError::Name(name.into()));
    }
    let model = like.map(model).transpose()?;
    if directory.exists() {
        return Err(ScaffoldError::Exists(directory.into()));
    }
    let named = |text: &str| text.replace("NAME", name);
    let mut files = vec![
        ("Cargo.toml".into(), crate_manifest(name)),
        (
            "README.md".into(),
            named(include_str!("scaffold/README.md.txt")),
        ),
        ("sdk/Cargo.toml".into(), sdk_manifest()),
        ("sdk/wit/provider.wit".into(), WIT.into()),
    ];
    files.extend(texts(&SDK, "sdk/src").map(|(path, text)| {
        // The interface lies beside the source here.
        (path, text.replace("path: \"../../wit\"", "path: \"wit\""))
    }));
    if let Some(model) = model {
        files.extend(texts(&model.source, "src"));
        files.push(("manifest.json".into(), renamed_manifest(model, name)));
        files.push(("vectors.json".into(), renamed_vectors(model, name)));
    } else {
        let source = include_str!("scaffold/lib.rs.txt");
        let manifest = include_str!("scaffold/manifest.json.txt");
        files.push(("src/lib.rs".into(), named(source)));
        files.push(("manifest.json".into(), named(manifest)));
        files.push(("vectors.json".into(), own_vectors(name)));
    }
    files
        .iter()
        .try_for_each(|(path, text)| put(&directory.join(path), text))
}

fn model(like: &str) -> Result<&'static Model, ScaffoldError> {
    let found = MODELS.iter().find(|model| model.name == like);
    found.ok_or_else(|| ScaffoldError::Model {
        like: like.into(),
        known: MODELS.iter().map(|model| model.name).collect(),
    })
}

/// The files of a directory and below, each under `at`.
fn texts<'a>(
    directory: &'a Dir<'_>,
    at: &'a str,
) -> Box<dyn Iterator<Item = (PathBuf, String)> + 'a> {
    let own = directory.files().map(move |file| {
        let text = file.contents_utf8().unwrap_or_default();
        (Path::new(at).join(file.path()), text.to_owned())
    });
    Box::new(own.chain(directory.dirs().flat_map(move |below| texts(below, at))))
}

fn put(path: &Path, text: &str) -> Result<(), ScaffoldError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    written.map_err(|source| ScaffoldError::Io {
        path: path.into(),
        source,
    })
}

/// With the profile of the project's own plugins: each delivery pays for the size of the module.
fn crate_manifest(name: &str) -> String {
    format!(
        "[package]\nname = \"{name}-plugin\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\nhookgate-sdk = {{ path = \"sdk\" }}\n\n\
         [workspace]\n\n{PROFILE}"
    )
}

const PROFILE: &str = "[profile.release]\nopt-level = \"s\"\nlto = true\ncodegen-units = 1\npanic = \"abort\"\nstrip = true\n";

fn sdk_manifest() -> String {
    let line = PLUGINS
        .lines()
        .find(|line| line.starts_with("wit-bindgen = "));
    format!(
        "[package]\nname = \"hookgate-sdk\"\nversion = \"{}\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{}\n",
        env!("CARGO_PKG_VERSION"),
        line.unwrap_or_default()
    )
}

fn renamed_manifest(model: &Model, name: &str) -> String {
    let mut manifest: Value = serde_json::from_str(model.manifest).unwrap_or_default();
    manifest["name"] = name.into();
    manifest["schemes"] = json!([name]);
    manifest["version"] = "0.1.0".into();
    manifest["documentation"] = format!("https://{name}.example/docs/webhooks").into();
    manifest["evidence"] = "documentation".into();
    pretty(&manifest)
}

/// One of the model's that is valid and one that is not: something to replace that works.
fn renamed_vectors(model: &Model, name: &str) -> String {
    let all: Vec<Value> = serde_json::from_str(model.vectors).unwrap_or_default();
    let first = |expect: &str| {
        all.iter()
            .find(|vector| vector["expect"] == expect)
            .cloned()
    };
    let mut two: Vec<_> = [first("valid"), first("invalid")]
        .into_iter()
        .flatten()
        .collect();
    for vector in &mut two {
        vector["provider"] = name.into();
        vector["scheme"] = name.into();
        vector["notes"] = format!("{}'s: replace it by the provider's own", model.name).into();
    }
    pretty(&Value::Array(two))
}

/// Signed here, under a secret of its own.
fn own_vectors(name: &str) -> String {
    const SECRET: &str = "a secret of this file alone";
    let body = r#"{"id":"evt_1","type":"order.paid","customer":"c-1"}"#;
    let key = Key::decode(KeyForm::Raw, SECRET.as_bytes(), false).expect("it is long enough");
    let mac = crypto::sign(
        Mac::Hmac(Hash::Sha256),
        &key,
        &[Piece::Bytes(body.as_bytes())],
    );
    let signature = String::from_utf8_lossy(&Encoding::Hex.encode(&mac)).into_owned();
    let vector = |body: &str, expect: &str| {
        json!({
            "provider": name,
            "scheme": name,
            "provenance": "self-made",
            "notes": "replace it by one that the provider published",
            "headers": { format!("X-{name}-Signature"): signature },
            "body": body,
            "secrets": [SECRET],
            "expect": expect,
        })
    };
    let mut valid = vector(body, "valid");
    valid["event_id"] = "evt_1".into();
    pretty(&Value::Array(vec![
        valid,
        vector(&body.replace("c-1", "c-2"), "invalid"),
    ]))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(directory: &Path, name: &str, like: Option<&str>) -> String {
        write(directory, name, like).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_made_is_told_and_nothing_is_written() {
        let at = tempfile::tempdir().unwrap();
        let new = at.path().join("new");
        assert!(refused(&new, "Acme Inc", None).contains("is not lower-case letters"));
        let like = refused(&new, "acme", Some("gihub"));
        assert!(
            like.ends_with(
                "start from one of github, shopify, slack, standard-webhooks, stripe, twilio"
            ),
            "{like}"
        );
        assert!(!new.exists());
        assert!(refused(at.path(), "acme", None).contains("it is there already"));
    }

    #[test]
    fn the_crate_is_whole_and_a_plain_plugin_is_short() {
        let at = tempfile::tempdir().unwrap();
        let new = at.path().join("acme");
        write(&new, "acme", None).unwrap();
        let text = |name: &str| fs::read_to_string(new.join(name)).unwrap();
        assert!(text("src/lib.rs").lines().count() < 40);
        assert!(text("sdk/src/bindings.rs").contains("path: \"wit\""));
        assert!(text("sdk/Cargo.toml").contains("wit-bindgen = {"));
        assert!(text("manifest.json").contains("X-acme-Signature"));
        crate::plugin::Manifest::parse(&text("manifest.json")).unwrap();
        for model in MODELS {
            let new = at.path().join(model.name);
            write(&new, "acme", Some(model.name)).unwrap();
            let manifest = fs::read_to_string(new.join("manifest.json")).unwrap();
            assert_eq!(
                crate::plugin::Manifest::parse(&manifest).unwrap().name,
                "acme"
            );
            assert!(new.join("src/lib.rs").exists());
        }
    }
}

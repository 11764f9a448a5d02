//! Arbitrary text as the configuration: read or refused, and no secret's value in whatever is said of it.
//!
//! The same secret stands in every variable, in every file that is not the configuration, and, against the
//! rules, in the configuration itself behind the text: once as a reference, once as a key that is none.

#![no_main]

use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use hookgate::config::secret::Surroundings;
use hookgate::config::sources::Plugins;
use hookgate::config::{self, Problems};
use hookgate::plugin::{Limits, Plugin, Sandbox, WasmPlugin};
use hookgate::telemetry::Telemetry;
use hookgate_fuzz::component;
use libfuzzer_sys::fuzz_target;

/// A part of the secret that nothing else holds.
const PART: &str = "pl4nted";
/// No key in any form but `raw`, so that keys are refused too, and with the words and marks by which the
/// deserializer's messages are taken apart.
const SECRET: &str =
    "pl4nted`pl4nted`pl4nted`\u{20ac}``pl4nted`, expected `pl4nted`, expected one of `pl4nted`";
const FILE: &str = "hookgate.toml";

struct Around<'a>(&'a [u8]);

impl Surroundings for Around<'_> {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        (name.len() > 1).then(|| SECRET.into())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some(FILE) => Ok(self.0.to_vec()),
            Some(path) if path.len() % 2 == 0 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(SECRET.into()),
        }
    }
}

/// One plugin by every name but one.
struct AnyName(Arc<WasmPlugin>);

impl Plugins for AnyName {
    fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        (name != "absent").then(|| Arc::clone(&self.0) as Arc<dyn Plugin>)
    }

    fn names(&self) -> Vec<&str> {
        vec!["guest"]
    }
}

static PLUGIN: LazyLock<AnyName> = LazyLock::new(|| {
    let sandbox = Sandbox::new(Limits {
        concurrent_calls: 1,
        ..Limits::default()
    })
    .expect("a sandbox");
    let bytes = component(include_str!("../../guests/accept.wat"));
    AnyName(Arc::new(sandbox.load(&bytes).expect("a plugin")))
});

fn look(problems: &Problems) {
    let said = format!("{problems}\n{problems:?}");
    assert!(!said.contains(PART), "a secret is told:\n{said}");
}

fn read(text: &[u8]) {
    let around = Around(text);
    let loaded = match config::load(Path::new(FILE), &around) {
        Ok(loaded) => loaded,
        Err(problems) => {
            assert!(problems.has_errors());
            return look(&problems);
        }
    };
    look(&loaded.problems);
    let (tenants, problems) = loaded.tenants(&*PLUGIN, &around, &Telemetry::default(), None);
    look(&problems);
    for source in tenants.sources() {
        let Err(unavailable) = &source.state else {
            continue;
        };
        assert!(
            !unavailable.reason.contains(PART),
            "a secret is told: {}",
            unavailable.reason
        );
    }
}

fuzz_target!(|text: &[u8]| {
    // What the operator writes as a name is told; the fuzzer may learn the secret and write it so.
    if String::from_utf8_lossy(text).contains(PART) {
        return;
    }
    read(text);
    let planted = format!(
        "\n[tenants.planted.sources.s]\nplugin = \"guest\"\nsecrets.secret = [\"{SECRET}\"]\n\
         public_url = \"{SECRET}\"\noptions.o = {{ o = \"{SECRET}\" }}\n\
         key_forms.secret = \"{SECRET}\"\n"
    );
    read(&[text, planted.as_bytes()].concat());
});

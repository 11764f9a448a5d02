//! Components for tests: the guests of `tests/guests`, each put into the one world.
//!
//! Knows WAT and the marks in those files, nothing of the host. What comes out is bytes that may be loaded
//! or refused like any file's.

const WORLD: &str = include_str!("../../../tests/guests/world.wat");

/// The guests' cores, and one component that needs no world.
pub(crate) const ACCEPT: &str = include_str!("../../../tests/guests/accept.wat");
pub(crate) const SPIN: &str = include_str!("../../../tests/guests/spin.wat");
pub(crate) const SCAN: &str = include_str!("../../../tests/guests/scan.wat");
pub(crate) const HOG: &str = include_str!("../../../tests/guests/hog.wat");
pub(crate) const TABLES: &str = include_str!("../../../tests/guests/tables.wat");
pub(crate) const RECURSE: &str = include_str!("../../../tests/guests/recurse.wat");
pub(crate) const TRAP: &str = include_str!("../../../tests/guests/trap.wat");
pub(crate) const LIE: &str = include_str!("../../../tests/guests/lie.wat");
pub(crate) const PROBE: &str = include_str!("../../../tests/guests/probe.wat");
pub(crate) const FOREIGN: &str = include_str!("../../../tests/guests/foreign.wat");

const MANIFEST: &str = r#"{"v":1,"name":"guest","version":"1.0.0","schemes":["guest"]}"#;

/// A component's text in the making.
#[derive(Clone)]
pub(crate) struct Guest(String);

impl Guest {
    /// The world around a core.
    pub(crate) fn new(core: &str) -> Self {
        Self(WORLD.into()).mark("GUEST", core)
    }

    /// Puts `text` in the place of a mark.
    pub(crate) fn mark(self, name: &str, text: &str) -> Self {
        self.replace(&format!("(;{name};)"), text)
    }

    /// Puts `new` in the place of `old`, which must be there.
    pub(crate) fn replace(self, old: &str, new: &str) -> Self {
        assert!(self.0.contains(old), "no {old} in\n{}", self.0);
        Self(self.0.replace(old, new))
    }

    /// Gives it this manifest instead of a plain one.
    pub(crate) fn manifest(self, json: &str) -> Self {
        self.mark("MANIFEST", &string(json.as_bytes()))
            .mark("MANIFEST_LENGTH", &json.len().to_string())
    }

    /// The component's bytes.
    pub(crate) fn wasm(self) -> Vec<u8> {
        if self.0.contains("(;MANIFEST;)") {
            return self.manifest(MANIFEST).wasm();
        }
        binary(&self.0)
    }
}

/// A guest that answers with these bytes as its verdict, in a memory of so many more pages.
pub(crate) fn lie(verdict: &str, pages: u32) -> Guest {
    Guest::new(LIE)
        .mark("VERDICT", verdict)
        .mark("PAGES", &pages.to_string())
}

/// The bytes of a component or module in text.
pub(crate) fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A string of the text format.
pub(crate) fn string(bytes: &[u8]) -> String {
    let escape = |byte: &u8| {
        [
            b'\\',
            HEX[usize::from(byte >> 4)],
            HEX[usize::from(byte & 15)],
        ]
    };
    let escaped: Vec<u8> = bytes.iter().flat_map(escape).collect();
    format!("\"{}\"", String::from_utf8_lossy(&escaped))
}

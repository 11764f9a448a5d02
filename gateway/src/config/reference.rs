//! `docs/configuration.md`, made from the fields' documentation in `config.rs`, and the test that it is.
//!
//! Reads the source's text, as the documentation stands nowhere else at run time: plain structs, each field
//! on a line of its own. `UPDATE=1` writes the page anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const SOURCE: &str = include_str!("../config.rs");

const INTRO: &str = "\
# Configuration

<!-- Made from the comments in gateway/src/config.rs. After changing those:
     UPDATE=1 cargo test -p hookgate --lib config::reference -->

One TOML file. Unknown keys are refused. Durations and sizes are text with a unit, such as `\"300s\"`, `\"5m\"`,
`\"15days\"`, `\"512KiB\"` or `\"1MiB\"`; a bare number is refused. Paths that are not absolute start at the
file's directory. `hookgate check` tells every mistake at once.

Where a file is unhandy, as in a container, `--config env:NAME` reads the same text from the environment variable
`NAME`; paths then start at the working directory.

```toml
[tenants.acme.sources.github]
plugin = \"github\"
secrets.secret = [\"env:GITHUB_WEBHOOK_SECRET\"]
```
";

#[derive(Default)]
struct Struct {
    documentation: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    of: String,
    documentation: String,
}

/// The structs of the source by name.
fn structs() -> BTreeMap<String, Struct> {
    let mut all = BTreeMap::new();
    let mut current: Option<(String, Struct)> = None;
    let mut words: Vec<&str> = Vec::new();
    for line in SOURCE.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            words.push(text);
        } else if let Some(name) = line.strip_prefix("pub(crate) struct ") {
            let documentation = std::mem::take(&mut words).join(" ");
            let name = name.trim_end_matches(" {").to_owned();
            current = Some((
                name,
                Struct {
                    documentation,
                    fields: Vec::new(),
                },
            ));
        } else if let (Some((_, into)), Some(field)) = (&mut current, line.strip_prefix("pub "))
            && let Some((name, of)) = field.trim_end_matches(',').split_once(": ")
        {
            let documentation = std::mem::take(&mut words).join(" ");
            into.fields.push(Field {
                name: name.to_owned(),
                of: of.to_owned(),
                documentation,
            });
        } else if line == "}" {
            all.extend(current.take());
            words.clear();
        } else if !line.starts_with("#[") {
            words.clear();
        }
    }
    all
}

fn kind(of: &str) -> &'static str {
    match of
        .strip_prefix("Option<")
        .map_or(of, |inner| inner.trim_end_matches('>'))
    {
        "Size" => "size",
        "Time" => "duration",
        "Ttl" => "duration or `\"auto\"`",
        "String" | "StoreKind" | "QueueKind" | "Ordering" | "NoEventId" | "SameIdOtherBody"
        | "InFlightPolicy" | "ClaimOutage" | "Redelivery" | "SecretRef" => "text",
        "usize" | "u64" | "u32" => "number",
        "bool" => "`true` or `false`",
        "PathBuf" => "path",
        "Vec<String>" => "list of text",
        "BTreeMap<String, SecretRefs>" => "table of lists of text",
        "BTreeMap<String, KeyForm>" | "BTreeMap<String, String>" => "table of text",
        "BTreeMap<String, toml::Value>" => "table",
        other => panic!("{other} has no name in the reference"),
    }
}

fn section(page: &mut String, all: &BTreeMap<String, Struct>, path: &str, name: &str) {
    let this = &all[name];
    let below = |field: &Field| {
        let of = field
            .of
            .strip_prefix("BTreeMap<String, ")
            .map(|of| of.trim_end_matches('>'));
        let many = of.map_or(String::new(), |of| format!(".{}", of.to_uppercase()));
        let of = of.unwrap_or(&field.of);
        all.contains_key(of)
            .then(|| (format!("{}{many}", field.name), of.to_owned()))
    };
    let (tables, keys): (Vec<_>, Vec<_>) =
        this.fields.iter().partition(|field| below(field).is_some());
    if !keys.is_empty() {
        write!(
            page,
            "\n## `[{path}]`\n\n{}\n\n| key | is | |\n|---|---|---|\n",
            this.documentation
        )
        .unwrap();
    }
    for Field {
        name,
        of,
        documentation,
    } in keys
    {
        writeln!(page, "| `{name}` | {} | {documentation} |", kind(of)).unwrap();
    }
    for (key, of) in tables.into_iter().filter_map(below) {
        let dot = if path.is_empty() { "" } else { "." };
        section(page, all, &format!("{path}{dot}{key}"), &of);
    }
}

#[test]
fn the_reference_is_made_of_the_fields_documentation() {
    let mut page = INTRO.to_owned();
    section(&mut page, &structs(), "", "Config");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/configuration.md is out of date: run this test with UPDATE=1"
    );
}

#[test]
fn every_field_is_documented_and_none_escapes_the_reference() {
    let all = structs();
    let fields = || all.values().flat_map(|section| &section.fields);
    for field in fields() {
        assert!(
            field.documentation.ends_with('.'),
            "{} is not documented",
            field.name
        );
    }
    // The deserializer's own list of keys, as an unknown one makes it tell.
    let told = |text: &str| {
        toml::from_str::<super::Config>(text)
            .unwrap_err()
            .to_string()
    };
    for text in [
        "x = 1",
        "[server]\nx = 1",
        "[plugins]\nx = 1",
        "[store]\nx = 1",
        "[store.redis]\nx = 1",
        "[queue]\nx = 1",
        "[queue.sqs]\nx = 1",
        "[queue.pressure]\nx = 1",
        "[aws]\nx = 1",
        "[tenants.a.sources.s]\nx = 1",
    ] {
        let told = told(text);
        for key in told
            .split(", expected")
            .nth(1)
            .unwrap()
            .split('`')
            .skip(1)
            .step_by(2)
        {
            assert!(
                fields().any(|field| field.name == key),
                "{key} escapes the reference"
            );
        }
    }
}

#[test]
fn the_introductions_example_is_a_configuration() {
    let example = INTRO
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    toml::from_str::<super::Config>(example).unwrap();
}

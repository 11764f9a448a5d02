//! Every preset: its own sample is accepted with its id, a changed one is refused, and where
//! signatures of the provider are published, they verify with the preset's options alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use hookgate::crypto::Key;
use hookgate::delivery::{Delivery, Verdict};
use hookgate::plugin::manifest::Evidence;
use hookgate::plugin::registry::Registry;
use hookgate::plugin::sample::{self, Draft, Request};
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup, WasmPlugin};
use hookgate::vectors::{self, Presets};

use crate::plugins::workspace;

const NOW_MS: u64 = 1_760_000_000_000;
/// Reads as raw, hexadecimal and base64 alike.
const SECRET: &[u8] = b"00112233445566778899aabbccddeeff";

/// The plugins as they are shipped, with their presets beside them.
static SHIPPED: LazyLock<Registry> = LazyLock::new(|| {
    let sandbox = Box::leak(Box::new(Sandbox::new(Limits::default()).unwrap()));
    let registry = Registry::open(sandbox, &workspace().join("target/plugins")).unwrap();
    let refused: Vec<_> = registry.refused.iter().map(ToString::to_string).collect();
    assert!(refused.is_empty(), "{refused:?}\nhint: run `make plugins`");
    registry
});

/// The names of the presets in the tree, each of which must be shipped.
fn names() -> BTreeSet<String> {
    let directories = ["hmac", "standard-webhooks"]
        .map(|of| workspace().join("plugins").join(of).join("presets"));
    let files = directories
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).unwrap());
    let names = files.map(|file| {
        file.unwrap()
            .path()
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    });
    let names: BTreeSet<_> = names.collect();
    assert!(names.len() > 40, "{}", names.len());
    names
}

fn shipped(name: &str) -> &'static WasmPlugin {
    SHIPPED
        .get(name)
        .unwrap_or_else(|| panic!("{name} is not shipped: run `make plugins`"))
}

/// A source of this provider that says nothing but its secret.
fn setup(plugin: &WasmPlugin) -> Arc<Setup> {
    let manifest = plugin.manifest();
    let mut keys = manifest.keyring();
    for spec in &manifest.secrets {
        keys.add(&spec.name, Key::decode(spec.form, SECRET, false).unwrap());
    }
    let options = manifest.options.iter();
    let options = options.filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
    Arc::new(Setup {
        keys,
        options: options.collect::<BTreeMap<_, _>>(),
        public_url: Some("https://hooks.example/in/acme/orders".into()),
        ..Setup::default()
    })
}

fn signed(plugin: &WasmPlugin, setup: &Arc<Setup>) -> Request {
    let draft = Draft {
        path: "/in/acme/orders".into(),
        id: "evt_of_the_tests".into(),
        now_ms: NOW_MS,
        headers: Vec::new(),
        body: None,
    };
    let name = &plugin.manifest().name;
    sample::sign(plugin, setup, &draft).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn verdict(plugin: &WasmPlugin, setup: &Arc<Setup>, request: Request) -> Verdict {
    let delivery = Delivery {
        id: uuid::Uuid::nil(),
        received_at: NOW_MS,
        method: request.method,
        target: request.target,
        rest: String::new(),
        headers: request.headers,
        body: request.body,
    };
    plugin.handle(&Arc::new(delivery), setup).unwrap().verdict
}

#[test]
fn every_presets_sample_is_accepted_with_its_id_and_a_changed_one_refused() {
    for name in names() {
        let plugin = shipped(&name);
        let setup = setup(plugin);
        let Verdict::Accept(event) = verdict(plugin, &setup, signed(plugin, &setup)) else {
            panic!("{name}: its own sample is refused")
        };
        let has_id = setup.options.contains_key("id") || plugin.manifest().every_delivery_has_id;
        assert_eq!(event.id.is_some(), has_id, "{name}: {event:?}");
        assert!(event.id.is_none_or(|id| id == "evt_of_the_tests"), "{name}");
        if setup.options.contains_key("timestamp") {
            assert_eq!(event.signed_at, Some(NOW_MS), "{name}");
        }
        let mut changed = signed(plugin, &setup);
        let mut body = changed.body.to_vec();
        body.insert(1, b' ');
        changed.body = body.into();
        let refused = verdict(plugin, &setup, changed);
        assert!(matches!(refused, Verdict::Reject(_)), "{name}: {refused:?}");
    }
}

#[test]
fn published_signatures_verify_by_the_presets_options_alone() {
    let published = ["hmac", "standard-webhooks"].map(|of| {
        vectors::read(&workspace().join("plugins").join(of).join("vectors.json")).unwrap()
    });
    // The vectors' names for some providers.
    let known_as = |name: &str| match name {
        "bitbucket-server" | "atlassian-jira-bitbucket" => "bitbucket".to_owned(),
        "adyen" => "adyen-platform".to_owned(),
        name => name.to_owned(),
    };
    let mut verified = BTreeSet::new();
    for vector in published.into_iter().flatten() {
        let name = known_as(&vector.provider);
        if !names().contains(&name) {
            continue;
        }
        let plugin = shipped(&name);
        let report = vectors::run(plugin, std::slice::from_ref(&vector), &Presets::default());
        let lines: Vec<_> = report.lines.iter().map(ToString::to_string).collect();
        assert!(
            report.is_success() && report.passed() == 1,
            "{name}: {lines:?}"
        );
        verified.insert(name);
    }
    for name in names() {
        let says = shipped(&name).manifest().evidence == Some(Evidence::PublishedSignatures);
        assert_eq!(
            says,
            verified.contains(&name),
            "{name}: what its evidence is"
        );
    }
}

/// `docs/providers.md`, which `UPDATE=1` writes anew.
#[test]
fn the_list_of_providers_is_made_of_the_manifests() {
    let mut page = String::from(
        "# Providers\n\n<!-- Made from the manifests. After changing those:\n     \
         UPDATE=1 cargo test --workspace --test it presets -->\n\n\
         `plugin = \"NAME\"` and a secret are all that a source needs. What is only *reported* should be tried with \
         a delivery\nof the provider before it is relied on: `hookgate check` and the log tell what is refused and \
         why.\n\n| plugin | known by | the secret |\n|---|---|---|\n",
    );
    for name in SHIPPED.names() {
        let manifest = shipped(name).manifest();
        let known = manifest.evidence.map_or("its options", Evidence::name);
        let secrets = manifest
            .secrets
            .iter()
            .map(|spec| format!("`{}`", spec.name));
        let secrets = secrets.collect::<Vec<_>>().join(", ");
        let documentation = &manifest.documentation;
        writeln!(
            page,
            "| [`{name}`]({documentation}) | {known} | {secrets} |"
        )
        .unwrap();
    }
    let path = workspace().join("docs/providers.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/providers.md is out of date: run this test with UPDATE=1"
    );
}

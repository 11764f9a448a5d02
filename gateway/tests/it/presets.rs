//! Every preset: its own sample is accepted with its id, a changed one is refused, and where
//! signatures of the provider are published, they verify with the preset's options alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use hookgate::crypto::Key;
use hookgate::delivery::{Delivery, Verdict};
use hookgate::plugin::manifest::{Evidence, SecretKind};
use hookgate::plugin::registry::Registry;
use hookgate::plugin::sample::{self, Draft, Request, SampleError};
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup, WasmPlugin};
use hookgate::vectors::{self, Expect, Presets, Vector};
use http::{HeaderName, HeaderValue};

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

/// The directories of plugins that bring presets.
fn with_presets() -> Vec<PathBuf> {
    let directories = std::fs::read_dir(workspace().join("plugins")).unwrap();
    let directories = directories.map(|entry| entry.unwrap().path());
    directories
        .filter(|directory| directory.join("presets").is_dir())
        .collect()
}

/// The names of the presets in the tree, each of which must be shipped, with the plugin that each is for.
fn presets() -> BTreeMap<String, String> {
    let files = with_presets()
        .into_iter()
        .flat_map(|at| std::fs::read_dir(at.join("presets")).unwrap());
    let preset = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(json["name"], *name, "the file is named like the provider");
        (name, json["of"].as_str().unwrap().to_owned())
    };
    files.map(preset).collect()
}

fn names() -> BTreeSet<String> {
    presets().into_keys().collect()
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
    for spec in manifest
        .secrets
        .iter()
        .filter(|spec| spec.kind != SecretKind::PublicKey)
    {
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

fn signed(plugin: &WasmPlugin, setup: &Arc<Setup>) -> Result<Request, SampleError> {
    sample::sign(plugin, setup, &draft())
}

fn draft() -> Draft {
    Draft {
        path: "/in/acme/orders".into(),
        id: "evt_of_the_tests".into(),
        now_ms: NOW_MS,
        headers: Vec::new(),
        body: None,
    }
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

/// Whether the scheme covers the body, so that a changed one is refused. Tokens cover nothing.
fn covers_body(of: &str, setup: &Setup) -> bool {
    let signed = setup.options.get("signed").map_or("{body}", String::as_str);
    !["token", "jwt", "microsoft-graph"].contains(&of) && signed.contains("{body")
}

#[test]
fn every_presets_sample_is_accepted_with_its_id_and_a_changed_one_refused() {
    let (mut accepted, mut unsigned) = (0, BTreeSet::new());
    for (name, of) in presets() {
        let plugin = shipped(&name);
        let setup = setup(plugin);
        let request = match signed(plugin, &setup) {
            Ok(request) => request,
            // Only the provider can sign it: published or self-made signatures show it, see below.
            Err(SampleError::PublicKey(_) | SampleError::Token(_) | SampleError::NoSecret(_)) => {
                unsigned.insert(name);
                continue;
            }
            // Its keys are fetched, and only Google has those that sign.
            Err(_) if name == "google-pubsub" => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let mut changed = request.clone();
        let Verdict::Accept(event) = verdict(plugin, &setup, request) else {
            panic!("{name}: its own sample is refused")
        };
        let has_id = setup.options.contains_key("id") || plugin.manifest().every_delivery_has_id;
        assert!(!has_id || event.id.is_some(), "{name}: {event:?}");
        if covers_body(&of, &setup) {
            let mut body = changed.body.to_vec();
            body.insert(1, b' ');
            changed.body = body.into();
            let refused = verdict(plugin, &setup, changed);
            assert!(matches!(refused, Verdict::Reject(_)), "{name}: {refused:?}");
        } else {
            // Then another secret is.
            let mut other = Arc::into_inner(self::setup(plugin)).unwrap();
            other.keys = plugin.manifest().keyring();
            let refused = verdict(plugin, &Arc::new(other), changed);
            assert!(matches!(refused, Verdict::Reject(_)), "{name}: {refused:?}");
        }
        accepted += 1;
    }
    assert!(accepted >= 120, "{accepted}");
    let shown = vectors_by_name();
    for name in unsigned {
        let expected: BTreeSet<_> = shown
            .get(&name)
            .into_iter()
            .flatten()
            .map(|v| v.expect == Expect::Valid)
            .collect();
        assert_eq!(
            expected.len(),
            2,
            "{name} needs a valid and an invalid signature in its plugin's vectors"
        );
    }
}

/// What becomes of the header that carries a signature on its way through careless hands.
fn mistreated(request: &Request, header: &HeaderName) -> Vec<(&'static str, Request)> {
    let good = request.headers[header].clone();
    let with = |values: &[&[u8]]| {
        let mut request = request.clone();
        request.headers.remove(header);
        for value in values {
            request
                .headers
                .append(header.clone(), HeaderValue::from_bytes(value).unwrap());
        }
        request
    };
    let mut cut = good.as_bytes().to_vec();
    cut.pop();
    vec![
        ("missing", with(&[])),
        ("empty", with(&[b""])),
        ("junk", with(&[b"=,;v1= t=,,{}"])),
        ("not UTF-8", with(&[b"\xff\xfe\xfd"])),
        ("without its last character", with(&[&cut])),
        ("good, then another", with(&[good.as_bytes(), b"junk"])),
        ("another, then good", with(&[b"junk", good.as_bytes()])),
        ("ten thousand elements", with(&[&b"a=b,".repeat(5_000)])),
    ]
}

#[test]
fn every_provider_refuses_a_signature_that_is_missing_empty_doubled_or_malformed() {
    let mut tried = 0;
    for name in SHIPPED.names() {
        let plugin = shipped(name);
        let setup = setup(plugin);
        let Ok(request) = signed(plugin, &setup) else {
            continue;
        };
        let header = plugin.manifest().signature_header(&setup.options);
        let header = header.and_then(|header| HeaderName::try_from(header).ok());
        // Some carry it in the body.
        let Some(header) = header.filter(|header| request.headers.contains_key(header)) else {
            continue;
        };
        for (what, request) in mistreated(&request, &header) {
            let Verdict::Reject(refused) = verdict(plugin, &setup, request) else {
                panic!("{name} takes a signature that is {what}");
            };
            assert!(!refused.reason.is_empty(), "{name}, {what}: no reason");
        }
        tried += 1;
    }
    assert!(tried >= 110, "{tried}");
}

/// Signed for the body at hand: what is refused is refused for what it says, and nothing traps.
#[test]
fn no_provider_fails_on_bodies_that_are_empty_deep_or_not_text() {
    let deep = [b"[".repeat(50_000), b"]".repeat(50_000)].concat();
    let bodies: [&[u8]; 5] = [b"", b"\xff\x00\xfe{", b"{", b"null", &deep];
    for name in SHIPPED.names() {
        let plugin = shipped(name);
        let setup = setup(plugin);
        for body in bodies {
            let mut draft = draft();
            draft.body = Some(body.to_vec().into());
            if let Err(SampleError::Fault(fault)) = sample::sign(plugin, &setup, &draft) {
                panic!("{name}, {} bytes: {fault}", body.len());
            }
        }
    }
}

/// The vectors of plugins with presets, by the names of the presets that they are for.
fn vectors_by_name() -> BTreeMap<String, Vec<Vector>> {
    // The vectors' names for some providers.
    let known_as = |name: &str| match name {
        "bitbucket-server" | "atlassian-jira-bitbucket" => "bitbucket".to_owned(),
        "adyen" => "adyen-platform".to_owned(),
        name => name.to_owned(),
    };
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for directory in with_presets() {
        for vector in vectors::read(&directory.join("vectors.json")).unwrap() {
            all.entry(known_as(&vector.provider))
                .or_default()
                .push(vector);
        }
    }
    all
}

#[test]
fn published_signatures_verify_by_the_presets_options_alone() {
    let mut verified = BTreeSet::new();
    let published = published_sources();
    let names = names();
    let all = vectors_by_name()
        .into_iter()
        .filter(|(name, _)| names.contains(name));
    for (name, vector) in
        all.flat_map(|(name, all)| all.into_iter().map(move |v| (name.clone(), v)))
    {
        let plugin = shipped(&name);
        let report = vectors::run(plugin, std::slice::from_ref(&vector), &Presets::default());
        let lines: Vec<_> = report.lines.iter().map(ToString::to_string).collect();
        assert!(
            report.is_success() && report.passed() == 1,
            "{name}: {lines:?}"
        );
        if published.contains(&vector.provider) {
            verified.insert(name);
        }
    }
    for name in names {
        let says = shipped(&name).manifest().evidence == Some(Evidence::PublishedSignatures);
        assert_eq!(
            says,
            verified.contains(&name),
            "{name}: what its evidence is"
        );
    }
}

/// The providers of whose signatures at least one was published by somebody else.
fn published_sources() -> BTreeSet<String> {
    let read = |directory: PathBuf| -> Vec<serde_json::Value> {
        serde_json::from_slice(&std::fs::read(directory.join("vectors.json")).unwrap()).unwrap()
    };
    let all = with_presets().into_iter().flat_map(read);
    let published = all.filter(|vector| vector["provenance"] != "self-made");
    published
        .map(|vector| vector["provider"].as_str().unwrap().to_owned())
        .collect()
}

/// The README's table of names, which `UPDATE=1` writes anew.
#[test]
fn the_readme_names_every_provider() {
    let kinds = [
        (
            Some(Evidence::PublishedSignatures),
            "signatures that they published",
        ),
        (Some(Evidence::Documentation), "their documentation or code"),
        (
            Some(Evidence::Reported),
            "others' word: try them before you rely on them",
        ),
        (None, "your options: generic plugins"),
    ];
    let mut table = String::from("| known by | |\n|---|---|\n");
    for (evidence, words) in kinds {
        let all = SHIPPED
            .names()
            .filter(|name| shipped(name).manifest().evidence == evidence);
        let all: Vec<_> = all.collect();
        writeln!(table, "| {words} ({}) | {} |", all.len(), all.join(", ")).unwrap();
    }
    let path = workspace().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("<!-- providers -->\n", "<!-- /providers -->");
    let from = readme.find(start).unwrap() + start.len();
    let to = readme.find(end).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, [&readme[..from], &table, &readme[to..]].concat()).unwrap();
    } else {
        assert!(
            readme[from..to] == table,
            "README.md is out of date: run this test with UPDATE=1"
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
         why. A *batch* holds several of the provider's events in one delivery, and travels as one message.\n\n\
         | plugin | scheme | known by | the secret | retries for | handshake |\n|---|---|---|---|---|---|\n",
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
        // A bar would end the table's cell.
        let scheme = manifest.scheme().replace('|', "\\|");
        let schemes = scheme + if manifest.batch { " (batch)" } else { "" };
        let retries = manifest.retries().unwrap_or_default();
        let handshake = manifest.handshake.as_deref().unwrap_or_default();
        writeln!(
            page,
            "| [`{name}`]({documentation}) | {schemes} | {known} | {secrets} | {retries} | {handshake} |"
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

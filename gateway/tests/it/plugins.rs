//! The project's own plugins, as they are shipped: real WebAssembly in the real host.
//!
//! Expects the components in `target/plugins`, where `make plugins` puts them; without them every test here
//! fails and says so. Signatures are published ones, or made here with `ring`, never by the code under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use data_encoding::HEXLOWER;
use hookgate::crypto::{Key, KeyForm, Keyring};
use hookgate::delivery::{Delivery, Event, RejectKind, Verdict};
use hookgate::plugin::{Limits, Plugin, Sandbox, Setup, WasmPlugin};
use hookgate::vectors::{self, Presets, Vector};
use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;
use ring::hmac;

const SECRET: &str = "whsec_a secret of the tests alone";
const NOW_MS: u64 = 1_760_000_000_000;

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(Limits::default()).unwrap());
static STRIPE: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("stripe"));
static HMAC: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("hmac"));
static GITHUB: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("github"));

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn plugin(name: &str) -> WasmPlugin {
    let file = format!("target/plugins/{name}.wasm");
    let bytes = std::fs::read(workspace().join(&file))
        .unwrap_or_else(|error| panic!("{file}: {error}\nhint: run `make plugins` first"));
    let loaded = SANDBOX.load(&bytes);
    loaded.unwrap_or_else(|error| panic!("{file}: {error}\nhint: run `make plugins` again"))
}

/// Every directory of `plugins/` that has vectors.
pub(crate) fn plugins_with_vectors() -> Vec<PathBuf> {
    let directories = std::fs::read_dir(workspace().join("plugins")).unwrap();
    let directories = directories.map(|entry| entry.unwrap().path());
    directories
        .filter(|directory| directory.join("vectors.json").is_file())
        .collect()
}

fn presets(directory: &Path) -> Presets {
    let file = directory.join("options.json");
    if file.is_file() {
        vectors::read_presets(&file).unwrap()
    } else {
        Presets::default()
    }
}

#[test]
fn every_published_signature_comes_out_as_its_provider_says() {
    let directories = plugins_with_vectors();
    assert!(directories.len() >= 7, "{directories:?}");
    for directory in directories {
        let plugin = plugin(directory.file_name().unwrap().to_str().unwrap());
        let vectors = vectors::read(&directory.join("vectors.json")).unwrap();
        let report = vectors::run(&plugin, &vectors, &presets(&directory));
        let lines: Vec<_> = report.lines.iter().map(ToString::to_string).collect();
        assert!(
            report.is_success(),
            "{}:\n{}",
            directory.display(),
            lines.join("\n")
        );
        assert!(report.skipped.is_empty(), "{:?}", report.skipped);
        println!("{}: {} passed", directory.display(), report.passed());
    }
}

fn hmac_sha256_hex(message: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    HEXLOWER.encode(hmac::sign(&key, message).as_ref())
}

fn delivery(header: &'static str, value: &str, body: &[u8]) -> Delivery {
    let headers = [
        (header, value),
        ("x-github-delivery", "d1"),
        ("x-github-event", "push"),
    ];
    Delivery {
        id: uuid::Uuid::nil(),
        received_at: NOW_MS,
        method: Method::POST,
        target: "/in/acme/payments".into(),
        rest: String::new(),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect(),
        body: body.to_vec().into(),
    }
}

fn setup(options: &[(&str, &str)]) -> Arc<Setup> {
    let mut keys = Keyring::default();
    keys.add(
        "secret",
        Key::decode(KeyForm::Raw, SECRET.as_bytes(), false).unwrap(),
    );
    let options = options
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Arc::new(Setup {
        keys,
        options: options.collect::<BTreeMap<_, _>>(),
        ..Setup::default()
    })
}

pub(crate) fn verdict(plugin: &dyn Plugin, delivery: Delivery, setup: &Arc<Setup>) -> Verdict {
    plugin.handle(&Arc::new(delivery), setup).unwrap().verdict
}

pub(crate) fn accepted(verdict: Verdict) -> Event {
    match verdict {
        Verdict::Accept(event) => event,
        other => panic!("not accepted: {other:?}"),
    }
}

const STRIPE_BODY: &[u8] = br#"{"id":"evt_1","created":1760000000,"type":"invoice.paid"}"#;

/// What may stand beside a good signature: others that do not fit, other versions, junk.
fn other_element() -> impl Strategy<Value = String> {
    prop_oneof![
        "v1=[0-9a-f]{64}",
        "v0=[0-9a-f]{64}",
        "v2=[A-Za-z0-9+/]{0,40}",
        "v1=[0-9a-z]{0,10}",
        "[a-su-z]{1,3}=[!-+.-~]{0,20}",
        "v1",
        Just(String::new()),
    ]
}

/// The elements in an order in which the good ones stand anywhere, with any spacing between.
fn header_with(good: Vec<String>) -> impl Strategy<Value = String> {
    let others = prop::collection::vec(other_element(), 0..6);
    let elements = others.prop_map(move |others| [others, good.clone()].concat());
    let shuffled = elements.prop_shuffle();
    let spaced = shuffled.prop_flat_map(|elements| {
        let gaps = prop::collection::vec(("[ ]{0,3}", "[ ]{0,3}"), elements.len());
        (Just(elements), gaps)
    });
    spaced.prop_map(|(elements, gaps)| {
        let parts = elements.iter().zip(gaps);
        let parts: Vec<_> = parts
            .map(|(part, (l, r))| format!("{l}{part}{r}"))
            .collect();
        parts.join(",")
    })
}

fn stripe_header() -> impl Strategy<Value = String> {
    let good = hmac_sha256_hex(&[b"1760000000.", STRIPE_BODY].concat());
    header_with(vec!["t=1760000000".into(), format!("v1={good}")])
}

fn hmac_header() -> impl Strategy<Value = String> {
    header_with(vec![format!("v1={}", hmac_sha256_hex(STRIPE_BODY))])
}

proptest! {
    #[test]
    fn stripe_finds_the_good_signature_wherever_it_stands(header in stripe_header()) {
        let delivery = delivery("stripe-signature", &header, STRIPE_BODY);
        let event = accepted(verdict(&*STRIPE, delivery, &setup(&[])));
        prop_assert_eq!(event.id.as_deref(), Some("evt_1"));
        prop_assert_eq!(event.signed_at, Some(NOW_MS));
    }

    #[test]
    fn hmac_finds_the_good_signature_wherever_it_stands(header in hmac_header()) {
        let options = [("header", "x-signature"), ("separator", ","), ("prefix", "v1="), ("id", "json:/id")];
        let delivery = delivery("x-signature", &header, STRIPE_BODY);
        let event = accepted(verdict(&*HMAC, delivery, &setup(&options)));
        prop_assert_eq!(event.id.as_deref(), Some("evt_1"));
    }

    #[test]
    fn stripe_takes_no_header_without_the_good_signature(
        others in prop::collection::vec(other_element(), 0..6)
    ) {
        let header = format!("t=1760000000,{}", others.join(","));
        let delivery = delivery("stripe-signature", &header, STRIPE_BODY);
        let verdict = verdict(&*STRIPE, delivery, &setup(&[]));
        prop_assert!(matches!(verdict, Verdict::Reject(_)), "{:?}", verdict);
    }
}

/// Four spellings that mean much the same to a parser, and are four messages to a signature.
const SPELLINGS: [&str; 4] = [
    r#"{"a":1}"#,
    r#"{ "a": 1 }"#,
    r#"{"a":100.50}"#,
    r#"{"a":"\u00e9"}"#,
];

#[test]
fn every_spelling_of_a_body_verifies_as_it_was_sent() {
    for body in SPELLINGS {
        let signature = format!("sha256={}", hmac_sha256_hex(body.as_bytes()));
        let delivery = delivery("x-hub-signature-256", &signature, body.as_bytes());
        let event = accepted(verdict(&*GITHUB, delivery, &setup(&[])));
        assert_eq!(event.id.as_deref(), Some("d1"), "{body}");
    }
}

#[test]
fn a_verifier_that_writes_the_body_anew_fails_on_three_of_four_spellings() {
    let verifies = |body: &&str| {
        let sent = hmac_sha256_hex(body.as_bytes());
        let parsed: serde_json::Value = serde_json::from_str(body).unwrap();
        sent == hmac_sha256_hex(parsed.to_string().as_bytes())
    };
    let taken: Vec<_> = SPELLINGS.into_iter().filter(verifies).collect();
    assert_eq!(taken, [r#"{"a":1}"#]);
}

/// A delivery of Stripe's, signed at [`NOW_MS`], that arrives `later_s` seconds later.
fn replayed(later_s: u64) -> Vector {
    let signature = hmac_sha256_hex(&[b"1760000000.", STRIPE_BODY].concat());
    let header = format!("t=1760000000,v1={signature}");
    let mut headers = HeaderMap::new();
    headers.insert("stripe-signature", HeaderValue::from_str(&header).unwrap());
    Vector {
        provider: "stripe".into(),
        scheme: "stripe".into(),
        kind: vectors::Kind::Webhook,
        method: Method::POST,
        url: None,
        headers,
        body: STRIPE_BODY.into(),
        secrets: vec![SECRET.into()],
        public_key: None,
        cert_pem: None,
        sig_header: None,
        timestamp_now: Some(NOW_MS / 1000 + later_s),
        expect: vectors::Expect::Valid,
        event_id: Some("evt_1".into()),
        expected_response: None,
    }
}

#[test]
fn a_stripe_delivery_replayed_ten_minutes_later_is_stale() {
    let outcomes = [0, 300, 301, 600].map(replayed);
    let report = vectors::run(&*STRIPE, &outcomes, &Presets::default());
    let what: Vec<_> = report.lines.iter().map(|line| line.what.as_str()).collect();
    let stale = RejectKind::Stale.as_str();
    assert_eq!(
        what,
        [
            "accepted evt_1".to_owned(),
            "accepted evt_1".to_owned(),
            format!("refused as {stale}: signed 301 s ago; it is valid"),
            format!("refused as {stale}: signed 600 s ago; it is valid"),
        ]
    );
}

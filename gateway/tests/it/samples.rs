//! The sample of every plugin, signed by what the plugin asks the host to verify: what `hookgate send` sends.
//!
//! Knows no scheme. A plugin whose manifest has a MAC and whose sample cannot be signed and accepted fails
//! here, whoever adds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hookgate::crypto::{Key, KeyForm, PublicKey};
use hookgate::delivery::Verdict;
use hookgate::plugin::manifest::SecretKind;
use hookgate::plugin::sample::{self, Draft, SampleError};
use hookgate::plugin::{Plugin, Setup, WasmPlugin};

use crate::plugins::{plugin, plugins_with_vectors};

const NOW_MS: u64 = 1_760_000_000_000;
/// Reads as raw, hexadecimal and base64 alike.
const SECRET: &[u8] = b"00112233445566778899aabbccddeeff";

fn draft() -> Draft {
    Draft {
        path: "/in/acme/orders".into(),
        id: "evt_of_the_tests".into(),
        now_ms: NOW_MS,
        headers: Vec::new(),
        body: None,
    }
}

/// A source with a value for each of the plugin's MACs.
fn setup(plugin: &WasmPlugin, options: &[(&str, &str)]) -> Setup {
    let manifest = plugin.manifest();
    let mut keys = manifest.keyring();
    let secrets = manifest.secrets.iter();
    for spec in secrets.filter(|spec| spec.kind != SecretKind::PublicKey) {
        keys.add(&spec.name, Key::decode(spec.form, SECRET, false).unwrap());
    }
    let defaults = manifest.options.iter();
    let defaults = defaults.filter_map(|o| Some((o.name.clone(), o.default.clone()?)));
    let given = options
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Setup {
        keys,
        options: defaults.chain(given).collect::<BTreeMap<_, _>>(),
        public_url: Some("https://hooks.example/in/acme/orders".into()),
        ..Setup::default()
    }
}

/// What plugins need beside their secrets before anything is accepted.
fn needed(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "hmac" => &[("header", "X-Acme"), ("prefix", "v9="), ("id", "json:/id")],
        "token" => &[("token", "header:X-Acme")],
        "braintree" => &[("public_key", "a_public_key")],
        "pusher" => &[("key", "a_key")],
        _ => &[],
    }
}

/// Plugins whose sample nobody but the provider can sign, and why.
const UNSIGNED: [(&str, &str); 9] = [
    ("aws-sns", "a certificate of Amazon's"),
    ("discord", "a public key"),
    ("jwt", "a token with claims"),
    ("messagebird", "a token with claims"),
    ("paddle-classic", "a public key"),
    ("paypal", "a certificate of PayPal's"),
    ("sendgrid", "a public key"),
    ("signature", "a public key"),
    ("token", "a place that is an option; its presets are signed"),
];

#[test]
fn every_plugins_sample_can_be_signed_and_is_accepted() {
    let mut refused = Vec::new();
    let mut signed = 0;
    for directory in plugins_with_vectors() {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let plugin = plugin(name);
        let setup = Arc::new(setup(&plugin, needed(name)));
        let request = match sample::sign(&plugin, &setup, &draft()) {
            Ok(request) => request,
            Err(error) => {
                refused.push((name.to_owned(), error.to_string()));
                continue;
            }
        };
        let text = format!("{request:?}");
        for unfilled in ["{id}", "{timestamp", "{signature", "{option:"] {
            assert!(!text.contains(unfilled), "{name}: {text}");
        }
        let manifest = plugin.manifest();
        let has_id = manifest
            .sample
            .as_ref()
            .is_some_and(|s| format!("{s:?}").contains("{id}"));
        assert_eq!(text.contains("evt_of_the_tests"), has_id, "{name}: {text}");
        let shows = manifest
            .secrets
            .iter()
            .any(|spec| spec.kind == SecretKind::Token);
        assert!(
            shows || !text.contains("00112233"),
            "{name} shows the secret"
        );
        signed += 1;
    }
    refused.retain(|(name, _)| !UNSIGNED.iter().any(|(known, _)| known == name));
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(signed >= 28, "{signed}");
}

#[test]
fn headers_and_body_take_the_place_of_the_samples_before_it_is_signed() {
    let plugin = plugin("hmac");
    let options = [
        ("header", "X-Orders-Signature"),
        ("encoding", "base64"),
        ("signed", "{timestamp}.{body}"),
        ("timestamp", "header:X-Orders-Timestamp"),
    ];
    let setup = Arc::new(setup(&plugin, &options));
    let refused = sample::sign(&plugin, &setup, &draft()).unwrap_err();
    assert!(matches!(refused, SampleError::Refused { .. }), "{refused}");
    let mut draft = draft();
    draft.headers = vec![("X-Orders-Timestamp".into(), "{timestamp}".into())];
    draft.body = Some(b"{id} as it is".as_slice().into());
    let request = sample::sign(&plugin, &setup, &draft).unwrap();
    assert_eq!(request.headers["x-orders-timestamp"], "1760000000");
    assert_eq!(&*request.body, b"{id} as it is");
}

#[test]
fn the_first_active_value_signs() {
    let plugin = plugin("github");
    let key = |value: &[u8]| Key::decode(KeyForm::Raw, value, false).unwrap();
    let signed_with = |values: &[&[u8]]| {
        let mut setup = Setup::default();
        for value in values {
            setup.keys.add("secret", key(value));
        }
        let request = sample::sign(&plugin, &Arc::new(setup), &draft()).unwrap();
        request.headers["x-hub-signature-256"].clone()
    };
    let (old, new): (&[u8], &[u8]) = (b"the old secret of 25 byte", b"the new secret of 25 byte");
    assert_eq!(signed_with(&[old, new]), signed_with(&[old]));
    assert_ne!(signed_with(&[old, new]), signed_with(&[new, old]));
}

#[test]
fn what_only_the_provider_can_sign_is_an_error_that_says_so() {
    let plugin = plugin("standard-webhooks");
    let public = PublicKey::decode(KeyForm::Raw, b"an Ed25519 key that is 32 bytes!", None);
    let mut setup = Setup {
        keys: plugin.manifest().keyring(),
        ..Setup::default()
    };
    setup.keys.add_public("public_key", public.unwrap());
    let setup = Arc::new(setup);
    let error = sample::sign(&plugin, &setup, &draft()).unwrap_err();
    assert!(matches!(error, SampleError::NoSecret(_)), "{error}");
    let mut draft = draft();
    let signature = ("webhook-signature".into(), "v1a,{signature:base64}".into());
    draft.headers = vec![signature];
    let error = sample::sign(&plugin, &setup, &draft).unwrap_err();
    assert!(matches!(error, SampleError::PublicKey(_)), "{error}");
}

#[test]
fn a_handshake_can_be_sent_as_well() {
    let plugin = plugin("slack");
    let mut draft = draft();
    let body = br#"{"type":"url_verification","challenge":"c"}"#;
    draft.body = Some(body.as_slice().into());
    let setup = Arc::new(setup(&plugin, &[]));
    let request = sample::sign(&plugin, &setup, &draft).unwrap();
    let delivery = hookgate::delivery::Delivery {
        id: uuid::Uuid::nil(),
        received_at: NOW_MS,
        method: request.method,
        target: request.target,
        rest: String::new(),
        headers: request.headers,
        body: request.body,
    };
    let handled = plugin.handle(&Arc::new(delivery), &setup).unwrap();
    assert!(matches!(handled.verdict, Verdict::Respond(answer) if &*answer.body == b"c"));
}

//! Each family of HMACs against an independent computation: thousands of deliveries with bodies of any bytes, signed
//! here by `ring` from what the documentation says, each once good and once with one bit turned.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use hookgate::crypto::{Key, KeyForm};
use hookgate::delivery::{Delivery, Verdict};
use hookgate::plugin::{Plugin, Setup, WasmPlugin};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;
use ring::{digest, hmac};

use crate::plugins::plugin;

const NOW_MS: u64 = 1_760_000_000_000;
const NOW: &str = "1760000000";
const URL: &str = "https://hooks.example/in/acme/orders";

static GITHUB: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("github"));
static SHOPIFY: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("shopify"));
static STRIPE: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("stripe"));
static SLACK: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("slack"));
static STANDARD: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("standard-webhooks"));
static HMAC: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("hmac"));
static CLOUDINARY: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("cloudinary"));
static HUBSPOT: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("hubspot"));
static TWILIO: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("twilio"));
static BOX: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("box"));

/// A delivery as a provider would send it.
struct Case {
    plugin: &'static WasmPlugin,
    key: Vec<u8>,
    options: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Case {
    /// Whether it is refused for what it was signed with; what it holds beside that may be anything.
    fn is_refused(&self) -> bool {
        let mut keys = self.plugin.manifest().keyring();
        let form = self.plugin.manifest().secrets[0].form;
        // Written so that the manifest's form makes these bytes of it.
        let text = match form {
            KeyForm::Whsec => BASE64.encode(&self.key).into_bytes(),
            _ => self.key.clone(),
        };
        keys.add("secret", Key::decode(form, &text, true).unwrap());
        let options = self
            .options
            .iter()
            .map(|(n, v)| ((*n).to_owned(), v.clone()));
        let setup = Setup {
            keys,
            options: options.collect::<BTreeMap<_, _>>(),
            public_url: Some(URL.into()),
            ..Setup::default()
        };
        let header = |(name, value): &(&'static str, String)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).unwrap())
        };
        let delivery = Delivery {
            id: uuid::Uuid::nil(),
            received_at: NOW_MS,
            method: Method::POST,
            target: "/in/acme/orders".into(),
            rest: String::new(),
            headers: self.headers.iter().map(header).collect::<HeaderMap>(),
            body: self.body.clone().into(),
        };
        let handled = self
            .plugin
            .handle(&Arc::new(delivery), &Arc::new(setup))
            .unwrap();
        match handled.verdict {
            Verdict::Reject(rejection) => {
                ["bad-signature", "missing-signature"].contains(&rejection.kind.as_str())
            }
            Verdict::Accept(_) | Verdict::Respond(_) => false,
        }
    }

    /// Good as it is, and under no other key or body.
    fn check(mut self, bit: usize) -> Result<(), TestCaseError> {
        prop_assert!(!self.is_refused(), "a good signature is refused");
        let at = bit % (self.key.len() * 8);
        self.key[at / 8] ^= 1 << (at % 8);
        prop_assert!(self.is_refused(), "another key is taken");
        self.key[at / 8] ^= 1 << (at % 8);
        if self.body.is_empty() {
            self.body.push(b' ');
        } else {
            let at = bit % (self.body.len() * 8);
            self.body[at / 8] ^= 1 << (at % 8);
        }
        prop_assert!(self.is_refused(), "another body is taken");
        Ok(())
    }
}

fn mac(algorithm: hmac::Algorithm, key: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), &pieces.concat())
        .as_ref()
        .to_vec()
}

fn sha256(key: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    mac(hmac::HMAC_SHA256, key, pieces)
}

fn plain(algorithm: &'static digest::Algorithm, pieces: &[&[u8]]) -> String {
    HEXLOWER.encode(digest::digest(algorithm, &pieces.concat()).as_ref())
}

type Signed = (Vec<(&'static str, String)>, Vec<(&'static str, String)>);

/// The options and headers of a body under each scheme.
fn families(n: usize, key: &[u8], body: &[u8]) -> (&'static WasmPlugin, Signed) {
    match n {
        0..5 => of_headers(n, key, body),
        5..9 => of_more(n, key, body),
        _ => generic(n - 9, key, body),
    }
}

fn of_headers(n: usize, key: &[u8], body: &[u8]) -> (&'static WasmPlugin, Signed) {
    let dotted = format!("{NOW}.");
    let none = Vec::new;
    match n {
        0 => (
            &GITHUB,
            (
                none(),
                vec![(
                    "x-hub-signature-256",
                    format!("sha256={}", HEXLOWER.encode(&sha256(key, &[body]))),
                )],
            ),
        ),
        1 => (
            &SHOPIFY,
            (
                none(),
                vec![(
                    "x-shopify-hmac-sha256",
                    BASE64.encode(&sha256(key, &[body])),
                )],
            ),
        ),
        2 => {
            let signature = HEXLOWER.encode(&sha256(key, &[dotted.as_bytes(), body]));
            (
                &STRIPE,
                (
                    none(),
                    vec![("stripe-signature", format!("t={NOW},v1={signature}"))],
                ),
            )
        }
        3 => {
            let signature = HEXLOWER.encode(&sha256(key, &[format!("v0:{NOW}:").as_bytes(), body]));
            let headers = vec![
                ("x-slack-signature", format!("v0={signature}")),
                ("x-slack-request-timestamp", NOW.into()),
            ];
            (&SLACK, (none(), headers))
        }
        _ => {
            let signature =
                BASE64.encode(&sha256(key, &[format!("msg_1.{NOW}.").as_bytes(), body]));
            let headers = vec![
                ("webhook-id", "msg_1".into()),
                ("webhook-timestamp", NOW.into()),
                ("webhook-signature", format!("v1,{signature}")),
            ];
            (&STANDARD, (none(), headers))
        }
    }
}

fn of_more(n: usize, key: &[u8], body: &[u8]) -> (&'static WasmPlugin, Signed) {
    let none = Vec::new;
    match n {
        5 => (&CLOUDINARY, {
            let signature = plain(
                &digest::SHA1_FOR_LEGACY_USE_ONLY,
                &[body, NOW.as_bytes(), key],
            );
            (
                none(),
                vec![
                    ("x-cld-signature", signature),
                    ("x-cld-timestamp", NOW.into()),
                ],
            )
        }),
        6 => {
            let signature = plain(&digest::SHA256, &[key, body]);
            let headers = vec![
                ("x-hubspot-signature", signature),
                ("x-hubspot-signature-version", "v1".into()),
            ];
            (&HUBSPOT, (none(), headers))
        }
        7 => {
            let millis = NOW_MS.to_string();
            let signature = sha256(key, &[b"POST", URL.as_bytes(), body, millis.as_bytes()]);
            let headers = vec![
                ("x-hubspot-signature-v3", BASE64.encode(&signature)),
                ("x-hubspot-request-timestamp", millis),
            ];
            (&HUBSPOT, (none(), headers))
        }
        _ => {
            let at = "2025-10-09T08:53:20Z";
            let signature = BASE64.encode(&sha256(key, &[body, at.as_bytes()]));
            let headers = vec![
                ("box-signature-primary", signature),
                ("box-signature-version", "1".into()),
                ("box-signature-algorithm", "HmacSHA256".into()),
                ("box-delivery-timestamp", at.into()),
            ];
            (&BOX, (none(), headers))
        }
    }
}

/// Every hash and every spelling of the generic plugin, over the forms of signed content.
fn generic(n: usize, key: &[u8], body: &[u8]) -> (&'static WasmPlugin, Signed) {
    let (name, algorithm) = [
        ("hmac-sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        ("hmac-sha256", hmac::HMAC_SHA256),
        ("hmac-sha384", hmac::HMAC_SHA384),
        ("hmac-sha512", hmac::HMAC_SHA512),
    ][n % 4];
    let n = n / 4;
    let (template, before): (&str, Vec<u8>) = [
        ("{body}", Vec::new()),
        ("{timestamp}.{body}", format!("{NOW}.").into_bytes()),
        ("{url}{body}", URL.as_bytes().to_vec()),
        (
            "{method}|{target}|{timestamp}|{body}",
            format!("POST|/in/acme/orders|{NOW}|").into_bytes(),
        ),
    ][n % 4]
        .clone();
    let signature = mac(algorithm, key, &[&before, body]);
    let (encoding, text) = [
        ("hex", HEXLOWER.encode(&signature)),
        ("base64", BASE64.encode(&signature)),
        ("base64-url", BASE64URL_NOPAD.encode(&signature)),
    ][n / 4 % 3]
        .clone();
    let mut options = vec![
        ("header", "X-Any".to_owned()),
        ("algorithm", name.to_owned()),
        ("encoding", encoding.to_owned()),
        ("signed", template.to_owned()),
    ];
    let mut headers = vec![("x-any", text)];
    if template.contains("timestamp") {
        options.push(("timestamp", "header:X-Time".to_owned()));
        headers.push(("x-time", NOW.to_owned()));
    }
    (&HMAC, (options, headers))
}

/// Schemes of their own, and every combination of the generic plugin's.
const FAMILIES: usize = 9 + 4 * 4 * 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]
    #[test]
    fn every_hmac_family_agrees_with_an_independent_computation(
        n in 0..FAMILIES,
        // Of bytes that a file of text can hold, for those that take the secret as it is.
        key in prop::collection::vec(b'0'..=b'z', 20..64),
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "\\{\"id\":\"[a-z0-9]{1,8}\",\"n\":[0-9]{1,20}\\}".prop_map(String::into_bytes),
        ],
        bit in any::<usize>(),
    ) {
        let (plugin, (options, headers)) = families(n, &key, &body);
        Case { plugin, key, options, headers, body }.check(bit)?;
    }

    /// Twilio's signs the URL and, sorted, the form's fields.
    #[test]
    fn twilios_forms_agree_with_an_independent_computation(
        fields in prop::collection::btree_map("[A-Za-z]{1,8}", "[ -~]{0,12}", 0..8),
        key in prop::collection::vec(b'0'..=b'z', 20..64),
        bit in any::<usize>(),
    ) {
        let signed: String = fields.iter().map(|(name, value)| format!("{name}{value}")).collect();
        let signature = mac(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key, &[URL.as_bytes(), signed.as_bytes()]);
        let encode = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
        let pairs: Vec<_> = fields.iter().map(|(n, v)| format!("{n}={}", encode(v))).collect();
        let headers = vec![
            ("x-twilio-signature", BASE64.encode(&signature)),
            ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ];
        let body = pairs.join("&").into_bytes();
        let mut case = Case { plugin: &TWILIO, key, options: Vec::new(), headers, body };
        prop_assert!(!case.is_refused());
        case.body.extend(if case.body.is_empty() { b"New=1".as_slice() } else { b"&New=1" });
        prop_assert!(case.is_refused(), "another field is taken");
        let at = bit % (case.key.len() * 8);
        case.key[at / 8] ^= 1 << (at % 8);
        prop_assert!(case.is_refused(), "another key is taken");
    }
}

//! What the host's functions answer, seen from inside: a probe makes one call and answers with its memory.

use std::io;
use std::sync::Mutex;

use http::HeaderValue;

use super::*;
use crate::plugin::Asked;
use crate::plugin::guests::{PROBE, string};

/// Where a probe's result goes, and its memory from there on.
const RESULT: usize = 0x7c00;

struct Memory(Vec<u8>);

impl Memory {
    fn byte(&self, at: usize) -> u8 {
        self.0[at]
    }

    fn word(&self, at: usize) -> usize {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap()) as usize
    }

    fn long(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().unwrap())
    }

    /// The bytes whose address and length stand at `at`.
    fn bytes(&self, at: usize) -> &[u8] {
        let length = self.word(at + 4);
        let from = if length == 0 {
            0
        } else {
            self.word(at) - RESULT
        };
        &self.0[from..from + length]
    }

    fn text(&self, at: usize) -> &str {
        std::str::from_utf8(self.bytes(at)).unwrap()
    }

    fn option(&self) -> Option<&str> {
        (self.byte(0) == 1).then(|| self.text(4))
    }

    /// Where the items of the list at the start stand.
    fn items(&self, size: usize) -> impl Iterator<Item = usize> {
        let (from, length) = (self.word(0), self.word(4));
        (0..length).map(move |n| from - RESULT + n * size)
    }

    fn pairs(&self) -> Vec<(&[u8], &[u8])> {
        let items = self.items(16);
        items
            .map(|at| (self.bytes(at), self.bytes(at + 8)))
            .collect()
    }

    fn json(&self) -> String {
        self.json_at(0)
    }

    fn json_at(&self, at: usize) -> String {
        match (self.byte(at), self.byte(at + 4), self.byte(at + 8)) {
            (1, error, _) => format!(
                "error {}",
                ["malformed", "duplicate", "pointer"][error as usize]
            ),
            (0, 0, _) => "none".into(),
            (0, 1, 0) => format!("text {}", self.text(at + 12)),
            (0, 1, 1) => format!("number {}", self.text(at + 12)),
            (0, 1, 2) => format!("boolean {}", self.byte(at + 12)),
            (0, 1, 3) => "null".into(),
            (0, 1, 4) => format!("raw {}", self.text(at + 12)),
            other => panic!("{other:?}"),
        }
    }
}

/// Calls for a probe. Arguments in memory begin at 0x1000.
struct Probe {
    delivery: Delivery,
    setup: Setup,
}

impl Probe {
    fn new() -> Self {
        Self {
            delivery: host::no_delivery(),
            setup: Setup::default(),
        }
    }

    fn body(body: &[u8]) -> Self {
        let mut probe = Self::new();
        probe.delivery.body = Bytes::copy_from_slice(body);
        probe
    }

    fn run(self, arguments: &[u8], call: &str) -> (Result<Handled, Fault>, Self) {
        let guest = Guest::new(PROBE).mark("ARGUMENTS", &string(arguments));
        let plugin = load(&sandbox(), guest.mark("CALL", call));
        let (delivery, setup) = (Arc::new(self.delivery), Arc::new(self.setup));
        let handled = plugin.handle(&delivery, &setup);
        let delivery = Arc::into_inner(delivery).unwrap();
        let setup = Arc::into_inner(setup).unwrap();
        (handled, Self { delivery, setup })
    }

    fn ask(&mut self, arguments: &[u8], call: &str) -> Memory {
        let (handled, probe) = std::mem::replace(self, Self::new()).run(arguments, call);
        *self = probe;
        match handled.unwrap().verdict {
            Verdict::Respond(response) => Memory(response.body.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// Calls a function that takes one string.
    fn ask_name(&mut self, function: &str, name: &str) -> Memory {
        let length = name.len();
        let call = format!(
            "(call ${function} (i32.const 0x1000) (i32.const {length}) (i32.const 0x7c00))"
        );
        self.ask(name.as_bytes(), &call)
    }

    /// Calls a function that takes nothing.
    fn ask_plain(&mut self, function: &str) -> Memory {
        self.ask(b"", &format!("(call ${function} (i32.const 0x7c00))"))
    }

    fn header(&mut self, name: &'static str, value: &[u8]) {
        let value = HeaderValue::from_bytes(value).unwrap();
        self.delivery.headers.append(name, value);
    }
}

#[test]
fn a_header_is_found_whatever_its_case_and_is_none_where_it_is_not_text() {
    let mut probe = Probe::new();
    probe.header("x-id", "é1".as_bytes());
    probe.header("x-id", b"second");
    probe.header("x-raw", b"\xff");
    for name in ["x-id", "X-Id", "X-ID"] {
        assert_eq!(probe.ask_name("header", name).option(), Some("é1"));
    }
    for name in ["x-raw", "x-other", "", "no name", "\u{e9}"] {
        assert_eq!(probe.ask_name("header", name).option(), None, "{name}");
    }
}

#[test]
fn all_values_of_a_header_come_as_bytes_in_their_order() {
    let mut probe = Probe::new();
    probe.header("x-sig", b"one");
    probe.header("x-other", b"between");
    probe.header("x-sig", b"\xff\xfe");
    probe.header("x-sig", b"");
    let memory = probe.ask_name("headers", "X-Sig");
    let values: Vec<_> = memory.items(8).map(|at| memory.bytes(at)).collect();
    assert_eq!(values, [b"one".as_slice(), b"\xff\xfe", b""]);
    assert_eq!(probe.ask_name("headers", "x-none").items(8).count(), 0);
}

#[test]
fn method_target_and_time_are_those_of_the_request() {
    let mut probe = Probe::new();
    probe.delivery.method = http::Method::PUT;
    probe.delivery.target = "/in/a/b/%41//x?q=%20+".into();
    probe.delivery.received_at = u64::MAX - 1;
    assert_eq!(probe.ask_plain("method").text(0), "PUT");
    assert_eq!(probe.ask_plain("target").text(0), "/in/a/b/%41//x?q=%20+");
    let now = probe.ask(b"", "(i64.store (i32.const 0x7c00) (call $now))");
    assert_eq!(now.long(), u64::MAX - 1);
}

#[test]
fn the_external_url_is_the_public_one_with_the_rest_and_the_raw_query() {
    let mut probe = Probe::new();
    probe.delivery.target = "/in/a/b/extra?q=%20+".into();
    probe.delivery.rest = "/extra".into();
    assert_eq!(probe.ask_plain("external-url").option(), None);
    probe.setup.public_url = Some("https://Hooks.example:443/x".into());
    let url = "https://Hooks.example:443/x/extra?q=%20+";
    assert_eq!(probe.ask_plain("external-url").option(), Some(url));
}

const PAIRS: &str = "b=%41+%62&&a=1&flag&=empty+name&b=second&x=%ff%zz%4&eq=a=b&%C3%A9=%2B";

fn decoded() -> Vec<(&'static [u8], &'static [u8])> {
    vec![
        (b"b", b"A b"),
        (b"a", b"1"),
        (b"flag", b""),
        (b"", b"empty name"),
        (b"b", b"second"),
        (b"x", b"\xff%zz%4"),
        (b"eq", b"a=b"),
        ("é".as_bytes(), b"+"),
    ]
}

#[test]
fn query_and_form_are_decoded_to_bytes_in_their_order() {
    let mut probe = Probe::body(PAIRS.as_bytes());
    assert_eq!(probe.ask_plain("form").pairs(), decoded());
    assert!(probe.ask_plain("query").pairs().is_empty());
    probe.delivery.target = format!("/in/a/b?{PAIRS}");
    assert_eq!(probe.ask_plain("query").pairs(), decoded());
}

#[test]
fn ranges_of_the_body_end_where_it_ends() {
    let mut probe = Probe::body(b"01234567");
    let ranges: [(u64, u64, &[u8]); 9] = [
        (0, 8, b"01234567"),
        (0, u64::MAX, b"01234567"),
        (3, 2, b"34"),
        (3, 100, b"34567"),
        (7, 1, b"7"),
        (8, 1, b""),
        (9, 1, b""),
        (0, 0, b""),
        (u64::MAX, u64::MAX, b""),
    ];
    for (from, length, expected) in ranges {
        let call =
            format!("(call $body (i64.const {from}) (i64.const {length}) (i32.const 0x7c00))");
        assert_eq!(probe.ask(b"", &call).bytes(0), expected, "{from} {length}");
    }
    let length = probe.ask(b"", "(i64.store (i32.const 0x7c00) (call $body-length))");
    assert_eq!(length.long(), 8);
}

const DOCUMENT: &str =
    r#"{"s":"\u00e9\n","n":100.50,"t":true,"z":null,"o":{"k": [1]},"d":{"x":1,"x":2}}"#;
const LOOKUPS: [(&str, &str); 9] = [
    ("/s", "text é\n"),
    ("/n", "number 100.50"),
    ("/t", "boolean 1"),
    ("/z", "null"),
    ("/o", r#"raw {"k": [1]}"#),
    ("/o/k/0", "number 1"),
    ("/none", "none"),
    ("/d/x", "error duplicate"),
    ("s", "error pointer"),
];

#[test]
fn json_is_looked_up_in_the_body_and_in_other_documents_alike() {
    let mut probe = Probe::body(DOCUMENT.as_bytes());
    for (pointer, expected) in LOOKUPS {
        assert_eq!(
            probe.ask_name("json", pointer).json(),
            expected,
            "{pointer}"
        );
        let (all, document) = (format!("{DOCUMENT}{pointer}"), DOCUMENT.len());
        let (at, length) = (0x1000 + document, pointer.len());
        let call = format!(
            "(call $json-in (i32.const 0x1000) (i32.const {document}) (i32.const {at}) (i32.const {length}) (i32.const 0x7c00))"
        );
        assert_eq!(
            Probe::new().ask(all.as_bytes(), &call).json(),
            expected,
            "{pointer}"
        );
    }
    assert_eq!(
        Probe::body(b"{\"s\":1} x").ask_name("json", "/s").json(),
        "error malformed"
    );
    assert_eq!(
        Probe::body(b"").ask_name("json", "").json(),
        "error malformed"
    );
}

#[test]
fn many_pointers_are_looked_up_at_once_in_the_body_and_in_other_documents() {
    // Addresses and lengths first, then the pointers, then the document.
    let (mut list, mut behind) = (Vec::new(), Vec::new());
    let at = |behind: &[u8]| 0x1000 + 8 * LOOKUPS.len() + behind.len();
    for (pointer, _) in LOOKUPS {
        for word in [at(&behind), pointer.len()] {
            list.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        behind.extend(pointer.as_bytes());
    }
    let (document, length, count) = (at(&behind), DOCUMENT.len(), LOOKUPS.len());
    let arguments = [list, behind, DOCUMENT.into()].concat();
    let list = format!("(i32.const 0x1000) (i32.const {count}) (i32.const 0x7c00)");
    for call in [
        format!("(call $json-all {list})"),
        format!("(call $json-all-in (i32.const {document}) (i32.const {length}) {list})"),
    ] {
        let memory = Probe::body(DOCUMENT.as_bytes()).ask(&arguments, &call);
        let found: Vec<_> = memory.items(20).map(|at| memory.json_at(at)).collect();
        assert_eq!(found, LOOKUPS.map(|(_, expected)| expected));
    }
}

#[test]
fn options_are_the_sources_own() {
    let mut probe = Probe::new();
    probe.setup.options.insert("header".into(), "X-Sig".into());
    assert_eq!(probe.ask_name("option", "header").option(), Some("X-Sig"));
    assert_eq!(probe.ask_name("option", "Header").option(), None);
}

/// A log that a test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(arguments: &[u8], call: &str) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone());
    let mut probe = Probe::new();
    probe.setup.label = "/acme/shop".into();
    tracing::subscriber::with_default(subscriber.finish(), || probe.ask(arguments, call));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().filter(|line| line.contains("/acme/shop"));
    lines.map(ToOwned::to_owned).collect()
}

#[test]
fn a_delivery_logs_at_most_eight_lines_of_512_bytes() {
    let line = [b"a".repeat(511), "é and more".as_bytes().to_vec()].concat();
    let call = format!(
        "(call $log (i32.const 2) (i32.const 0x1000) (i32.const {}))",
        line.len()
    );
    let lines = logged(&line, &call.repeat(10));
    assert_eq!(lines.len(), 8);
    for line in lines {
        assert!(line.contains(" WARN "), "{line}");
        assert_eq!(
            line.matches('a').count(),
            511 + "/acme/shop".matches('a').count(),
            "{line}"
        );
        assert!(!line.contains('é'), "{line}");
    }
}

#[test]
fn a_logged_line_stays_one_line() {
    let line = b"one\r\ntwo\x1b[31m\xe2\x80\xaered\0";
    let call = format!(
        "(call $log (i32.const 1) (i32.const 0x1000) (i32.const {}))",
        line.len()
    );
    let lines = logged(line, &call);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let escaped = r"one\r\ntwo\u{1b}[31m\u{202e}red\0";
    assert!(lines[0].contains(escaped), "{lines:?}");
}

/// A key, and what it says of a message: the body behind the literal `v0:`.
fn with_keys(values: &[&str]) -> Probe {
    let mut probe = Probe::body(b"the body");
    for value in values {
        let key = Key::decode(KeyForm::Raw, value.as_bytes(), false).unwrap();
        probe.setup.keys.add("secret", key);
    }
    probe
}

/// The arguments of verify-mac: the secret's name, the literal, two segments, and the signature.
fn mac_arguments(first_segment: u8, signature: &[u8]) -> Vec<u8> {
    let segment = |case: u8, at: u32, length: u32| {
        [
            vec![case, 0, 0, 0],
            at.to_le_bytes().into(),
            length.to_le_bytes().into(),
        ]
        .concat()
    };
    let mut arguments = b"secretv0:.......".to_vec();
    arguments.extend(segment(first_segment, 0x1006, 3));
    arguments.extend(segment(1, 0, 0));
    arguments.extend(signature);
    arguments
}

const VERIFY_MAC: &str = "(i32.store (i32.const 0x7c00) (call $verify-mac (i32.const 1)
    (i32.const 0x1000) (i32.const 6) (i32.const 0x1010) (i32.const 2)
    (i32.const 0) (i32.const 0x1028) (i32.const 32)))";

fn signed(value: &str) -> Vec<u8> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, value.as_bytes());
    ring::hmac::sign(&key, b"v0:the body").as_ref().to_vec()
}

const OLD: &str = "the old key of 26 bytes...";
const NEW: &str = "the new key of 26 bytes...";

#[test]
fn a_mac_fits_under_any_active_value_and_the_value_is_named() {
    for (value, place) in [(OLD, 0), (NEW, 1)] {
        let arguments = mac_arguments(0, &signed(value));
        let (handled, _) = with_keys(&[OLD, NEW]).run(&arguments, VERIFY_MAC);
        assert_eq!(handled.unwrap().key, Some(("secret".to_owned(), place)));
    }
    let (handled, _) = with_keys(&[OLD]).run(&mac_arguments(0, &signed(NEW)), VERIFY_MAC);
    let handled = handled.unwrap();
    assert_eq!(handled.key, None);
    assert!(matches!(handled.verdict, Verdict::Respond(answer) if answer.body[0] == 0));
}

#[test]
fn a_secret_in_an_hmac_or_a_name_that_the_source_lacks_ends_the_delivery() {
    let (handled, _) = with_keys(&[OLD]).run(&mac_arguments(6, &[0; 32]), VERIFY_MAC);
    assert_eq!(
        handled.unwrap_err().to_string(),
        "the plugin's answer is refused: plain digests hash a secret, and only they do"
    );
    let (handled, _) = Probe::new().run(&mac_arguments(0, &[0; 32]), VERIFY_MAC);
    assert_eq!(
        handled.unwrap_err().to_string(),
        "the plugin's answer is refused: it names the secret \"secret\", which the source does not have"
    );
}

/// RFC 8032, 7.1, test 2: what signs the one byte `r`.
const PUBLIC: &[u8] = b"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const SIGNATURE: &[u8] = b"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

fn with_public_key(name: &str) -> Probe {
    let key = PublicKey::decode(KeyForm::Hex, PUBLIC, None).unwrap();
    let mut probe = Probe::body(b"r");
    probe.setup.keys.add_public(name, key);
    probe
}

/// A call of verify-signature with a key of this kind, and its arguments: the key's name, a message of the
/// body alone behind padding, and the signature in hexadecimal.
fn verify_signature(probe: Probe, scheme: u8, key: u8, segment: u8) -> Result<Handled, Fault> {
    let arguments = [b"secret..".as_slice(), &[segment; 1], &[0; 11], SIGNATURE].concat();
    let call = format!(
        "(i32.store (i32.const 0x7c00) (call $verify-signature (i32.const {scheme})
            (i32.const {key}) (i32.const 0x1000) (i32.const 6) (i32.const 0x1000) (i32.const 6)
            (i32.const 0x1008) (i32.const 1) (i32.const 1) (i32.const 0x1014) (i32.const 128)))"
    );
    probe.run(&arguments, &call).0
}

#[test]
fn a_public_key_signature_fits_under_its_own_scheme_alone() {
    let fitting = verify_signature(with_public_key("secret"), 0, 0, 1).unwrap();
    assert_eq!(fitting.key, Some(("secret".to_owned(), 0)));
    for scheme in 1..7 {
        let other = verify_signature(with_public_key("secret"), scheme, 0, 1).unwrap();
        assert_eq!(other.key, None, "{scheme}");
    }
    let mut probe = with_public_key("secret");
    probe.delivery.body = Bytes::from_static(b"s");
    assert_eq!(verify_signature(probe, 0, 0, 1).unwrap().key, None);
}

#[test]
fn a_key_by_url_that_nobody_approved_fits_nothing() {
    for by_url in [1, 2] {
        let handled = verify_signature(with_public_key("secret"), 0, by_url, 1).unwrap();
        assert_eq!(handled.key, None);
    }
}

#[test]
fn secrets_as_public_keys_and_signed_secrets_end_the_delivery() {
    let fault = |probe, key, segment| {
        let fault = verify_signature(probe, 0, key, segment).unwrap_err();
        fault.to_string()
    };
    assert_eq!(
        fault(with_keys(&[OLD]), 0, 1),
        "the plugin's answer is refused: it names the public key \"secret\", which the source does not have"
    );
    assert_eq!(
        fault(with_public_key("secret"), 0, 6),
        "the plugin's answer is refused: what a public key signs holds no secret"
    );
}

#[test]
fn a_public_key_is_never_the_key_of_a_mac_which_anybody_could_make() {
    let (handled, _) = with_public_key("secret").run(&mac_arguments(0, &[0; 32]), VERIFY_MAC);
    let refused = "it names the secret \"secret\", which the source does not have";
    assert!(handled.unwrap_err().to_string().ends_with(refused));
}

#[test]
fn a_secret_that_is_known_and_has_no_value_fits_nothing() {
    let mut probe = Probe::body(b"the body");
    probe.setup.keys.declare("secret");
    let (handled, _) = probe.run(&mac_arguments(0, &signed(OLD)), VERIFY_MAC);
    assert_eq!(handled.unwrap().key, None);
}

#[test]
fn a_rehearsal_tells_the_mac_that_would_have_fitted_and_a_delivery_keeps_no_record() {
    let guest = Guest::new(PROBE).mark("ARGUMENTS", &string(&mac_arguments(0, &[0; 32])));
    let plugin = load(&sandbox(), guest.mark("CALL", VERIFY_MAC));
    let probe = with_keys(&[OLD, NEW]);
    let (delivery, setup) = (Arc::new(probe.delivery), Arc::new(probe.setup));
    let (handled, asked) = plugin.rehearse(&delivery, &setup).unwrap();
    assert_eq!(handled.key, None);
    match asked.as_slice() {
        [
            Asked::Mac {
                secret,
                fitting: Some(fitting),
                ..
            },
        ] => {
            assert_eq!((secret.as_str(), fitting), ("secret", &signed(OLD)));
        }
        other => panic!("{other:?}"),
    }
    assert!(
        Call::new(delivery, setup, &Limits::default())
            .asked
            .is_none()
    );
}

#[test]
fn a_token_fits_only_as_a_whole() {
    for (value, fits) in [(NEW, 1), (&NEW[1..], 0), ("", 0)] {
        let arguments = format!("secret{value}");
        let call = format!(
            "(i32.store (i32.const 0x7c00) (call $verify-token (i32.const 0x1000) (i32.const 6) (i32.const 0x1006) (i32.const {})))",
            value.len()
        );
        let mut probe = with_keys(&[OLD, NEW]);
        assert_eq!(
            probe.ask(arguments.as_bytes(), &call).word(0),
            fits,
            "{value}"
        );
    }
}

#[test]
fn a_digest_is_public_and_takes_no_secret() {
    let call = "(call $digest (i32.const 1) (i32.const 0x1010) (i32.const 2) (i32.const 0x7c00))";
    let memory = with_keys(&[OLD]).ask(&mac_arguments(0, &[]), call);
    assert_eq!(memory.bytes(0), crate::crypto::sha256(b"v0:the body"));
    let (handled, _) = with_keys(&[OLD]).run(&mac_arguments(6, &[]), call);
    assert_eq!(
        handled.unwrap_err().to_string(),
        "the plugin's answer is refused: a public digest holds no secret"
    );
}

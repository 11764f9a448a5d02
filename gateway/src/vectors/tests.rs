//! Vectors against a plugin of this process that does as each test says, and sees what it is told.

use std::sync::Mutex;

use super::*;
use crate::plugin::{Fault, Handled};

type Told = (Arc<Delivery>, Arc<Setup>);

/// Answers every delivery alike.
struct Fixed {
    manifest: Manifest,
    answer: Result<Verdict, Fault>,
    told: Mutex<Vec<Told>>,
}

impl Fixed {
    fn new(answer: Result<Verdict, Fault>) -> Self {
        let json = r#"{"v":1,"name":"fixed","version":"1","schemes":["fixed"],"secrets":[
            {"name":"first","kind":"mac","form":"hex"},
            {"name":"second","kind":"mac"},
            {"name":"key","kind":"public-key"}]}"#;
        Self {
            manifest: Manifest::parse(json).unwrap(),
            answer,
            told: Mutex::default(),
        }
    }

    fn run(&self, vector: &str, presets: &str) -> Line {
        let vectors: Vec<Vector> = serde_json::from_str(&format!("[{vector}]")).unwrap();
        let presets = serde_json::from_str(presets).unwrap();
        run(self, &vectors, &presets).lines.remove(0)
    }

    fn told(&self) -> Told {
        self.told.lock().unwrap().pop().unwrap()
    }
}

impl Plugin for Fixed {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn handle(&self, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> Result<Handled, Fault> {
        let told = (Arc::clone(delivery), Arc::clone(setup));
        self.told.lock().unwrap().push(told);
        self.answer.clone().map(|verdict| Handled {
            verdict,
            key: None,
            confirm: None,
            fuel: 0,
        })
    }
}

fn accept(id: &str, signed_at: u64) -> Verdict {
    Verdict::Accept(Event {
        id: Some(id.into()),
        signed_at: Some(signed_at),
        ..Event::default()
    })
}

fn reject() -> Verdict {
    let rejection = Rejection::new(RejectKind::BadSignature, "no");
    Verdict::Reject(rejection)
}

fn respond(body: &str) -> Verdict {
    Verdict::Respond(Response {
        status: Some(200),
        headers: Vec::new(),
        body: body.to_owned().into(),
    })
}

fn vector(expect: &str, more: &str) -> String {
    format!(r#"{{"provider":"p","scheme":"fixed","expect":"{expect}"{more}}}"#)
}

/// Whether it passed, and what happened.
fn outcome(answer: Verdict, expect: &str, more: &str) -> (bool, String) {
    outcome_of(Ok(answer), expect, more)
}

fn outcome_of(answer: Result<Verdict, Fault>, expect: &str, more: &str) -> (bool, String) {
    let line = Fixed::new(answer).run(&vector(expect, more), "{}");
    (line.passed, line.what)
}

fn passed(what: &str) -> (bool, String) {
    (true, what.into())
}

fn failed(what: &str) -> (bool, String) {
    (false, what.into())
}

#[test]
fn a_valid_delivery_passes_when_it_is_accepted_with_its_id() {
    let id = r#","event_id":"e1""#;
    assert_eq!(outcome(accept("e1", 0), "valid", id), passed("accepted e1"));
    assert_eq!(
        outcome(accept("e2", 0), "valid", id),
        failed("accepted e2; the id should have been e1")
    );
    assert_eq!(
        outcome(reject(), "valid", ""),
        failed("refused as bad-signature: no; it is valid")
    );
}

#[test]
fn an_invalid_delivery_passes_when_it_is_refused_and_never_by_a_fault() {
    assert_eq!(
        outcome(reject(), "invalid", ""),
        passed("refused as bad-signature: no")
    );
    assert_eq!(
        outcome(accept("e1", 0), "invalid", ""),
        failed("accepted e1; it should have been refused")
    );
    let fault = Fault::OutOfFuel { limit: 1 };
    assert_eq!(
        outcome_of(Err(fault), "invalid", ""),
        failed("the plugin used up its fuel of 1 units")
    );
}

#[test]
fn signed_times_are_held_against_the_vectors_clock_alone() {
    let at = |signed_at| {
        outcome(
            accept("e1", signed_at),
            "invalid",
            r#","timestamp_now":1000"#,
        )
    };
    assert!(!at(700_000).0);
    assert_eq!(at(699_999), passed("refused as stale: signed 300 s ago"));
    assert!(!at(1_300_000).0);
    assert_eq!(
        at(1_300_001),
        passed("refused as stale: signed 300 s ahead")
    );
    assert_eq!(outcome(accept("e1", 0), "valid", ""), passed("accepted e1"));
}

#[test]
fn a_handshake_passes_when_it_is_answered_to_the_byte() {
    let handshake = r#","kind":"handshake","expected_response":"yes""#;
    assert_eq!(
        outcome(respond("yes"), "valid", handshake),
        passed("answered 3 bytes")
    );
    assert_eq!(
        outcome(respond("no"), "valid", handshake),
        failed("answered 2 bytes; the answer should have been yes")
    );
    assert!(!outcome(accept("e1", 0), "valid", handshake).0);
    assert!(outcome(respond("hello"), "valid", "").0);
    assert!(!outcome(respond("hello"), "valid", r#","event_id":"e1""#).0);
}

#[test]
fn the_source_is_made_of_the_vector_and_the_nearest_preset() {
    let plugin = Fixed::new(Ok(accept("e1", 0)));
    let more = r#","method":"GET","url":"https://h.example/a/b?c=d?e","timestamp_now":7,
        "headers":{"X-A":"1","x-a":"2"},"sig_header":"X-Sig","body":"{}",
        "secrets":["first key of the source","second key of the source"],"public_key":"PUBLIC"}"#;
    let more = more.replace("PUBLIC", "an Ed25519 key that is 32 bytes!");
    let presets = r#"{"fixed/p":{"options":{"id":"json:/id","depth":2},"key_forms":{"first":"raw"}},
        "fixed":{"options":{"id":"wrong"}}}"#;
    let line = plugin.run(&vector("valid", more.trim_end_matches('}')), presets);
    assert!(line.passed, "{line}");
    let (delivery, setup) = plugin.told();
    assert_eq!(setup.public_url.as_deref(), Some("https://h.example/a/b"));
    assert_eq!(
        delivery.external_url("https://h.example/a/b"),
        "https://h.example/a/b?c=d?e"
    );
    assert_eq!(delivery.target, "/a/b?c=d?e");
    assert_eq!(
        (&*delivery.body, delivery.received_at),
        (b"{}".as_slice(), 7_000)
    );
    let values: Vec<_> = delivery.headers.get_all("x-a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    let options: Vec<_> = setup
        .options
        .iter()
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    assert_eq!(options, ["depth=2", "header=X-Sig", "id=json:/id"]);
    assert_eq!(setup.keys.get("first").unwrap().len(), 2);
    assert_eq!(setup.keys.public("key").unwrap().len(), 1);
    assert_eq!(setup.keys.get("second").map(<[_]>::len), Some(0));
}

#[test]
fn weak_and_empty_keys_are_noted_and_a_secret_that_is_no_key_fails() {
    let weak = outcome(reject(), "invalid", r#","secrets":["00ff"]"#);
    assert_eq!(
        weak,
        passed("refused as bad-signature: no; its key of 2 bytes is weak")
    );
    let empty = outcome(reject(), "invalid", r#","secrets":[""]"#);
    let note = "refused as bad-signature: no; another key stands in for its empty one";
    assert_eq!(empty, passed(note));
    let no_key = outcome(reject(), "invalid", r#","secrets":["not hexadecimal"]"#);
    let reason = "its secret is no key: it is not hexadecimal, which its form demands";
    assert_eq!(no_key, failed(reason));
}

#[test]
fn a_delivery_refused_for_want_of_an_option_proves_nothing() {
    let mut plugin = Fixed::new(Ok(reject()));
    let option = r#"{"name":"header","required":true}"#;
    plugin.manifest.options = vec![serde_json::from_str(option).unwrap()];
    let line = plugin.run(&vector("invalid", ""), "{}");
    assert!(!line.passed);
    let reason = "its source has no option \"header\", which the manifest requires";
    assert_eq!(line.what, reason);
    assert!(
        plugin
            .run(&vector("invalid", r#","sig_header":"X-Sig""#), "{}")
            .passed
    );
}

#[test]
fn bodies_are_text_base64_or_repeated_text() {
    let body = |more: &str| {
        let vector = serde_json::from_str::<Vector>(&vector("valid", more));
        vector
            .map(|vector| vector.body)
            .map_err(|error| error.to_string())
    };
    assert_eq!(body("").unwrap(), "");
    assert_eq!(body(r#","body":"\u00e9""#).unwrap(), "é");
    assert_eq!(
        body(r#","body_base64":"/wA=""#).unwrap(),
        b"\xff\0".as_slice()
    );
    assert_eq!(
        body(r#","body_repeat":{"text":"ab","times":3}"#).unwrap(),
        "ababab"
    );
    assert!(
        body(r#","body":"","body_base64":"""#)
            .unwrap_err()
            .contains("more than one")
    );
    assert!(
        body(r#","body_base64":"/""#)
            .unwrap_err()
            .contains("`body_base64`")
    );
}

#[test]
fn vectors_of_other_schemes_are_counted_and_nothing_run_is_no_success() {
    let other = r#"{"provider":"p","scheme":"other","expect":"valid"}"#;
    let vectors: Vec<Vector> = serde_json::from_str(&format!("[{other},{other}]")).unwrap();
    let report = run(&Fixed::new(Ok(reject())), &vectors, &Presets::default());
    assert_eq!(report.skipped, BTreeMap::from([("other".to_owned(), 2)]));
    assert!(report.lines.is_empty() && !report.is_success());
}

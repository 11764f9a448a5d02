//! What an operator sees, whole; and what settings and sources come of a file.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::secret::Surroundings;
use super::sources::Plugins;
use super::validate::{BackendSettings, QueueSettings, StoreSettings};
use super::*;
use crate::delivery::Delivery;
use crate::plugin::{Fault, Handled, Limits, Manifest, Plugin, Sandbox, Setup};
use crate::queue::Retention;
use crate::telemetry::Telemetry;
use crate::tenants::Tenants;

const FILE: &str = "hookgate.toml";
const KEY: &str = "correct horse battery staple";

#[derive(Default)]
struct World {
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, Vec<u8>>,
}

impl World {
    /// A configuration, and a good secret in `GOOD`.
    fn of(text: &str) -> Self {
        let mut world = Self::default();
        world.files.insert(FILE, text.as_bytes().to_vec());
        world.variables.insert("GOOD", KEY);
        world
    }

    fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.insert(name, value);
        self
    }

    fn file(mut self, path: &'static str, value: &str) -> Self {
        self.files.insert(path, value.into());
        self
    }

    fn load(&self) -> Result<Loaded, Problems> {
        load(Path::new(FILE), self)
    }

    fn tenants(&self) -> Tenants {
        self.load()
            .unwrap()
            .tenants(&Catalogue, self, &Telemetry::default(), None)
            .0
    }

    /// All that a check of everything would print.
    fn report(&self) -> String {
        let loaded = match self.load() {
            Ok(loaded) => loaded,
            Err(problems) => return problems.to_string(),
        };
        let (_, found) = loaded.tenants(&Catalogue, self, &Telemetry::default(), None);
        let mut problems = loaded.problems.clone();
        problems.extend(found);
        problems.to_string()
    }
}

impl Surroundings for World {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        self.variables
            .get(name)
            .map(|value| value.as_bytes().to_vec())
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = path.to_str().and_then(|path| self.files.get(path));
        // As the system says it, with its number.
        found
            .cloned()
            .ok_or_else(|| io::Error::from_raw_os_error(2))
    }
}

struct FakePlugin(Manifest);

impl Plugin for FakePlugin {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn handle(&self, _: &Arc<Delivery>, _: &Arc<Setup>) -> Result<Handled, Fault> {
        unreachable!("configuration never calls a plugin")
    }
}

struct Catalogue;

impl Plugins for Catalogue {
    fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        let says = match name {
            "github" => {
                r#""max_attempts": 1, "timeout_ms": 10000, "body_stable": true, "every_delivery_has_id": true,
                "secrets": [{"name": "secret", "kind": "mac", "description": "As in the webhook's settings."}],
                "signature_header": "X-Hub-Signature-256""#
            }
            "hmac" => {
                r#""secrets": [{"name": "secret", "kind": "mac"}], "signature_header": "option:header",
                "options": [{"name": "header", "required": true, "description": "The signature's header."},
                {"name": "encoding", "default": "hex"}]"#
            }
            "sns" => {
                r#""signed_time": "event", "retry_window_s": 2000000, "needs_public_url": true,
                "key_hosts": ["sns.example"],
                "secrets": [{"name": "token", "kind": "token", "form": "hex", "required": false}]"#
            }
            "vague" => {
                r#""retry_window_s": 3600, "sample": {"method": "POST", "headers": [["X-Time", "{timestamp}"]]}"#
            }
            "either" => {
                r#""secrets": [{"name": "secret", "kind": "mac", "form": "whsec", "required": false},
                {"name": "key", "kind": "public-key", "form": "whpk", "algorithm": "ed25519", "required": false}]"#
            }
            _ => return None,
        };
        let json = format!(r#"{{"v": 1, "name": "{name}", "version": "1.0.0", {says}}}"#);
        Some(Arc::new(FakePlugin(Manifest::parse(&json).unwrap())))
    }

    fn names(&self) -> Vec<&str> {
        vec!["github", "hmac", "sns", "vague"]
    }
}

/// One source of GitHub, and these lines in it.
fn github(lines: &str) -> World {
    World::of(&format!(
        "[tenants.acme.sources.gh]\nplugin = \"github\"\nsecrets.secret = [\"env:GOOD\"]\n{lines}\n"
    ))
}

fn secret_from(reference: &str) -> World {
    World::of(&format!(
        "[tenants.acme.sources.gh]\nplugin = \"github\"\nsecrets.secret = [\"{reference}\"]\n"
    ))
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_one() {
    insta::assert_snapshot!(github("max_aeg = \"300s\"\n[server]\nbananas = 1").report());
}

#[test]
fn a_bad_duration_is_told_with_examples() {
    insta::assert_snapshot!(github("max_age = \"soon\"\n[server]\nmax_body = \"1 loaf\"").report());
}

#[test]
fn a_bare_number_is_refused_with_its_unit() {
    let world = github(
        "max_age = 300\nclaim_ttl = 1.5\n[server]\nmax_body = 1048576\nbody_timeout = \"10\"",
    );
    insta::assert_snapshot!(world.report());
}

#[test]
fn a_bad_name_is_told_with_the_rule() {
    let world = World::of("[tenants.Acme.sources.\"git.hub\"]\nplugin = \"github\"\n");
    insta::assert_snapshot!(world.report());
}

#[test]
fn a_missing_or_unknown_plugin_is_told_with_the_known_ones() {
    let one = "[tenants.acme.sources.none]\n";
    insta::assert_snapshot!("missing_plugin", World::of(one).report());
    let unknown = "[tenants.acme.sources.a]\nplugin = \"githbu\"\n\
                   [tenants.acme.sources.b]\nplugin = \"payments\"\nsecrets.secret = [\"env:ABSENT\"]\n";
    insta::assert_snapshot!("unknown_plugin", World::of(unknown).report());
}

#[test]
fn a_variable_that_is_not_set_is_told_by_name() {
    insta::assert_snapshot!(secret_from("env:ABSENT").report());
}

#[test]
fn keys_that_are_none_are_told_by_reason() {
    let source = |name: &str| {
        format!(
            "[tenants.acme.sources.{name}]\nplugin = \"github\"\n\
             secrets.secret = [\"env:GOOD\", \"env:{name}\"]\n"
        )
    };
    let text = ["empty", "unexpanded", "short"].map(source).concat();
    let world = World::of(&text)
        .variable("empty", "")
        .variable("unexpanded", "${GITHUB_WEBHOOK_SECRET}")
        .variable("short", "hunter2");
    insta::assert_snapshot!(world.report());
}

#[test]
fn a_secret_file_that_is_missing_is_told_with_its_path() {
    insta::assert_snapshot!(secret_from("file:secrets/github").report());
}

#[test]
fn text_that_is_not_toml_is_told_by_line() {
    insta::assert_snapshot!(World::of("[server]\nlisten = 127.0.0.1\n\n[admin\n").report());
}

#[test]
fn a_missing_file_is_told_with_where_paths_start() {
    insta::assert_snapshot!(World::default().report());
}

#[test]
fn the_text_in_an_environment_variable_is_read_and_its_paths_start_at_the_working_directory() {
    let text = "[plugins]\ndirectory = \"providers\"\n";
    let world = World::default().variable("HOOKGATE_CONFIG", text);
    let loaded = load(Path::new("env:HOOKGATE_CONFIG"), &world).unwrap();
    assert_eq!(loaded.settings.plugin_directory, Path::new("providers"));
}

#[test]
fn problems_of_an_environment_variable_are_told_with_its_name_and_line() {
    let report = |name: &str, text: &'static str| {
        let world = World::default().variable("CONFIG", text);
        let problems = load(Path::new(name), &world).unwrap_err();
        problems.to_string()
    };
    insta::assert_snapshot!(
        [
            report("env:CONFIG", "[server]\nlistne = \"\"\n"),
            report("env:CONFIG", ""),
            report("env:ABSENT", ""),
            report("env:", ""),
        ]
        .join("\n\n")
    );
}

#[test]
fn a_file_that_is_not_text_is_told_by_line() {
    let mut world = World::default();
    world.files.insert(FILE, b"[server]\n# caf\xe9\n".to_vec());
    insta::assert_snapshot!(world.report());
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let text = "\
[server]
listen = \"localhost:8080\"
max_connections = -1
memory_budget = \"1KiB\"
max_header_bytes = \"0B\"

[store]
kind = \"redis\"
claim_ttl = \"5m\"

[queue]
kind = \"memory\"
window = \"60s\"

[tenants.acme.sources.gh]
plugin = 7
secrets.secret = \"env:GOOD\"
key_forms.other = \"hex\"
ordering = \"keys\"
max_age = \"0s\"

[tenants.acme.sources.Shop]
secrets = { secret = [] }
key_forms.secret = \"hexx\"
";
    insta::assert_snapshot!(World::of(text).report());
}

#[test]
fn a_list_is_no_table() {
    let text = "[[server]]\n[[tenants.acme.sources.gh]]\nplugin = \"github\"\n\
                [tenants]\nother = []\n[admin]\nlisten = [\"127.0.0.1:1\"]\n";
    insta::assert_snapshot!(World::of(text).report());
}

#[test]
fn what_is_not_durable_or_not_used_is_told() {
    insta::assert_snapshot!(World::of("[store]\nkind = \"memory\"\npath = \"data\"\n").report());
    insta::assert_snapshot!(World::of("[queue]\nkind = \"memory\"\npath = \"data\"\n").report());
    insta::assert_snapshot!(World::of("[queue]\npath = \"data\"\n").report());
}

#[test]
fn what_aws_could_not_use_is_told() {
    let report = |text: &str| World::of(text).report();
    let kinds = "[store]\nkind = \"dynamodb\"\n[queue]\nkind = \"sqs\"\n";
    insta::assert_snapshot!(report(kinds));
    insta::assert_snapshot!(report(&format!(
        "{kinds}window = \"60s\"\nsqs.url = \"https://sqs.eu-west-1.amazonaws.com/1/events\"\n\
         sqs.batches = 0\npressure = {{ high_water = 10, low_water = 11, max_running = 0 }}\n\
         [aws]\nregion = \"eu-central-1\"\nendpoint = \"localhost:4566\"\n"
    )));
    insta::assert_snapshot!(report(&format!("{kinds}sqs.url = \"events.fifo\"\n")));
}

#[test]
fn the_queues_url_names_the_region() {
    let text = "[store]\nkind = \"dynamodb\"\ndynamodb.table = \"claims\"\n[queue]\nkind = \"sqs\"\n\
                sqs.url = \"https://sqs.eu-west-1.amazonaws.com/1/events.fifo\"\n";
    let settings = World::of(text).load().unwrap().settings;
    let QueueSettings::Sqs(sqs) = settings.backend.queue else {
        panic!("{:?}", settings.backend.queue)
    };
    assert_eq!(sqs.aws.region.as_deref(), Some("eu-west-1"));
    assert_eq!(
        settings.timing.skew,
        Duration::from_secs(10),
        "clocks of others"
    );
}

#[test]
fn a_fixed_ttl_that_does_not_outlive_the_queues_messages_is_refused_with_the_numbers() {
    let text = "[store]\nclaim_ttl = \"5days\"\n\
                [tenants.a.sources.longer]\nplugin = \"github\"\nclaim_ttl = \"20days\"\n\
                [tenants.a.sources.auto]\nplugin = \"github\"\nclaim_ttl = \"auto\"\n";
    let loaded = World::of(text).load().unwrap();
    let day = Duration::from_hours(24);
    let kept = |queue, dead_letters: Option<u32>| Retention {
        queue: queue * day,
        dead_letters: dead_letters.map(|days| days * day),
    };
    let (problems, lacks) = loaded.outlives(kept(4, Some(14)));
    insta::assert_snapshot!(problems);
    assert_eq!(lacks, 14 * day);
    let (problems, lacks) = loaded.outlives(kept(4, None));
    insta::assert_snapshot!(problems);
    assert_eq!(lacks, Duration::from_secs(1), "as long is not longer");
    assert!(!loaded.outlives(kept(3, None)).0.has_errors());
}

#[test]
fn what_the_plugin_asks_for_is_told_by_source() {
    let text = "\
[tenants.acme.sources.generic]
plugin = \"hmac\"
options.encodnig = \"hex\"
secrets.sceret = [\"env:GOOD\"]

[tenants.acme.sources.sns]
plugin = \"sns\"
claim_ttl = \"20days\"
content_ttl = \"1m\"

[tenants.acme.sources.vague]
plugin = \"vague\"
content_ttl = \"1200s\"
claim_ttl = \"1h\"
public_url = \"hooks.example.com/in/acme/vague\"
";
    insta::assert_snapshot!(World::of(text).report());
}

/// A source of a plugin that verifies with a secret or a public key.
fn either(lines: &str) -> World {
    let text = format!("[tenants.a.sources.s]\nplugin = \"either\"\n{lines}\n");
    World::of(&text)
}

#[test]
fn of_optional_secrets_one_is_needed_and_any_will_do() {
    let report = either("").report();
    let what =
        "tenants.a.sources.s.secrets: the plugin `either` needs at least one of `secret`, `key`";
    assert!(report.contains(what), "{report}");
    let key = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    let world = either("secrets.key = [\"env:PUBLIC\"]").variable("PUBLIC", key);
    let tenants = world.tenants();
    let source = tenants.find("a", "s").unwrap();
    let keys = &source.state.as_ref().unwrap().setup.keys;
    assert_eq!(keys.public("key").unwrap().len(), 1);
    assert_eq!(
        keys.get("secret").map(<[_]>::len),
        Some(0),
        "known, but empty"
    );
}

#[test]
fn a_public_key_that_is_none_is_told_by_reason_and_never_shown() {
    let cases = [
        ("whpk_c2hvcnQ=", "its 5 bytes are no public key"),
        (
            "whpk_not base64",
            "it is not base64, which its form demands",
        ),
        (
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==",
            "it is a key of ECDSA P-256; the plugin verifies with Ed25519",
        ),
    ];
    for (value, reason) in cases {
        let world = either("secrets.key = [\"env:PUBLIC\"]").variable("PUBLIC", value);
        let report = world.report();
        assert!(
            report.contains(&format!("env:PUBLIC cannot be a key: {reason}")),
            "{report}"
        );
        assert!(!report.contains(value), "{report}");
    }
}

#[test]
fn a_plugin_directory_that_is_missing_is_told_with_where_paths_start() {
    let loaded = github("[plugins]\ndirectory = \"no-such-directory\"")
        .load()
        .unwrap();
    let sandbox = Sandbox::new(Limits {
        concurrent_calls: 1,
        ..Limits::default()
    })
    .unwrap();
    let (registry, problems) = loaded.plugins(&sandbox);
    assert_eq!(registry.names().count(), 0);
    insta::assert_snapshot!(problems);
}

#[test]
fn a_file_that_is_no_plugin_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("junk.wasm"), "junk").unwrap();
    let at = directory.path().display();
    let loaded = github(&format!("[plugins]\ndirectory = \"{at}\""))
        .load()
        .unwrap();
    let sandbox = Sandbox::new(Limits {
        concurrent_calls: 1,
        ..Limits::default()
    })
    .unwrap();
    let (_, problems) = loaded.plugins(&sandbox);
    assert!(!problems.has_errors());
    assert!(
        problems.to_string().contains("junk.wasm is refused"),
        "{problems}"
    );
}

#[test]
fn a_secret_in_the_wrong_place_is_never_repeated() {
    for lines in [
        "secrets.secret = [\"KEY\"]",
        "secrets.secret = [\"file\", \"KEY\"]",
        "secrets.secret = \"KEY\"",
        "secrets = \"KEY\"",
        "secrets = \"KEY, expected a map\"",
        "secrets = [\"KEY\"]",
        "secrets.secret = { value = \"KEY\" }",
        "key_forms.secret = \"KEY\"",
        "ordering = \"KEY\"",
        "allow_weak_key = \"KEY\"",
        "secrets.secret = KEY",
    ] {
        let text =
            format!("[tenants.a.sources.s]\nplugin = \"github\"\n{lines}\n").replace("KEY", KEY);
        let problems = World::of(&text).load().unwrap_err();
        let shown = format!("{problems} {problems:?}");
        assert!(!shown.contains("horse"), "{shown}");
    }
}

#[test]
fn secrets_that_are_read_show_nowhere() {
    let world = github("key_forms.secret = \"hex\"");
    let loaded = world.load().unwrap();
    let (tenants, problems) = loaded.tenants(&Catalogue, &world, &Telemetry::default(), None);
    let reason = &tenants
        .find("acme", "gh")
        .unwrap()
        .state
        .as_ref()
        .err()
        .unwrap()
        .reason;
    let shown = format!("{loaded:?} {problems} {problems:?} {reason}");
    assert!(
        reason.contains("not hexadecimal") && !shown.contains("horse"),
        "{shown}"
    );
}

#[test]
fn a_source_with_an_error_is_unavailable_and_stops_no_other() {
    let world = World::of(
        "[tenants.acme.sources.bad]\nplugin = \"github\"\nsecrets.secret = [\"env:ABSENT\"]\n\
         [tenants.acme.sources.good]\nplugin = \"github\"\nsecrets.secret = [\"env:GOOD\"]\n\
         [tenants.acme.sources.unknown]\nplugin = \"nobody\"\n",
    );
    let tenants = world.tenants();
    let reason = |source: &str| {
        tenants
            .find("acme", source)
            .unwrap()
            .state
            .as_ref()
            .err()
            .cloned()
    };
    assert_eq!(
        reason("bad").unwrap().reason,
        "tenants.acme.sources.bad.secrets.secret: the environment variable ABSENT is not set"
    );
    assert_eq!(reason("good"), None);
    assert_eq!(
        reason("unknown").unwrap().reason,
        "tenants.acme.sources.unknown.plugin: there is no plugin `nobody`"
    );
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let loaded = World::of("").load().unwrap();
    let settings = loaded.settings;
    assert_eq!(settings.listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(settings.admin_listen, "127.0.0.1:8081".parse().unwrap());
    assert_eq!(settings.http.max_body, 1 << 20);
    assert_eq!(settings.drain_delay, Duration::from_secs(10));
    assert_eq!(settings.plugin_directory, Path::new("plugins"));
    assert_eq!(
        settings.backend,
        BackendSettings {
            store: StoreSettings::Embedded {
                path: "data".into()
            },
            queue: QueueSettings::Store,
        }
    );
    assert_eq!(settings.timing.window, Duration::from_mins(5));
    assert_eq!(settings.max_message, 1 << 20);
    assert_eq!(
        loaded.problems.iter().count(),
        1,
        "that there are no sources: {}",
        loaded.problems
    );
}

#[test]
fn paths_start_at_the_files_directory() {
    let text = "[plugins]\ncache = \"c\"\ndirectory = \"/opt/plugins\"\n[store]\npath = \"d\"\n\
                [tenants.a.sources.s]\nplugin = \"github\"\nsecrets.secret = [\"file:key\"]\n";
    let world = World::default()
        .file("/etc/hookgate/hookgate.toml", text)
        .file("/etc/hookgate/key", &format!("{KEY}\n"));
    let loaded = load(Path::new("/etc/hookgate/hookgate.toml"), &world).unwrap();
    assert_eq!(loaded.settings.plugin_directory, Path::new("/opt/plugins"));
    assert_eq!(
        loaded.settings.plugin.cache.as_deref(),
        Some(Path::new("/etc/hookgate/c"))
    );
    let embedded = StoreSettings::Embedded {
        path: "/etc/hookgate/d".into(),
    };
    assert_eq!(loaded.settings.backend.store, embedded);
    let (tenants, problems) = loaded.tenants(&Catalogue, &world, &Telemetry::default(), None);
    assert!(tenants.find("a", "s").unwrap().state.is_ok(), "{problems}");
}

#[test]
fn one_newline_at_a_secret_files_end_is_dropped() {
    // 33 digits would not be hexadecimal, nor would a second newline.
    let source = |file: &str| {
        format!(
            "[tenants.a.sources.{file}]\nplugin = \"github\"\nkey_forms.secret = \"hex\"\n\
             secrets.secret = [\"file:{file}\"]\n"
        )
    };
    let digits = "00112233445566778899aabbccddeeff";
    let tenants = World::of(&["none", "one", "crlf", "two"].map(source).concat())
        .file("none", digits)
        .file("one", &format!("{digits}\n"))
        .file("crlf", &format!("{digits}\r\n"))
        .file("two", &format!("{digits}\n\n"))
        .tenants();
    let works = |source: &str| tenants.find("a", source).unwrap().state.is_ok();
    assert_eq!(
        ["none", "one", "crlf", "two"].map(works),
        [true, true, true, false]
    );
}

#[test]
fn every_active_value_of_a_secret_becomes_a_key() {
    let world = github("secrets.other = []").file("old", KEY);
    assert!(
        world.load().is_err(),
        "a secret without values is a mistake"
    );
    let world = World::of(
        "[tenants.a.sources.s]\nplugin = \"github\"\nsecrets.secret = [\"env:GOOD\", \"file:old\"]\n",
    )
    .file("old", KEY);
    let tenants = world.tenants();
    let ready = tenants.find("a", "s").unwrap().state.as_ref().ok().unwrap();
    assert_eq!(ready.setup.keys.get("secret").unwrap().len(), 2);
    assert_eq!(
        ready.signature_header.as_deref(),
        Some("X-Hub-Signature-256")
    );
    assert_eq!(ready.setup.label, "/a/s");
}

#[test]
fn options_reach_the_plugin_as_text_or_json() {
    let world = World::of(
        "[tenants.a.sources.s]\nplugin = \"hmac\"\nsecrets.secret = [\"env:GOOD\"]\n[tenants.a.sources.s.options]\n\
         header = \"X-Sig\"\nlimit = 3\nlist = [\"a\", true]\nday = 2024-02-29\n",
    );
    let tenants = world.tenants();
    let ready = tenants.find("a", "s").unwrap().state.as_ref().ok().unwrap();
    let options = &ready.setup.options;
    let option = |name: &str| options[name].as_str();
    assert_eq!(
        ["header", "limit", "list", "day"].map(option),
        ["X-Sig", "3", "[\"a\",true]", "\"2024-02-29\""]
    );
    assert_eq!(ready.signature_header.as_deref(), Some("X-Sig"));
}

#[test]
fn what_the_source_says_goes_before_what_the_plugin_says() {
    let tenants = github(
        "in_flight = \"wait\"\nno_event_id = \"hash\"\nsame_id_other_body = \"duplicate\"\n\
         claim_ttl = \"20days\"\nordering = \"source\"\nmax_future = \"1s\"",
    )
    .tenants();
    let policy = &tenants.find("acme", "gh").unwrap().policy;
    assert_eq!(policy.in_flight, InFlightPolicy::Wait);
    assert_eq!(policy.no_event_id, NoEventId::Hash);
    assert_eq!(policy.same_id_other_body, SameIdOtherBody::Duplicate);
    assert_eq!(policy.claim_ttl, Duration::from_hours(20 * 24));
    assert_eq!(policy.ordering, Ordering::Source);
    assert_eq!(policy.max_future, Duration::from_secs(1));
}

#[test]
fn the_stores_claim_ttl_holds_where_a_source_has_none() {
    let text = "[store]\nclaim_ttl = \"2days\"\n\
                [tenants.a.sources.store]\nplugin = \"github\"\n\
                [tenants.a.sources.auto]\nplugin = \"github\"\nclaim_ttl = \"auto\"\n";
    let tenants = World::of(text).tenants();
    let days = |source: &str| {
        tenants
            .find("a", source)
            .unwrap()
            .policy
            .claim_ttl
            .as_secs()
            / 86_400
    };
    // `auto` is the provider's part alone: the queue's is added when it is known.
    assert_eq!(["store", "auto"].map(days), [2, 1]);
}

/// In the place of a word that is one of a few, with the marks around such words in the deserializer's messages.
#[test]
fn a_secret_in_the_wrong_place_is_not_told_whatever_marks_it_holds() {
    for secret in [
        "a`hush`b`hush`",
        "`, expected one of `hush`",
        "hush`",
        "`hush",
    ] {
        for key in ["ordering", "key_forms.secret", "in_flight"] {
            let report = github(&format!("{key} = \"{secret}\"")).report();
            assert!(report.contains("error"), "{key} = {secret}: {report}");
            assert!(!report.contains("hush"), "{key} = {secret}: {report}");
        }
    }
}

#[test]
fn durations_beyond_all_time_are_refused() {
    let huge = format!("\"{}s\"", u64::MAX);
    let world = github(&format!(
        "max_age = {huge}\nclaim_ttl = {huge}\ncontent_ttl = {huge}\n[queue]\nwindow = {huge}\n\
         [store]\nclaim_ttl = {huge}\n[server]\nheader_timeout = {huge}\nbody_timeout = {huge}"
    ));
    let report = world.report();
    assert!(report.ends_with("7 problems in hookgate.toml"), "{report}");
    let longest = github("max_age = \"1000years\"\nclaim_ttl = \"1000years\"");
    assert!(longest.load().is_ok(), "{}", longest.report());
}

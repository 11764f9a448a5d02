//! What the tests' gateways live in: a directory with a configuration, and plugins that are compiled once.

use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate_tests::gateway;
use hookgate_tests::provider::Signed;
use hookgate_tests::sign;
use tempfile::TempDir;

/// Generous: only a gateway that never gets there meets it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often what is waited for is looked at.
const POLL: Duration = Duration::from_millis(5);

/// A directory of the tests' own.
pub fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

/// The built plugin of that name.
pub fn plugin(name: &str) -> PathBuf {
    let file = gateway::plugins().join(name).with_extension("wasm");
    file.canonicalize()
        .unwrap_or_else(|_| panic!("{} is missing: `make plugins`", file.display()))
}

/// Listeners on free ports, no drain delay, and plugins that are compiled by the first start alone.
pub fn head() -> String {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-plugins");
    let cache = cache.display();
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_delay = \"0s\"\n\n[admin]\nlisten = \"127.0.0.1:0\"\n\n\
         [plugins]\ndirectory = \"plugins\"\ncache = \"{cache}\"\n"
    )
}

/// A source that signs as the plugin `hmac` is told to, with its secret in the environment.
pub fn orders(tenant: &str, name: &str, variable: &str) -> String {
    format!(
        "\n[tenants.{tenant}.sources.{name}]\nplugin = \"hmac\"\nsecrets.secret = [\"env:{variable}\"]\n\
         options.header = \"X-Orders-Signature\"\noptions.id = \"json:/id\"\n\
         options.ordering_key = \"json:/customer\"\n"
    )
}

/// A source of GitHub's, with its secret in the environment.
pub fn github(tenant: &str, variable: &str) -> String {
    format!(
        "\n[tenants.{tenant}.sources.github]\nplugin = \"github\"\nsecrets.secret = [\"env:{variable}\"]\n"
    )
}

/// An order's delivery.
pub fn order(source: &str, secret: &str, id: &str, customer: &str, note: &str) -> Signed {
    let body = format!(r#"{{"id":"{id}","customer":"{customer}","note":"{note}"}}"#);
    let signature = sign::hmac_sha256_hex(secret, &[body.as_bytes()]);
    Signed::post(source, &[("X-Orders-Signature", &signature)], body)
}

/// Writes `hookgate.toml`, and puts the plugins beside it that the tests' sources use.
pub fn configure(directory: &Path, config: &str) -> io::Result<()> {
    let plugins = directory.join("plugins");
    std::fs::create_dir(&plugins)?;
    for name in ["github", "hmac"] {
        symlink(plugin(name), plugins.join(name).with_extension("wasm"))?;
    }
    std::fs::write(directory.join("hookgate.toml"), config)
}

/// For whoever adds up the runs of several tests: how many deliveries, and how many were lost and doubled.
pub fn tell_tally([deliveries, lost, doubled]: [usize; 3]) {
    let Some(file) = std::env::var_os("CHAOS_TALLY") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(file);
    let told = writeln!(
        file.expect("the tally can be opened"),
        "{deliveries} {lost} {doubled}"
    );
    told.expect("the tally can be written");
}

/// Waits until something holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(POLL).await;
        }
    };
    let came = tokio::time::timeout(DEADLINE, wait).await;
    assert!(
        came.is_ok(),
        "this did not come about in {DEADLINE:?}: {what}"
    );
}

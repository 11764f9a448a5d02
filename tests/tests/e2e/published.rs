//! Published signatures over HTTP through the real binary, and fresh ones with the real clock.

use std::path::Path;

use hookgate_tests::gateway::{self, Gateway};
use hookgate_tests::provider::Connection;
use hookgate_tests::published::{self, Published};

use crate::world;

/// A path as TOML text.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

/// A gateway with one source for each published signature of every plugin.
async fn gateway(directory: &Path) -> (Gateway, Vec<Published>) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut all = Vec::new();
    for plugin in published::plugins(&sources).expect("the plugins' directories") {
        let vectors = published::load(&sources, &plugin, &directory.join("secrets"));
        all.extend(vectors.expect("the plugin's vectors"));
    }
    let config: String = all
        .iter()
        .map(|published| published.config.clone() + "\n")
        .collect();
    let plugins = gateway::plugins()
        .canonicalize()
        .expect("the built plugins");
    let head = world::head().replace("\"plugins\"", &quoted(&plugins));
    std::fs::write(directory.join("hookgate.toml"), head + &config).expect("a configuration");
    let gateway = Gateway::start(directory, &[]).await;
    (
        gateway.unwrap_or_else(|error| panic!("no start: {error}")),
        all,
    )
}

#[tokio::test]
async fn published_signatures_are_answered_over_http_as_published() {
    let directory = world::directory();
    let (gateway, all) = gateway(directory.path()).await;
    assert!(all.len() >= 62, "{} signatures", all.len());
    let mut connection = Connection::to(gateway.ingress);
    let (mut accepted, mut wrong) = (0, Vec::new());
    for (n, published) in all.iter().enumerate() {
        let answer = connection
            .deliver(&published.delivery)
            .await
            .expect("an answer");
        let good = match published.valid {
            true if published.too_large => answer.status == 413,
            true => answer.is_promise(),
            false => [400, 401, 405, 415].contains(&answer.status),
        };
        if !good {
            let (title, valid) = (&published.title, published.valid);
            wrong.push(format!("{n} {title} {valid}: {answer:?}"));
        }
        accepted += usize::from(published.is_event && answer.is_promise() && !answer.duplicate);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(gateway.events().await.expect("the queue").len(), accepted);
}

/// The configuration on the README's first pages is one that works.
#[tokio::test]
async fn the_configurations_in_the_readme_are_free_of_problems() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
    let readme = readme.expect("the README");
    let blocks: Vec<_> = readme.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 2, "{} blocks", blocks.len());
    for block in blocks {
        let config = block.split("```").next().unwrap_or_default();
        let plugins = gateway::plugins()
            .canonicalize()
            .expect("the built plugins");
        let plugins = quoted(&plugins);
        let head = format!("[plugins]\ndirectory = {plugins}\n");
        let config = match config.contains("[plugins]") {
            true => config.replace("\"target/plugins\"", &plugins),
            false => head + config,
        };
        let directory = world::directory();
        std::fs::write(directory.path().join("hookgate.toml"), &config).expect("a file");
        let names = config
            .split("env:")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        let environment = names.map(|name| (name, "at least sixteen bytes"));
        let checked = gateway::command(directory.path())
            .args(["check", "--offline"])
            .envs(environment)
            .output()
            .await
            .expect("the gateway runs");
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{config}\n{said}");
        assert!(said.starts_with("no problems"), "{config}\n{said}");
    }
}

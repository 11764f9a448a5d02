//! `hookgate send` against a running gateway: both are the real binary, on one configuration.

use std::os::unix::fs::symlink;
use std::path::Path;

use hookgate_tests::gateway::{self, Gateway};
use tempfile::TempDir;

use crate::world;

const SECRET: (&str, &str) = ("SEND_SECRET", "00112233445566778899aabbccddeeff");
const PUBLIC: (&str, &str) = (
    "SEND_PUBLIC",
    "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
);

const SOURCES: &str = r#"
[tenants.acme.sources.shopify]
plugin = "shopify"
secrets.secret = ["env:SEND_SECRET"]

[tenants.acme.sources.slack]
plugin = "slack"
secrets.secret = ["env:SEND_SECRET"]

[tenants.acme.sources.standard]
plugin = "standard-webhooks"
secrets.secret = ["env:SEND_SECRET"]

[tenants.acme.sources.asymmetric]
plugin = "standard-webhooks"
secrets.public_key = ["env:SEND_PUBLIC"]

[tenants.acme.sources.twilio]
plugin = "twilio"
public_url = "https://hooks.example/twilio"
secrets.secret = ["env:SEND_SECRET"]
"#;

/// A configuration of all of them, and their plugins.
fn configured() -> TempDir {
    let directory = world::directory();
    world::configure(directory.path(), &(world::head() + SOURCES)).expect("a configuration");
    for name in ["shopify", "slack", "standard-webhooks", "twilio"] {
        let link = directory.path().join("plugins").join(name);
        symlink(world::plugin(name), link.with_extension("wasm")).expect("a link");
    }
    directory
}

/// Whether it exited with 0, and what it said on both outputs.
async fn send(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = gateway::command(directory);
    command.arg("send").args(arguments).envs([SECRET, PUBLIC]);
    let output = command.output().await.expect("the command");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    assert!(!said.contains(SECRET.1), "{said}");
    (output.status.success(), said)
}

#[tokio::test]
async fn what_is_sent_is_accepted_and_stands_in_the_queue() {
    let directory = configured();
    let gateway = Gateway::start(directory.path(), &[SECRET, PUBLIC])
        .await
        .unwrap();
    let to = format!("http://{}", gateway.ingress);
    for source in ["shopify", "slack", "standard", "twilio"] {
        let path = format!("acme/{source}");
        let (good, said) = send(directory.path(), &[&path, "--to", &to]).await;
        assert!(good, "{source}: {said}");
        assert!(said.contains("hookgate-delivery: "), "{said}");
    }
    let twice = ["acme/shopify", "--to", &to, "--id", "one", "--count", "2"];
    let (good, said) = send(directory.path(), &twice).await;
    assert!(good && said.contains("202 Accepted\n"), "{said}");
    assert!(said.contains("hookgate-duplicate: true\n"), "{said}");
    assert_eq!(gateway.events().await.unwrap().len(), 5);
    gateway.terminate().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_with_a_reason() {
    let directory = configured();
    let nobody = ["acme/nobody"];
    let asymmetric = ["acme/asymmetric"];
    let by_public_key = [
        "acme/asymmetric",
        "--header",
        "webhook-signature: v1a,{signature:base64}",
    ];
    let no_address = ["acme/slack", "--to", "hooks.example"];
    let no_gateway = ["acme/slack", "--to", "http://127.0.0.1:1"];
    let cases: [(&[&str], &str); 5] = [
        (&nobody, "there is no source `acme/nobody`"),
        (
            &asymmetric,
            "the source has no value of the secret `secret`",
        ),
        (&by_public_key, "only the provider has the private key"),
        (&no_address, "write it as http://HOST:PORT"),
        (&no_gateway, "cannot reach the gateway at 127.0.0.1:1"),
    ];
    for (arguments, reason) in cases {
        let (good, said) = send(directory.path(), arguments).await;
        assert!(!good && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn a_gateway_that_listens_with_tls_is_not_spoken_to_in_the_clear() {
    let directory = configured();
    let file = directory.path().join("hookgate.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let tls = "[server]\ntls_certificate = \"c.pem\"\ntls_key = \"k.pem\"";
    std::fs::write(&file, config.replace("[server]", tls)).unwrap();
    let (good, said) = send(directory.path(), &["acme/slack"]).await;
    assert!(!good && said.contains("listens with TLS"), "{said}");
}

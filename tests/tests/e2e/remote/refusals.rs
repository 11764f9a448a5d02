//! What the live backends have against a configuration, as the real binary says it: whole outputs of `check`
//! and `serve`, without what differs between machines and runs. `INSTA_UPDATE=always cargo test` writes them
//! anew.

use std::fmt::Write as _;
use std::path::Path;

use hookgate_backends::proxy::{Fault, Plan};
use hookgate_backends::redis::Redis;
use hookgate_tests::provider::{Connection, Signed};
use insta::assert_snapshot;
use tempfile::TempDir;

use super::site::{Kind, Paths, Site};

/// A directory whose configuration says something else in place of this.
fn changed(site: &Site, paths: &Paths, from: &str, to: &str) -> TempDir {
    let directory = site.directory(paths, "");
    let file = directory.path().join("hookgate.toml");
    let config = std::fs::read_to_string(&file).expect("the configuration");
    assert!(config.contains(from), "{from} is not in {config}");
    std::fs::write(&file, config.replacen(from, to, 1)).expect("it is written");
    directory
}

/// `check` and `serve`, which refuse alike.
async fn refused(site: &Site, directory: &Path, paths: &Paths) -> String {
    let mut text = String::new();
    for command in ["check", "serve"] {
        let said = site.run(directory, &[command]).await;
        let (code, said) = said.split_once('\n').unwrap_or_default();
        assert_eq!(code, "Some(78)", "{said}");
        let _ = write!(text, "$ hookgate {command}\nexit code 78\n{said}");
    }
    let direct = site.direct();
    let names = [
        (&paths.aws, "http://AWS"),
        (&direct.aws, "http://AWS"),
        (&paths.redis, "redis://REDIS"),
    ];
    for (address, name) in names {
        text = text.replace(address.as_str(), name);
        let bare = |text: &str| {
            text.split_once("://")
                .map_or(String::new(), |(_, bare)| bare.to_owned())
        };
        text = text.replace(&bare(address), &bare(name));
    }
    text.replace(&site.account, "ACCOUNT")
}

/// Asks the stand-in as this account.
async fn ask(site: &Site, target: &str, body: &str) {
    let credential = format!(
        "{}/20260101/eu-central-1/dynamodb/aws4_request",
        site.account
    );
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=00");
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", target),
    ];
    let mut request = Signed::post("", &headers, body.to_owned());
    request.target = "/".into();
    let answer = Connection::to(site.aws()).deliver(&request).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}

#[tokio::test]
async fn a_standard_queue_is_refused() {
    let site = Site::new(Kind::DynamoDb).await;
    site.make_queue("events").await;
    let paths = site.direct();
    let directory = changed(&site, &paths, "/events.fifo\"", "/events\"");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_refused() {
    let site = Site::new(Kind::DynamoDb).await;
    let paths = site.direct();
    let directory = changed(&site, &paths, "/events.fifo\"", "/evnets.fifo\"");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

#[tokio::test]
async fn a_missing_table_is_refused() {
    let site = Site::new(Kind::DynamoDb).await;
    let paths = site.direct();
    let directory = changed(&site, &paths, "\"claims\"", "\"clams\"");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

#[tokio::test]
async fn a_table_with_another_key_is_refused() {
    let site = Site::new(Kind::DynamoDb).await;
    let table = r#"{"TableName":"other","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"at","AttributeType":"N"}]}"#;
    ask(&site, "DynamoDB_20120810.CreateTable", table).await;
    let paths = site.direct();
    let directory = changed(&site, &paths, "\"claims\"", "\"other\"");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

/// Refused where AWS answers these operations so.
async fn answered(operations: &[&str], status: u16, kind: &str) -> String {
    let site = Site::new(Kind::DynamoDb).await;
    let proxies = site.proxies().await;
    let plan = Plan::always(Fault::aws(status, kind));
    proxies
        .aws
        .set(operations.iter().fold(plan, |plan, on| plan.on(on)));
    let paths = proxies.paths();
    let directory = site.directory(&paths, "");
    refused(&site, directory.path(), &paths).await
}

#[tokio::test]
async fn a_missing_permission_on_the_table_is_refused_with_its_name() {
    assert_snapshot!(answered(&["UpdateItem", "DeleteItem"], 400, "AccessDeniedException").await);
}

#[tokio::test]
async fn a_missing_permission_on_the_queue_is_refused_with_its_name() {
    assert_snapshot!(answered(&["SendMessageBatch"], 403, "AccessDenied").await);
}

#[tokio::test]
async fn expired_credentials_are_refused() {
    assert_snapshot!(answered(&[], 400, "ExpiredTokenException").await);
}

#[tokio::test]
async fn another_region_is_refused() {
    let site = Site::new(Kind::DynamoDb).await;
    let paths = site.direct();
    let directory = changed(&site, &paths, "eu-central-1", "us-east-1");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

#[tokio::test]
async fn a_redis_server_that_may_evict_claims_is_refused() {
    let site = Site::new(Kind::Redis).await;
    let evicting = Redis::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let evicting = evicting.unwrap_or_else(|error| panic!("{error}"));
    let mut paths = site.direct();
    paths.redis = evicting.url();
    let directory = site.directory(&paths, "");
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

#[tokio::test]
async fn a_claim_ttl_that_does_not_outlive_the_queue_is_refused_with_the_numbers() {
    let site = Site::new(Kind::DynamoDb).await;
    let paths = site.direct();
    let directory = changed(
        &site,
        &paths,
        "[store]\n",
        "[store]\nclaim_ttl = \"7days\"\n",
    );
    assert_snapshot!(refused(&site, directory.path(), &paths).await);
}

//! Backends that are there and are not what the gateway needs. `check` and `serve` refuse them alike; `serve`
//! waits only for what may come by itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use hookgate::http::client;
use hookgate_backends::aws::Aws;
use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};
use hookgate_backends::redis::Redis;
use http::{HeaderMap, HeaderValue, Method};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{ENVIRONMENT, configured, said, serving, stopped};
use crate::world;
use hookgate_tests::gateway;

/// The stand-in that tests share, each with names of its own.
fn stand_in() -> SocketAddr {
    static AWS: OnceLock<Aws> = OnceLock::new();
    let aws = AWS.get_or_init(|| Aws::start().unwrap_or_else(|error| panic!("{error}")));
    SocketAddr::from((Ipv4Addr::LOCALHOST, aws.port()))
}

/// A call of the stand-in's API.
async fn call(target: &str, body: Value) -> Value {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-amz-target", target),
        ("content-type", "application/x-amz-json-1.0"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=123456789012/20260101/eu-central-1/sqs/aws4_request, \
             SignedHeaders=host, Signature=00",
        ),
    ] {
        headers.insert(name, HeaderValue::from_str(value).expect("a header"));
    }
    let body = body.to_string().into();
    let reply = client::deliver(stand_in(), &Method::POST, "/", &headers, body).await;
    let reply = reply.expect("the stand-in answers");
    assert!(reply.status.is_success(), "{target}: {reply:?}");
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

async fn table(name: &str, key: &str) {
    let body = json!({
        "TableName": name,
        "KeySchema": [{ "AttributeName": key, "KeyType": "HASH" }],
        "AttributeDefinitions": [{ "AttributeName": key, "AttributeType": "S" }],
        "BillingMode": "PAY_PER_REQUEST",
    });
    call("DynamoDB_20120810.CreateTable", body).await;
    let ttl = json!({ "AttributeName": "expires_at", "Enabled": true });
    let body = json!({ "TableName": name, "TimeToLiveSpecification": ttl });
    call("DynamoDB_20120810.UpdateTimeToLive", body).await;
}

/// A FIFO queue whose messages stay for so many days, and in the dead-letter queue for so many more.
async fn queue(name: &str, days: u64, dead_days: u64) {
    let seconds = |days: u64| (days * 86_400).to_string();
    let body = json!({
        "QueueName": format!("{name}-dead.fifo"),
        "Attributes": { "FifoQueue": "true", "MessageRetentionPeriod": seconds(dead_days) },
    });
    let dead = call("AmazonSQS.CreateQueue", body).await;
    let body = json!({ "QueueUrl": dead["QueueUrl"], "AttributeNames": ["All"] });
    let attributes = call("AmazonSQS.GetQueueAttributes", body).await;
    let arn = &attributes["Attributes"]["QueueArn"];
    let policy = json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 3 });
    let body = json!({
        "QueueName": format!("{name}.fifo"),
        "Attributes": {
            "FifoQueue": "true",
            "DeduplicationScope": "messageGroup",
            "FifoThroughputLimit": "perMessageGroupId",
            "MessageRetentionPeriod": seconds(days),
            "RedrivePolicy": policy.to_string(),
        },
    });
    call("AmazonSQS.CreateQueue", body).await;
}

/// Claims in that table and events to that queue, at this address.
fn config(at: SocketAddr, table: &str, queue: &str, more: &str) -> String {
    let source = world::orders("acme", "good", "SECRET");
    let head = world::head();
    format!(
        "{head}\n[store]\nkind = \"dynamodb\"\ndynamodb.table = \"{table}\"\n{more}\n[queue]\nkind = \"sqs\"\n\
         sqs.url = \"http://{at}/123456789012/{queue}.fifo\"\n\n[aws]\nregion = \"eu-central-1\"\n\
         endpoint = \"http://{at}\"\n{source}"
    )
}

/// What `check` and `serve` say of it, without the port.
async fn refused(config: &str, at: SocketAddr) -> String {
    let directory = configured(config);
    let check = said(directory.path(), &["check"]).await;
    let serve = said(directory.path(), &["serve"]).await;
    (check + &serve).replace(&at.to_string(), "AT")
}

/// The stand-in behind a proxy that answers such calls with this error.
async fn denying(operations: &[&str], code: &str) -> FaultProxy {
    let plan = Plan::always(Fault::aws(400, code));
    let plan = operations
        .iter()
        .fold(plan, |plan, operation| plan.on(operation));
    let proxy = FaultProxy::start(stand_in(), Protocol::Http, plan).await;
    proxy.expect("a proxy")
}

#[tokio::test]
async fn a_table_and_a_queue_that_are_not_there_are_refused() {
    let at = stand_in();
    assert_snapshot!(refused(&config(at, "nowhere", "nowhere", ""), at).await);
}

#[tokio::test]
async fn a_table_with_another_key_is_refused() {
    let at = stand_in();
    table("by-id", "id").await;
    queue("by-id", 4, 14).await;
    assert_snapshot!(refused(&config(at, "by-id", "by-id", ""), at).await);
}

#[tokio::test]
async fn a_standard_queue_is_refused() {
    let at = stand_in();
    let config = config(at, "claims", "events", "").replace("events.fifo", "events");
    assert_snapshot!(refused(&config, at).await);
}

#[tokio::test]
async fn another_region_than_the_queues_is_refused() {
    let at = stand_in();
    let url = format!("http://{at}/");
    let config = config(at, "claims", "events", "");
    let config = config.replacen(&url, "https://sqs.us-east-1.amazonaws.com/", 1);
    assert_snapshot!(refused(&config, at).await);
}

#[tokio::test]
async fn missing_permissions_are_refused_by_name() {
    table("denied", "pk").await;
    queue("denied", 4, 14).await;
    let proxy = denying(
        &["PutItem", "DeleteItem", "SendMessageBatch"],
        "AccessDeniedException",
    )
    .await;
    let at = proxy.address();
    assert_snapshot!(refused(&config(at, "denied", "denied", ""), at).await);
}

#[tokio::test]
async fn expired_credentials_are_refused() {
    let proxy = denying(
        &["DescribeTable", "GetQueueAttributes"],
        "ExpiredTokenException",
    )
    .await;
    let at = proxy.address();
    assert_snapshot!(refused(&config(at, "claims", "events", ""), at).await);
}

#[tokio::test]
async fn no_credentials_at_all_are_told_with_where_they_come_from() {
    let at = stand_in();
    let directory = configured(&config(at, "claims", "events", ""));
    let mut command = gateway::command(directory.path());
    command.arg("check").env("HOME", directory.path());
    command
        .env("AWS_ACCESS_KEY_ID", "")
        .env("AWS_SECRET_ACCESS_KEY", "");
    command
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("SECRET", ENVIRONMENT[0].1);
    let output = command.output().await.expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(78), "{text}");
    assert!(text.contains("give the gateway credentials"), "{text}");
}

#[tokio::test]
async fn a_ttl_that_the_queues_messages_outlive_is_refused_with_the_numbers() {
    let at = stand_in();
    table("brief", "pk").await;
    queue("brief", 4, 14).await;
    let config = config(at, "brief", "brief", "claim_ttl = \"7days\"\n");
    assert_snapshot!(refused(&config, at).await);
}

#[tokio::test]
async fn a_redis_that_may_evict_claims_is_refused_unless_that_is_allowed() {
    let redis = Redis::start(&["--maxmemory-policy", "allkeys-lru"]);
    let redis = redis.unwrap_or_else(|error| panic!("{error}"));
    let url = redis.url();
    let config = |more: &str| {
        let head = world::head() + &world::orders("acme", "good", "SECRET");
        format!(
            "{head}\n[store]\nkind = \"redis\"\nredis.nodes = [\"{url}\"]\n{more}\n[queue]\nkind = \"memory\"\n"
        )
    };
    let at = url.strip_prefix("redis://").unwrap_or(&url).to_owned();
    let directory = configured(&config(""));
    let mut text = said(directory.path(), &["check"]).await;
    text += &said(directory.path(), &["serve"]).await;
    let allowed = configured(&config("redis.allow_eviction = true\n"));
    text += &said(allowed.path(), &["check"]).await;
    assert_snapshot!(text.replace(&at, "AT"));
}

#[tokio::test]
async fn backends_out_of_reach_are_waited_for() {
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let directory = configured(&config(nobody, "claims", "events", ""));
    let directory = directory.path();
    let gateway = serving(directory).await;
    let (status, ready) = client::get(gateway.admin, "/readyz")
        .await
        .expect("an answer");
    let ready: Value = serde_json::from_slice(&ready).expect("JSON");
    assert_eq!((status.as_u16(), &ready["ready"]), (503, &json!(false)));
    let troubles = ready["troubles"].as_array().expect("troubles");
    assert_eq!(troubles.len(), 2, "{ready}");
    let log = stopped(gateway, directory).await;
    assert!(log.contains("Connection refused"), "{log}");
    // `check` is asked about now.
    let check = said(directory, &["check"]).await;
    assert!(check.contains("exit code 78"), "{check}");
}

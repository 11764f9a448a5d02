//! What the table has to be, and what each failure of a call is taken for.

use std::net::SocketAddr;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use hookgate::backend::Finding;
use hookgate::store::dynamodb::DynamoStore;
use hookgate::store::{ClaimStore as _, Claimed, Release, Settlement, StoreError};
use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};

use super::bench::{Dynamo, dynamodb, shared, store};
use crate::contract::{StoreBench as _, Time as _, accepted, fresh, request};

pub fn told(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings
        .iter()
        .map(|found| format!("{:?}: {found}", found.gravity))
        .collect();
    lines.join("\n")
}

/// A store behind a proxy that breaks this.
struct Broken {
    dynamo: Dynamo,
    proxy: FaultProxy,
    store: DynamoStore,
}

async fn broken(plan: Plan) -> Broken {
    let dynamo = dynamodb().await;
    let at: SocketAddr = dynamo
        .endpoint
        .strip_prefix("http://")
        .unwrap()
        .parse()
        .unwrap();
    let proxy = FaultProxy::start(at, Protocol::Http, plan).await.unwrap();
    let store = store(&format!("http://{}", proxy.address()), "claims").await;
    Broken {
        dynamo,
        proxy,
        store,
    }
}

#[tokio::test]
async fn a_table_as_it_should_be_is_nothing_to_tell_of() {
    let dynamo = dynamodb().await;
    assert_eq!(told(&dynamo.store.check().await), "");
    dynamo
        .store
        .create_table()
        .await
        .expect("it is there already");
}

#[tokio::test]
async fn a_missing_table_is_told_with_its_region() {
    let dynamo = Dynamo::empty().await;
    insta::assert_snapshot!(told(&dynamo.store.check().await));
}

#[tokio::test]
async fn a_table_with_another_key_or_without_deletion_is_told() {
    let dynamo = Dynamo::empty().await;
    let client = aws_sdk_dynamodb::Client::new(&shared(&dynamo.endpoint, "test").await);
    for (table, key, kind) in [
        ("by-id", "id", ScalarAttributeType::S),
        ("by-number", "pk", ScalarAttributeType::N),
        ("for-ever", "pk", ScalarAttributeType::S),
    ] {
        let schema = KeySchemaElement::builder()
            .attribute_name(key)
            .key_type(KeyType::Hash);
        let attribute = AttributeDefinition::builder()
            .attribute_name(key)
            .attribute_type(kind);
        let create = client
            .create_table()
            .table_name(table)
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(schema.build().unwrap())
            .attribute_definitions(attribute.build().unwrap());
        create.send().await.unwrap();
    }
    let found =
        |table: &'static str| async { told(&store(&dynamo.endpoint, table).await.check().await) };
    let all = [
        found("by-id").await,
        found("by-number").await,
        found("for-ever").await,
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[tokio::test]
async fn what_the_credentials_may_not_do_is_told_by_action() {
    let denied = Fault::aws(400, "AccessDeniedException");
    for operation in [
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "GetItem",
        "DescribeTable",
    ] {
        let broken = broken(Plan::always(denied.clone()).on(operation)).await;
        insta::assert_snapshot!(operation, told(&broken.store.check().await));
    }
    let expired = Fault::aws(400, "ExpiredTokenException");
    let broken = broken(Plan::always(expired)).await;
    insta::assert_snapshot!("expired", told(&broken.store.check().await));
}

#[tokio::test]
async fn an_endpoint_out_of_reach_may_pass() {
    let store = store("http://127.0.0.1:1", "claims").await;
    let findings = store.check().await;
    assert!(findings.iter().all(|found| found.passes), "{findings:?}");
    insta::assert_snapshot!(told(&findings));
    let refused = store.claim(&request("t.s.e")).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "nothing was sent: {refused:?}"
    );
}

#[tokio::test]
async fn throttles_are_busy_and_nothing_has_changed() {
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
    ] {
        let broken = broken(Plan::script([Fault::aws(400, code)])).await;
        let request = request(&fresh("throttled"));
        let busy = broken.store.claim(&request).await;
        assert!(
            matches!(&busy, Err(StoreError::Busy(why)) if why.contains(code)),
            "{busy:?}"
        );
        assert_eq!(broken.dynamo.look(&request.key).await, None);
        assert!(matches!(
            broken.store.claim(&request).await,
            Ok(Claimed::Owner(_))
        ));
    }
}

#[tokio::test]
async fn refusals_are_definite_and_server_errors_are_not() {
    let broken = broken(Plan::healthy()).await;
    for (status, code, definite) in [
        (400, "AccessDeniedException", true),
        (400, "ValidationException", true),
        (400, "ResourceNotFoundException", true),
        (500, "InternalServerError", false),
        (503, "ServiceUnavailable", false),
    ] {
        broken.proxy.set(Plan::always(Fault::aws(status, code)));
        let claimed = broken.store.claim(&request(&fresh("refused"))).await;
        let is_definite = matches!(claimed, Err(StoreError::Refused(_)));
        assert_eq!(is_definite, definite, "{claimed:?}");
    }
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_ambiguous_and_owns_when_it_is_sent_again() {
    for (fault, applied) in [(Fault::CutAfter, true), (Fault::CutBefore, false)] {
        let broken = broken(Plan::script([fault])).await;
        let mine = request(&fresh("lost"));
        let lost = broken.store.claim(&mine).await;
        assert!(matches!(lost, Err(StoreError::Ambiguous(_))), "{lost:?}");
        assert_eq!(broken.dynamo.look(&mine.key).await.is_some(), applied);
        assert_eq!(
            broken.proxy.requests(),
            1,
            "the client never sends again by itself"
        );
        let Ok(Claimed::Owner(grant)) = broken.store.claim(&mine).await else {
            panic!("not mine")
        };
        assert_eq!(
            grant.taken_over, applied,
            "it may have met its own takeover"
        );
        let other = broken.store.claim(&request(&mine.key)).await;
        assert!(matches!(other, Ok(Claimed::InFlight { owner, .. }) if owner == mine.token));
    }
}

#[tokio::test]
async fn new_duplicate_and_in_flight_take_one_trip_and_a_takeover_two() {
    let broken = broken(Plan::healthy()).await;
    let mut trips = 0;
    let mut took = || {
        let before = std::mem::replace(&mut trips, broken.proxy.requests());
        broken.proxy.requests() - before
    };
    let mine = request(&fresh("trips"));
    broken.store.claim(&mine).await.unwrap();
    assert_eq!(took(), 1, "new");
    let mut other = request(&mine.key);
    broken.store.claim(&other).await.unwrap();
    assert_eq!(took(), 1, "in flight");
    other.take_over = Some(mine.token);
    broken.store.claim(&other).await.unwrap();
    assert_eq!(took(), 2, "a takeover");
    let claim = accepted(broken.dynamo.now(), other.token, 0, "first");
    let key = mine.key.clone();
    broken
        .store
        .settle(&Settlement { key, claim })
        .await
        .unwrap();
    assert_eq!(took(), 1, "settling");
    broken.store.claim(&mine).await.unwrap();
    assert_eq!(took(), 1, "a duplicate");
    broken
        .store
        .release(&mine.key, mine.token, Release::Delete)
        .await
        .unwrap();
    assert_eq!(took(), 1, "releasing");
    broken.store.look(&mine.key).await.unwrap();
    assert_eq!(took(), 1, "a look");
}

#[tokio::test]
async fn what_is_not_a_claim_is_an_outage_and_never_absent() {
    let dynamo = dynamodb().await;
    let client = aws_sdk_dynamodb::Client::new(&shared(&dynamo.endpoint, "test").await);
    let key = fresh("strange");
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.into());
    let number = aws_sdk_dynamodb::types::AttributeValue::N("99999999999".into());
    let put = client
        .put_item()
        .table_name("claims")
        .item("pk", text(&key));
    put.item("state", text("odd"))
        .item("expires_at", number)
        .send()
        .await
        .unwrap();
    for error in [
        dynamo.store.look(&key).await.map(|_| ()),
        dynamo.store.claim(&request(&key)).await.map(|_| ()),
    ] {
        let Err(StoreError::Refused(why)) = error else {
            panic!("{error:?}")
        };
        assert_eq!(why, format!("the item {key} is not a claim"));
    }
}

/// 4 KiB of answer and the longest names: DynamoDB takes items of up to 400 KiB.
#[tokio::test]
async fn the_largest_claim_is_far_below_the_largest_item() {
    let dynamo = dynamodb().await;
    let mine = request(&"k".repeat(128));
    dynamo.own(&mine).await;
    let mut claim = accepted(dynamo.now(), mine.token, 0, &"\u{1}".repeat(4096));
    claim.group = "g".repeat(128);
    dynamo.settle(&mine.key, &claim).await;
    let size = serde_json::to_vec(&claim).unwrap().len();
    assert!(size < 40 * 1024, "{size}");
    assert_eq!(dynamo.look(&mine.key).await, Some(claim));
}

//! What single providers' plugins make of deliveries: ids, types, order, answers.
//!
//! Whether signatures fit is the vectors' business; here every delivery is authentic, signed by the sample's
//! way, and what is looked at is the event that comes out.

use std::sync::Arc;

use hookgate::crypto::Key;
use hookgate::delivery::{Delivery, Event};
use hookgate::plugin::sample::{self, Draft};
use hookgate::plugin::{Plugin, Setup, WasmPlugin};
use proptest::prelude::*;
use std::sync::LazyLock;

use crate::plugins::{accepted, plugin, verdict};

const NOW_MS: u64 = 1_760_000_000_000;
const URL: &str = "https://hooks.example/x";

static STANDARD: LazyLock<WasmPlugin> = LazyLock::new(|| plugin("standard-webhooks"));

fn setup(plugin: &WasmPlugin) -> Arc<Setup> {
    let spec = &plugin.manifest().secrets[0];
    let mut keys = plugin.manifest().keyring();
    let key = Key::decode(spec.form, b"00112233445566778899aabbccddeeff", false);
    keys.add(&spec.name, key.unwrap());
    Arc::new(Setup {
        keys,
        public_url: Some(URL.into()),
        ..Setup::default()
    })
}

/// The plugin's sample with this body and these headers, signed.
fn delivery(plugin: &WasmPlugin, headers: &[(&str, &str)], body: &str) -> Delivery {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let draft = Draft {
        path: "/in/acme/x".into(),
        id: "the-id".into(),
        now_ms: NOW_MS,
        headers: headers.iter().map(own).collect(),
        body: Some(body.to_owned().into()),
    };
    let request = sample::sign(plugin, &setup(plugin), &draft).unwrap();
    Delivery {
        id: uuid::Uuid::nil(),
        received_at: NOW_MS,
        method: request.method,
        target: request.target,
        rest: String::new(),
        headers: request.headers,
        body: request.body,
    }
}

fn event(name: &str, headers: &[(&str, &str)], body: &str) -> Event {
    let plugin = plugin(name);
    let delivery = delivery(&plugin, headers, body);
    accepted(verdict(&plugin, delivery, &setup(&plugin)))
}

/// Type and ordering key.
fn shown(event: &Event) -> (Option<&str>, Option<&str>) {
    (event.event_type.as_deref(), event.ordering_key.as_deref())
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[test]
fn a_shopify_resource_keeps_its_order_from_creation_to_deletion() {
    let of = |topic: &str, body: &str| {
        let event = event("shopify", &[("x-shopify-topic", topic)], body);
        assert_eq!(event.id.as_deref(), Some("the-id"));
        assert_eq!(event.event_type.as_deref(), Some(topic));
        event.ordering_key
    };
    let whole = r#"{"id":788032119674292922,"admin_graphql_api_id":"gid://shopify/Product/7"}"#;
    let key = Some("products/788032119674292922".to_owned());
    assert_eq!(of("products/create", whole), key);
    assert_eq!(of("products/delete", r#"{"id":788032119674292922}"#), key);
    let level = r#"{"inventory_item_id":271878346596884015,"location_id":24826418}"#;
    let key = Some("inventory_levels/271878346596884015".to_owned());
    assert_eq!(of("inventory_levels/update", level), key);
    assert_eq!(of("shop/redact", r#"{"shop_id":1}"#), None);
}

#[test]
fn a_slack_event_is_ordered_by_its_channel_wherever_that_stands() {
    let of = |event_json: &str| {
        let body = format!(
            r#"{{"type":"event_callback","event_id":"Ev1","event_time":1760000000,"event":{event_json}}}"#
        );
        let event = event("slack", &[], &body);
        assert_eq!(event.id.as_deref(), Some("Ev1"));
        assert_eq!(event.occurred_at, Some(NOW_MS));
        assert!(event.response.is_none());
        let (kind, key) = shown(&event);
        format!("{} {}", kind.unwrap(), key.unwrap_or("-"))
    };
    assert_eq!(of(r#"{"type":"message","channel":"C1"}"#), "message C1");
    assert_eq!(
        of(r#"{"type":"channel_rename","channel":{"id":"C2","name":"n"}}"#),
        "channel_rename C2"
    );
    assert_eq!(
        of(r#"{"type":"reaction_added","user":"U1","item":{"channel":"C3"}}"#),
        "reaction_added C3"
    );
    assert_eq!(
        of(r#"{"type":"team_join","user":{"id":"U1"}}"#),
        "team_join U1"
    );
    assert_eq!(of(r#"{"type":"emoji_changed"}"#), "emoji_changed -");
}

#[test]
fn slack_forms_have_no_id_and_are_answered_with_nothing_to_show() {
    let payload = "payload=%7B%22type%22%3A%22block_actions%22%2C%22channel%22%3A%7B%22id%22%3A%22C1%22%7D%7D";
    let command = "command=%2Fdeploy&channel_id=C2&text=now&trigger_id=1.2.3";
    for (body, kind, channel) in [
        (payload, "block_actions", "C1"),
        (command, "slash_command", "C2"),
    ] {
        let event = event("slack", &[FORM], body);
        assert_eq!(shown(&event), (Some(kind), Some(channel)));
        assert_eq!((event.id.as_deref(), event.signed_at), (None, Some(NOW_MS)));
        let response = event.response.unwrap();
        assert_eq!((response.status, response.body.len()), (Some(200), 0));
    }
}

#[test]
fn a_twilio_event_is_named_and_ordered_by_what_it_is_about() {
    let of = |body: &str| {
        let event = event("twilio", &[FORM], body);
        assert_eq!(event.id.as_deref(), Some("the-id"));
        assert_eq!(&*event.response.as_ref().unwrap().body, b"<Response/>");
        let (kind, key) = shown(&event);
        format!("{} {}", kind.unwrap_or("-"), key.unwrap_or("-"))
    };
    assert_eq!(
        of("SmsSid=SM1&SmsStatus=sent&MessageStatus=sent&MessageSid=SM1"),
        "message.sent SM1"
    );
    assert_eq!(of("CallSid=CA1&CallStatus=completed"), "call.completed CA1");
    assert_eq!(
        of("CallSid=CA1&ConferenceSid=CF1&StatusCallbackEvent=participant-join"),
        "conference.participant-join CF1"
    );
    assert_eq!(of("Other=1"), "- -");
}

#[test]
fn twilios_url_may_be_signed_with_or_without_its_port() {
    let plugin = plugin("twilio");
    let signed_for = |url: &str| {
        let mut setup = Arc::into_inner(setup(&plugin)).unwrap();
        setup.public_url = Some(url.into());
        Arc::new(setup)
    };
    let delivery = |url: &str| {
        let draft = Draft {
            path: "/in/acme/x".into(),
            id: "the-id".into(),
            now_ms: NOW_MS,
            headers: Vec::new(),
            body: None,
        };
        let request = sample::sign(&plugin, &signed_for(url), &draft).unwrap();
        Delivery {
            id: uuid::Uuid::nil(),
            received_at: NOW_MS,
            method: request.method,
            target: request.target,
            rest: String::new(),
            headers: request.headers,
            body: request.body,
        }
    };
    let (with, without) = ("https://h.example:443/a", "https://h.example/a");
    for (signed, configured) in [(with, without), (without, with)] {
        accepted(verdict(&plugin, delivery(signed), &signed_for(configured)));
    }
    let other = verdict(&plugin, delivery("https://h.example/b"), &signed_for(with));
    assert!(matches!(other, hookgate::delivery::Verdict::Reject(_)));
}

/// What may stand beside a good signature: others that do not fit, other versions, junk.
fn other_element() -> impl Strategy<Value = String> {
    prop_oneof![
        "v1,[0-9A-Za-z+/]{43}=",
        "v1a,[0-9A-Za-z+/]{86}==",
        "v[02-9]{1,2},[0-9A-Za-z+/]{0,20}",
        "v1,[0-9a-z]{0,10}",
        "[!-~]{0,12}",
        Just("v1".to_owned()),
        Just("v1,".to_owned()),
    ]
}

proptest! {
    #[test]
    fn a_standard_webhook_finds_the_good_signature_wherever_it_stands(
        others in prop::collection::vec(other_element(), 0..6),
        place in any::<prop::sample::Index>(),
        gap in " {1,3}",
    ) {
        let mut delivery = delivery(&STANDARD, &[], r#"{"type":"a.b","data":{"id":"7"}}"#);
        let good = delivery.headers["webhook-signature"].to_str().unwrap().to_owned();
        let mut elements = others;
        elements.insert(place.index(elements.len() + 1), good);
        delivery.headers.insert("webhook-signature", elements.join(&gap).parse().unwrap());
        let event = accepted(verdict(&*STANDARD, delivery, &setup(&STANDARD)));
        prop_assert_eq!(event.id.as_deref(), Some("the-id"));
        prop_assert_eq!(shown(&event), (Some("a.b"), Some("7")));
        prop_assert_eq!(event.signed_at, Some(NOW_MS));
    }
}

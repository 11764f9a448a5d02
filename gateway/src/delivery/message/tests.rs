use http::{HeaderMap, HeaderValue, Method};

use super::*;
use crate::delivery::{Name, Ordering};

fn delivery(body: &[u8]) -> Delivery {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json; charset=utf-8"),
        ("user-agent", "GitHub-Hookshot/044aadd"),
        ("x-github-event", "issues"),
        ("x-hub-signature-256", "sha256=abc"),
        ("x-acme-seal", "named by the manifest"),
        ("authorization", "Basic c2VjcmV0"),
        ("cookie", "session=1"),
        ("x-gitlab-token", "secret"),
        ("connection", "keep-alive"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    headers.append("x-bytes", HeaderValue::from_bytes(b"caf\xe9").unwrap());
    Delivery {
        id: uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001),
        received_at: 1_700_000_000_123,
        method: Method::POST,
        target: "/in/acme/gh?x=1".into(),
        rest: String::new(),
        headers,
        body: Bytes::copy_from_slice(body),
    }
}

fn event() -> Event {
    Event {
        id: Some("evt-1".into()),
        ordering_key: Some("35129377".into()),
        event_type: Some("issues.opened".into()),
        occurred_at: Some(1_699_999_999_000),
        sequence: Some("42".into()),
        ..Event::default()
    }
}

fn key(distinct: Option<[u8; 32]>) -> EventKey {
    let name = |name| Name::new(name).unwrap();
    EventKey::new(
        name("acme"),
        name("gh"),
        EventId::from_provider("evt-1").unwrap(),
        distinct,
    )
}

fn envelope<'a>(delivery: &'a Delivery, event: &'a Event, key: &'a EventKey) -> Envelope<'a> {
    Envelope {
        delivery,
        event,
        key,
        group_id: "acme.gh.35129377",
        plugin: "github",
        plugin_version: "0.1.0",
        generation: 0,
        possible_duplicate: false,
        withheld: is_withheld,
        signature_header: Some("X-Acme-Seal"),
    }
}

/// The whole message as a person reads it.
fn show(message: &Message) -> String {
    let attributes = message.attributes.iter();
    let attributes: String = attributes
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    format!(
        "deduplication id: {}\ngroup id: {}\n{attributes}\n{}",
        message.deduplication_id,
        message.group_id,
        String::from_utf8_lossy(&message.body)
    )
}

#[test]
fn a_message_is_a_binary_mode_cloud_event_without_credentials() {
    let (delivery, event, key) = (delivery(b"{\"action\": \"opened\"}"), event(), key(None));
    let message = envelope(&delivery, &event, &key).message();
    message.check(MAX_MESSAGE).unwrap();
    insta::assert_snapshot!(show(&message));
}

#[test]
fn a_second_generation_says_so_and_keeps_the_event_id() {
    let (delivery, event, key) = (delivery(b"{}"), event(), key(None));
    let message = Envelope {
        generation: 1,
        possible_duplicate: true,
        ..envelope(&delivery, &event, &key)
    }
    .message();
    assert_eq!(message.deduplication_id, "acme.gh.evt-1~1");
    assert_eq!(message.attribute("ce-id"), Some("evt-1"));
    let context = message.attribute("hookgate").unwrap();
    assert!(
        context.contains(r#""generation":1"#) && context.contains("possible-duplicate"),
        "{context}"
    );
}

#[test]
fn a_distinct_event_shows_its_bodys_digest_in_its_id() {
    let (delivery, event) = (delivery(b"{}"), event());
    let key = key(Some([7; 32]));
    let message = envelope(&delivery, &event, &key).message();
    let hex = "07".repeat(32);
    assert_eq!(
        message.attribute("ce-id"),
        Some(format!("evt-1~{hex}").as_str())
    );
}

#[test]
fn bytes_that_are_no_queue_text_travel_as_base64_and_nothing_as_a_hyphen() {
    for (body, encoding, carried) in [
        (
            b"caf\xc3\xa9\t\r\n".as_slice(),
            "identity",
            b"caf\xc3\xa9\t\r\n".as_slice(),
        ),
        (b"\xff\xfe", "base64", b"//4="),
        (b"nul\0", "base64", b"bnVsAA=="),
        (b"\xef\xbf\xbf", "base64", b"77+/"),
        (b"", "empty", b"-"),
        (b"-", "identity", b"-"),
    ] {
        let (delivery, event, key) = (delivery(body), event(), key(None));
        let message = envelope(&delivery, &event, &key).message();
        message.check(MAX_MESSAGE).unwrap();
        assert_eq!(&message.body[..], carried);
        let context = message.attribute("hookgate").unwrap();
        assert!(
            context.contains(&format!(r#""encoding":"{encoding}""#)),
            "{context}"
        );
    }
}

#[test]
fn headers_beyond_the_limit_are_left_out_with_a_flag() {
    let (mut delivery, event, key) = (delivery(b"{}"), event(), key(None));
    for n in 0..100 {
        let name: HeaderName = format!("x-filler-{n}").parse().unwrap();
        delivery
            .headers
            .append(name, HeaderValue::from_str(&"\"".repeat(100)).unwrap());
    }
    let message = Envelope {
        possible_duplicate: true,
        ..envelope(&delivery, &event, &key)
    }
    .message();
    let context = message.attribute("hookgate").unwrap();
    assert!(
        context.len() <= MAX_CONTEXT && context.len() > MAX_CONTEXT - 300,
        "{}",
        context.len()
    );
    assert!(context.contains(r#""flags":["possible-duplicate","headers-cut"]"#));
    assert!(context.contains("x-filler-0") && !context.contains("x-filler-99"));
}

#[test]
fn what_a_provider_writes_into_names_cannot_break_a_message() {
    let event = Event {
        ordering_key: Some("tab\there".into()),
        event_type: Some("nul\0".into()),
        sequence: Some("\u{ffff}".into()),
        occurred_at: Some(u64::MAX),
        ..event()
    };
    let (mut delivery, key) = (delivery(b"{}"), key(None));
    let odd = HeaderValue::from_bytes("\u{ffff}".as_bytes()).unwrap();
    delivery.headers.append("x-odd", odd);
    let group = key.group_id(Ordering::Key, event.ordering_key.as_deref());
    let message = Envelope {
        group_id: &group,
        ..envelope(&delivery, &event, &key)
    }
    .message();
    message.check(MAX_MESSAGE).unwrap();
    assert_eq!(
        message.attribute("ce-time"),
        Some("9999-12-31T23:59:59.999Z")
    );
    assert!(
        message
            .attribute("ce-type")
            .unwrap()
            .starts_with("github.sha256:")
    );
}

#[test]
fn an_event_without_a_type_a_key_or_a_time_still_is_a_cloud_event() {
    let (delivery, event, key) = (delivery(b"{}"), Event::default(), key(None));
    let message = envelope(&delivery, &event, &key).message();
    assert_eq!(message.attribute("ce-type"), Some("github.event"));
    assert_eq!(
        message.attribute("ce-time"),
        Some("2023-11-14T22:13:20.123Z")
    );
    assert_eq!(message.attribute("ce-subject"), None);
}

#[test]
fn a_message_is_measured_with_its_attributes_against_the_queues_limit() {
    let (delivery, event, key) = (delivery(b"{}"), event(), key(None));
    let message = envelope(&delivery, &event, &key).message();
    let size = message.size();
    assert!(size > 700, "{size}");
    assert_eq!(message.check(size), Ok(()));
    assert_eq!(
        message.check(size - 1),
        Err(MessageError::TooLarge {
            size,
            limit: size - 1
        })
    );
}

/// What makes a good message a bad one.
type Spoil = fn(&mut Message);

#[test]
fn ids_bodies_and_attributes_that_a_queue_refuses_are_refused_first() {
    let (delivery, event, key) = (delivery(b"{}"), event(), key(None));
    let good = envelope(&delivery, &event, &key).message();
    let bad: [(&str, Spoil); 6] = [
        ("deduplication id", |m| m.deduplication_id = "x".repeat(129)),
        ("deduplication id", |m| m.deduplication_id = "a b".into()),
        ("group id", |m| m.group_id = String::new()),
        ("body", |m| m.body = Bytes::new()),
        ("body", |m| m.body = Bytes::from_static(b"\0")),
        ("attributes", |m| {
            m.attributes.push(("empty".into(), String::new()));
        }),
    ];
    for (part, spoil) in bad {
        let mut message = good.clone();
        spoil(&mut message);
        assert_eq!(
            message.check(MAX_MESSAGE),
            Err(MessageError::Invalid { part })
        );
    }
}

#[test]
fn only_w3c_trace_parents_travel() {
    assert!(is_traceparent(
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    ));
    for bad in [
        "",
        "00-1-2-3",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    ] {
        assert!(!is_traceparent(bad), "{bad}");
    }
}

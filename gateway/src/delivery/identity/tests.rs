use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn key(tenant: &str, source: &str, id: &str) -> EventKey {
    let id = EventId::from_provider(id).unwrap();
    EventKey::new(
        Name::new(tenant).unwrap(),
        Name::new(source).unwrap(),
        id,
        None,
    )
}

#[test]
fn names_are_lower_case_digits_and_inner_hyphens() {
    for good in ["a", "0", "acme", "a-b", "9-", &"a".repeat(63)] {
        assert!(Name::new(good).is_some(), "{good}");
    }
    for bad in [
        "",
        "-a",
        "A",
        "a.b",
        "a_b",
        "~a",
        "a b",
        "é",
        &"a".repeat(64),
    ] {
        assert!(Name::new(bad).is_none(), "{bad}");
    }
}

#[test]
fn plain_ids_stay_readable_and_generations_append_a_tilde() {
    let event = key("acme", "gh", "a.b");
    assert_eq!(event.deduplication_id(0), "acme.gh.a.b");
    assert_eq!(event.deduplication_id(1), "acme.gh.a.b~1");
    assert_eq!(event.claim_key(), "acme.gh.a.b");
}

#[test]
fn an_id_with_a_tilde_is_hashed_over_length_prefixed_parts() {
    let id = key("acme", "gh", "x~1").deduplication_id(0);
    // printf '\0\0\0\4acme\0\0\0\2gh\0\0\0\2id\0\0\0\3x~1\0\0\0\0010' | sha256sum, as base64url
    assert_eq!(id, "~SsXFINSJq2puPNOACuWn0T47GcMxI32stOghzP3N3BA");
    assert_eq!(id.len(), 44);
}

#[test]
fn distinct_keys_are_always_hashed_and_show_the_digest_in_the_public_id() {
    let digest = crypto::sha256(b"body");
    let id = EventId::from_provider("a.b").unwrap();
    let event = EventKey::new(
        Name::new("acme").unwrap(),
        Name::new("gh").unwrap(),
        id,
        Some(digest),
    );
    assert!(event.deduplication_id(0).starts_with('~'));
    assert_eq!(
        event.public_id(),
        format!("a.b~{}", HEXLOWER.encode(&digest))
    );
    assert_ne!(
        event.deduplication_id(0),
        key("acme", "gh", "a.b").deduplication_id(0)
    );
}

#[test]
fn ids_that_sqs_would_not_carry_become_their_digest() {
    for odd in ["tab\there", "nul\0", "\u{85}", "\u{fffe}", &"x".repeat(513)] {
        let id = EventId::from_provider(odd).unwrap();
        assert_eq!(id.as_str().len(), "sha256:".len() + 64, "{odd:?}");
    }
    assert_eq!(
        EventId::from_provider(&"x".repeat(512))
            .unwrap()
            .as_str()
            .len(),
        512
    );
    assert_eq!(EventId::from_provider("é ü").unwrap().as_str(), "é ü");
    assert_eq!(EventId::from_provider(""), None);
}

#[test]
fn groups_follow_the_ordering_of_the_source() {
    let event = key("acme", "gh", "e1");
    assert_eq!(
        event.group_id(Ordering::Key, Some("repo-7")),
        "acme.gh.repo-7"
    );
    assert_eq!(event.group_id(Ordering::Key, None), "acme.gh.e1");
    assert_eq!(event.group_id(Ordering::Source, Some("repo-7")), "acme.gh");
    assert_eq!(event.group_id(Ordering::None, Some("repo-7")), "acme.gh.e1");
    assert_eq!(event.group_id(Ordering::Key, Some("a b")).len(), 44);
}

#[test]
fn what_the_plugin_adds_tells_equal_bodies_apart() {
    let of = |extra: &[(String, String)]| {
        EventId::of_content(b"{}", crypto::sha256(b"{}"), extra)
            .as_str()
            .to_owned()
    };
    let (a, b) = (
        of(&[("t".into(), "1".into())]),
        of(&[("t".into(), "2".into())]),
    );
    assert_ne!(a, b);
    assert_eq!(of(&[]), digest_id(crypto::sha256(b"{}")));
}

/// Short alphabets of the characters that could confuse the mapping, so that collisions would be found.
fn confusable() -> impl Strategy<Value = (String, String, String, Option<u8>, u32)> {
    (
        "[ab-]{1,3}",
        "[ab-]{1,3}",
        "[ab.~1 -]{1,4}",
        prop::option::of(0..2u8),
        0..3u32,
    )
        .prop_filter("names", |(tenant, source, ..)| {
            Name::new(tenant).is_some() && Name::new(source).is_some()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn identity_mapping_is_injective(inputs in prop::collection::vec(confusable(), 200)) {
        let mut seen = HashMap::new();
        for input in inputs {
            let (tenant, source, id, distinct, generation) = &input;
            let event = EventKey::new(
                Name::new(tenant).unwrap(),
                Name::new(source).unwrap(),
                EventId::from_provider(id).unwrap(),
                distinct.map(|byte| crypto::sha256(&[byte])),
            );
            let broker = event.deduplication_id(*generation);
            prop_assert!(broker.len() <= MAX_BROKER_ID);
            prop_assert!(broker.bytes().all(|b| b.is_ascii_graphic()));
            if let Some(other) = seen.insert(broker, input.clone()) {
                prop_assert_eq!(other, input);
            }
        }
    }

    #[test]
    fn any_id_of_any_length_maps_to_what_sqs_accepts(id in "\\PC{1,600}", generation in 0..u32::MAX) {
        let event = key("acme", "gh", &id);
        for broker in [event.deduplication_id(generation), event.group_id(Ordering::Key, Some(&id))] {
            prop_assert!((1..=MAX_BROKER_ID).contains(&broker.len()));
            prop_assert!(broker.bytes().all(|b| b.is_ascii_graphic()));
        }
    }
}

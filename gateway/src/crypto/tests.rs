use proptest::prelude::*;

use super::*;

fn key(value: &str) -> Key {
    Key::decode(KeyForm::Raw, value.as_bytes(), true).unwrap()
}

fn sign(key: &Key, message: &[u8]) -> Vec<u8> {
    compute_mac(Mac::Hmac(Hash::Sha256), key, &[Piece::Bytes(message)])
}

#[test]
fn keys_are_refused_with_a_reason_that_never_shows_them() {
    let refused = |form, value: &str| {
        let error = Key::decode(form, value.as_bytes(), false).unwrap_err();
        let text = error.to_string();
        assert!(value.trim().is_empty() || !text.contains(value), "{text}");
        error
    };
    assert_eq!(refused(KeyForm::Raw, ""), KeyError::Empty);
    assert_eq!(refused(KeyForm::Raw, " \n"), KeyError::Blank);
    assert_eq!(
        refused(KeyForm::Raw, "${STRIPE_WEBHOOK_SECRET}"),
        KeyError::Unexpanded
    );
    assert_eq!(
        refused(KeyForm::Raw, "{{ .Values.secret_of_stripe }}"),
        KeyError::Unexpanded
    );
    assert_eq!(
        refused(KeyForm::Raw, "fifteen bytes.."),
        KeyError::TooShort { length: 15 }
    );
    assert_eq!(
        refused(KeyForm::Hex, "0g".repeat(16).as_str()),
        KeyError::NotHex
    );
    assert_eq!(
        refused(KeyForm::Hex, "0".repeat(33).as_str()),
        KeyError::NotHex
    );
    assert_eq!(
        refused(KeyForm::Base64, "not base64 at all!!!"),
        KeyError::NotBase64
    );
    assert_eq!(refused(KeyForm::Whsec, "whsec_"), KeyError::Empty);
    assert_eq!(
        refused(KeyForm::Sha256, "short"),
        KeyError::TooShort { length: 5 }
    );
}

#[test]
fn key_forms_decode_to_the_same_bytes() {
    let raw = "0123456789abcdef";
    let message = b"message";
    for (form, value) in [
        (KeyForm::Raw, raw.to_owned()),
        (KeyForm::Hex, data_encoding::HEXUPPER.encode(raw.as_bytes())),
        (KeyForm::Base64, BASE64.encode(raw.as_bytes())),
        (
            KeyForm::Whsec,
            format!("whsec_{}", BASE64_NOPAD.encode(raw.as_bytes())),
        ),
    ] {
        let decoded = Key::decode(form, value.as_bytes(), false).unwrap();
        assert_eq!(
            sign(&decoded, message),
            sign(&key(raw), message),
            "{form:?}"
        );
    }
}

#[test]
fn debug_output_withholds_the_key() {
    let mut ring = Keyring::default();
    ring.add("secret", key("correct horse battery"));
    assert!(!format!("{ring:?}").contains("horse"));
}

#[test]
fn hmac_of_rfc_4231_case_2_verifies() {
    let signature = data_encoding::HEXLOWER
        .decode(b"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        .unwrap();
    let keys = [key("Jefe")];
    let message = [
        Piece::Bytes(b"what do ya want "),
        Piece::Bytes(b"for nothing?"),
    ];
    assert_eq!(
        verify_mac(Mac::Hmac(Hash::Sha256), &keys, &message, &signature),
        Some(0)
    );
    assert_eq!(
        verify_mac(Mac::Hmac(Hash::Sha256), &keys, &message, &signature[..31]),
        None
    );
    assert_eq!(
        verify_mac(Mac::Hmac(Hash::Sha256), &keys, &message, b""),
        None
    );
}

#[test]
fn plain_digests_hash_the_secret_in_its_place() {
    let message = [Piece::Bytes(b"body"), Piece::ThisKey];
    let signature = Hash::Sha1.of(b"bodysecond");
    let keys = [key("first"), key("second")];
    assert_eq!(
        verify_mac(Mac::Plain(Hash::Sha1), &keys, &message, &signature),
        Some(1)
    );
}

#[test]
fn tokens_are_equal_only_in_full() {
    let keys = [key("token-one"), key("token-two")];
    assert_eq!(verify_token(&keys, b"token-two"), Some(1));
    assert_eq!(verify_token(&keys, b"token-tw"), None);
    assert_eq!(verify_token(&keys, b""), None);
}

proptest! {
    #[test]
    fn any_active_key_verifies_and_no_other(
        secrets in prop::collection::hash_set("[a-z]{16,20}", 2..6),
        chosen in any::<prop::sample::Index>(),
        body in prop::collection::vec(any::<u8>(), 0..200),
        split in any::<prop::sample::Index>(),
    ) {
        let mut keys: Vec<_> = secrets.iter().map(|secret| key(secret)).collect();
        let chosen = chosen.index(keys.len());
        let signature = sign(&keys[chosen], &body);
        let (head, tail) = body.split_at(split.index(body.len() + 1));
        let message = [Piece::Bytes(head), Piece::Bytes(tail)];
        let mac = Mac::Hmac(Hash::Sha256);
        prop_assert_eq!(verify_mac(mac, &keys, &message, &signature), Some(chosen));
        prop_assert_eq!(verify_mac(mac, &keys, &[Piece::Bytes(&body)], &signature), Some(chosen));
        keys.remove(chosen);
        prop_assert_eq!(verify_mac(mac, &keys, &message, &signature), None);
    }
}

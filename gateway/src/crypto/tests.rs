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

/// A signature that fits, and where it was published.
#[derive(Deserialize)]
struct Published {
    scheme: String,
    source: String,
    key: String,
    message: String,
    signature: String,
}

fn published() -> Vec<Published> {
    serde_json::from_str(include_str!("signatures.json")).unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    BASE64.decode(text.as_bytes()).unwrap()
}

fn scheme(name: &str) -> Scheme {
    match name {
        "ed25519" => Scheme::Ed25519,
        "ecdsa-p256-sha256-der" => Scheme::EcdsaP256Sha256Der,
        "ecdsa-p256-sha256-fixed" => Scheme::EcdsaP256Sha256Fixed,
        "rsa-pkcs1-sha1" => Scheme::RsaPkcs1Sha1,
        "rsa-pkcs1-sha256" => Scheme::RsaPkcs1Sha256,
        "rsa-pkcs1-sha512" => Scheme::RsaPkcs1Sha512,
        "rsa-pss-sha256" => Scheme::RsaPssSha256,
        other => panic!("{other}"),
    }
}

fn public(value: &str) -> Result<PublicKey, KeyError> {
    PublicKey::decode(KeyForm::Base64, value.as_bytes(), None)
}

#[test]
fn every_published_signature_fits_and_none_with_a_bit_changed() {
    let all = published();
    // A key that fits nothing stands before the one that does.
    let other = "1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    for case in &all {
        let keys = [public(other).unwrap(), public(&case.key).unwrap()];
        let (scheme, source) = (scheme(&case.scheme), &case.source);
        let (mut message, mut signature) = (bytes(&case.message), bytes(&case.signature));
        let fits =
            |message: &[u8], signature: &[u8]| verify_signature(scheme, &keys, message, signature);
        assert_eq!(fits(&message, &signature), Some(1), "{source}");
        message.push(0);
        assert_eq!(fits(&message, &signature), None, "{source}");
        message.pop();
        *signature.last_mut().unwrap() ^= 1;
        assert_eq!(fits(&message, &signature), None, "{source}");
        signature.pop();
        assert_eq!(fits(&message, &signature), None, "{source}");
        assert_eq!(fits(&message, b""), None, "{source}");
    }
    assert!(all.len() >= 12);
}

#[test]
fn a_signature_never_fits_under_another_scheme() {
    let all = published();
    for case in &all {
        let keys = [public(&case.key).unwrap()];
        let (message, signature) = (bytes(&case.message), bytes(&case.signature));
        for other in all.iter().filter(|other| other.scheme != case.scheme) {
            let place = verify_signature(scheme(&other.scheme), &keys, &message, &signature);
            assert_eq!(place, None, "{} as {}", case.scheme, other.scheme);
        }
    }
}

#[test]
fn a_public_key_is_refused_with_a_reason_that_never_shows_it() {
    let refused = |form, value: &str, wanted| {
        let error = PublicKey::decode(form, value.as_bytes(), wanted).unwrap_err();
        assert!(!error.to_string().contains(value), "{error}");
        error
    };
    let of_length = |length| KeyError::Public(PublicKeyError::NoKey { length });
    let unsafe_key = |algorithm| KeyError::Public(PublicKeyError::Unsafe { algorithm });
    let (ed25519, p256) = (PublicAlgorithm::Ed25519, PublicAlgorithm::EcdsaP256);
    let zeros = |bytes: usize| "00".repeat(bytes);
    assert_eq!(refused(KeyForm::Hex, &zeros(31), None), of_length(31));
    assert_eq!(refused(KeyForm::Hex, &zeros(64), None), of_length(64));
    assert_eq!(refused(KeyForm::Hex, &zeros(32), None), unsafe_key(ed25519));
    let point = format!("04{}", "11".repeat(64));
    assert_eq!(refused(KeyForm::Hex, &point, None), unsafe_key(p256));
    let compressed = format!("02{}", "11".repeat(32));
    assert_eq!(refused(KeyForm::Hex, &compressed, None), of_length(33));
    assert_eq!(
        refused(KeyForm::Whpk, "whsk_not a public key", None),
        KeyError::NotBase64
    );
    assert_eq!(
        refused(KeyForm::Base64, RSA_1024, None),
        KeyError::Public(PublicKeyError::RsaSize { bits: 1024 })
    );
    let (found, wanted) = (PublicAlgorithm::Rsa, ed25519);
    let all = published();
    let rsa = all.iter().find(|case| case.scheme.starts_with("rsa"));
    assert_eq!(
        refused(KeyForm::Base64, &rsa.unwrap().key, Some(wanted)),
        KeyError::Public(PublicKeyError::Algorithm { found, wanted })
    );
}

/// Made for this test.
const RSA_1024: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDOUr4jm7R669OnY8FaytkZg0iwk9h297UI1AHfVlHNIhkg/7aO2BzZVpXm0GLzkEwDrhbEOmW/k4InsBLR6nnKMwszWcnz7//OrX5vzN8W5sXKWyDpKsxKky/bH6NFubwVAAKMQV/8nJlwDoAFL6RUcmau02v1j1XY3PI+1db0qwIDAQAB";

#[test]
fn points_that_anybody_can_sign_under_are_refused_in_every_spelling() {
    // y of the points of order 1, 2, 4 and 8, the first three also with the prime added where that fits.
    let small = [
        format!("00{}00", "00".repeat(30)),
        format!("01{}00", "00".repeat(30)),
        format!("ec{}7f", "ff".repeat(30)),
        format!("ed{}7f", "ff".repeat(30)),
        format!("ee{}7f", "ff".repeat(30)),
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05".into(),
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".into(),
    ];
    for y in small {
        let sign_of_x = u8::from_str_radix(&y[62..], 16).unwrap() | 0x80;
        let negative = format!("{}{sign_of_x:02x}", &y[..62]);
        for key in [y, negative] {
            let error = PublicKey::decode(KeyForm::Hex, key.as_bytes(), None).unwrap_err();
            let algorithm = PublicAlgorithm::Ed25519;
            assert_eq!(
                error,
                KeyError::Public(PublicKeyError::Unsafe { algorithm }),
                "{key}"
            );
        }
    }
}

#[test]
fn damaged_der_is_no_key() {
    for case in published()
        .iter()
        .filter(|case| bytes(&case.key).len() > 65)
    {
        let whole = bytes(&case.key);
        let decode = |bytes: &[u8]| public(&BASE64.encode(bytes));
        assert!(decode(&whole).is_ok());
        for end in 0..whole.len() {
            // What is left may by chance have the length of a raw key.
            if end != 32 {
                assert!(
                    decode(&whole[..end]).is_err(),
                    "{} cut at {end}",
                    case.source
                );
            }
        }
        assert!(decode(&[&whole[..], b"\0"].concat()).is_err());
    }
}

#[test]
fn a_public_key_is_no_secret_and_a_secret_no_public_key() {
    let mut keys = Keyring::default();
    keys.add("secret", key("a secret of 20 bytes"));
    let of = "1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
    keys.add_public("key", public(of).unwrap());
    assert!(keys.get("key").is_none());
    assert!(keys.public("secret").is_none());
    assert!(keys.get("secret").is_some() && keys.public("key").is_some());
}

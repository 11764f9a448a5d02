//! JSON Web Tokens: what a verified one claims.
//!
//! The algorithm is one that the plugin names and fits the kind of key, whatever the token's header says; time
//! is the delivery's arrival. Knows no provider and fetches nothing: a key is handed in.

use std::borrow::Cow;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Key, PublicAlgorithm, PublicKey};

/// How long a token is taken after its end, in seconds: what providers' own libraries allow.
const AFTER_EXPIRY: f64 = 1.0;
/// How long before its beginning, in seconds: the sender's clock may be ahead.
const BEFORE_START: f64 = 60.0;

/// The algorithm of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their names")]
pub enum JwtAlgorithm {
    Hs256,
    Hs384,
    Hs512,
    Es256,
    Es384,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Eddsa,
}

impl JwtAlgorithm {
    fn library(self) -> Algorithm {
        match self {
            Self::Hs256 => Algorithm::HS256,
            Self::Hs384 => Algorithm::HS384,
            Self::Hs512 => Algorithm::HS512,
            Self::Es256 => Algorithm::ES256,
            Self::Es384 => Algorithm::ES384,
            Self::Rs256 => Algorithm::RS256,
            Self::Rs384 => Algorithm::RS384,
            Self::Rs512 => Algorithm::RS512,
            Self::Ps256 => Algorithm::PS256,
            Self::Eddsa => Algorithm::EdDSA,
        }
    }

    /// Whether its key is a secret.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::Hs256 | Self::Hs384 | Self::Hs512)
    }

    /// What its public key must be; none where its key is a secret.
    fn public(self) -> Option<PublicAlgorithm> {
        match self {
            Self::Hs256 | Self::Hs384 | Self::Hs512 => None,
            Self::Es256 => Some(PublicAlgorithm::EcdsaP256),
            Self::Es384 => Some(PublicAlgorithm::EcdsaP384),
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 => Some(PublicAlgorithm::Rsa),
            Self::Eddsa => Some(PublicAlgorithm::Ed25519),
        }
    }
}

/// The keys that a token may be verified with.
#[derive(Debug, Clone, Copy)]
pub enum JwtKeys<'a> {
    /// The active values of a secret.
    Secret(&'a [Key]),
    /// Public keys.
    Public(&'a [PublicKey]),
}

/// The claims of a token that is good at `now`, in ms since 1970, as they are written, and the place of the key
/// that it fits.
pub fn verify_jwt(
    algorithms: &[JwtAlgorithm],
    keys: JwtKeys<'_>,
    token: &[u8],
    now: u64,
) -> Option<(usize, String)> {
    let token = std::str::from_utf8(token).ok()?;
    let named = decode_header(token).ok()?.alg;
    let algorithm = *algorithms.iter().find(|alg| alg.library() == named)?;
    let (place, claims) = match keys {
        JwtKeys::Secret(keys) if algorithm.is_symmetric() => {
            let keys = keys.iter().map(|key| DecodingKey::from_secret(&key.bytes));
            first_fitting(named, keys.enumerate(), token)
        }
        JwtKeys::Public(keys) => {
            let keys = keys.iter().enumerate();
            let fitting = keys.filter(|(_, key)| algorithm.public() == Some(key.algorithm));
            let keys = fitting.map(|(place, key)| (place, decoding_key(key)));
            first_fitting(named, keys, token)
        }
        JwtKeys::Secret(_) => None,
    }?;
    is_timely(&claims, now).then(|| (place, claims.get().to_owned()))
}

/// The `kid` in a token's header.
pub fn key_id(token: &[u8]) -> Option<String> {
    decode_header(std::str::from_utf8(token).ok()?).ok()?.kid
}

fn decoding_key(key: &PublicKey) -> DecodingKey {
    match key.algorithm {
        PublicAlgorithm::Rsa => DecodingKey::from_rsa_der(&key.bytes),
        PublicAlgorithm::EcdsaP256 | PublicAlgorithm::EcdsaP384 => {
            DecodingKey::from_ec_der(&key.bytes)
        }
        PublicAlgorithm::Ed25519 => DecodingKey::from_ed_der(&key.bytes),
    }
}

fn first_fitting(
    algorithm: Algorithm,
    mut keys: impl Iterator<Item = (usize, DecodingKey)>,
    token: &str,
) -> Option<(usize, Box<RawValue>)> {
    let mut validation = Validation::new(algorithm);
    // The library's clock is the machine's; time is an input here, and the audience is the plugin's to check.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    keys.find_map(|(place, key)| {
        let token = decode::<Box<RawValue>>(token, &key, &validation).ok()?;
        Some((place, token.claims))
    })
}

/// Seconds since 1970, with a fraction or without (RFC 7519, `NumericDate`).
#[derive(Deserialize)]
struct Bounds<'a> {
    exp: Option<f64>,
    nbf: Option<f64>,
    /// Not read; named so that a second one is refused.
    #[serde(borrow, rename = "iat")]
    _iat: Option<Cow<'a, RawValue>>,
}

fn is_timely(claims: &RawValue, now: u64) -> bool {
    let Ok(bounds) = serde_json::from_str::<Bounds<'_>>(claims.get()) else {
        return false;
    };
    let now = std::time::Duration::from_millis(now).as_secs_f64();
    bounds.exp.is_none_or(|exp| now < exp + AFTER_EXPIRY)
        && bounds.nbf.is_none_or(|nbf| now >= nbf - BEFORE_START)
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use rcgen::{
        KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PublicKeyData,
    };
    use serde_json::json;

    use super::super::KeyForm;
    use super::*;

    const NOW: u64 = 1_700_000_000_000;
    const SECRET: &[u8] = b"a secret of thirty-two bytes, no";

    fn secret(value: &[u8]) -> Key {
        Key::decode(KeyForm::Raw, value, false).unwrap()
    }

    fn signed(claims: &serde_json::Value) -> String {
        encode(
            &Header::new(Algorithm::HS256),
            claims,
            &EncodingKey::from_secret(SECRET),
        )
        .unwrap()
    }

    fn claims(token: &str) -> Option<(usize, String)> {
        let keys = [secret(b"another secret of enough bytes"), secret(SECRET)];
        verify_jwt(
            &[JwtAlgorithm::Hs256],
            JwtKeys::Secret(&keys),
            token.as_bytes(),
            NOW,
        )
    }

    #[test]
    fn a_token_under_any_active_secret_tells_its_claims_as_they_are_written() {
        let found = claims(&signed(&json!({"jti": "e1", "n": 1.50})));
        assert_eq!(found, Some((1, r#"{"jti":"e1","n":1.5}"#.into())));
    }

    #[test]
    fn a_token_is_good_from_its_beginning_to_its_end() {
        let at = |claims_of: serde_json::Value| claims(&signed(&claims_of)).is_some();
        let now = NOW / 1000;
        assert!(at(json!({"nbf": now, "exp": now + 1})));
        assert!(at(json!({"exp": now})), "the last second");
        assert!(!at(json!({"exp": now - 1})));
        assert!(
            at(json!({"nbf": now + 60})),
            "the sender's clock may be ahead"
        );
        assert!(!at(json!({"nbf": now + 61})));
        assert!(!at(json!({"exp": "soon"})));
        assert!(at(json!({})), "not every token ends");
    }

    #[test]
    fn tampered_foreign_and_malformed_tokens_are_refused() {
        let good = signed(&json!({"jti": "e1"}));
        let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else {
            panic!("{good}");
        };
        // {"alg":"none"} and {"jti":"e2"}
        let none = "eyJhbGciOiJub25lIn0";
        let other = "eyJqdGkiOiJlMiJ9";
        for token in [
            format!("{head}.{other}.{signature}"),
            format!("{none}.{body}.{signature}"),
            format!("{none}.{body}."),
            format!("{head}.{body}."),
            format!("{head}.{body}"),
            format!("{good}.x"),
            format!("{good}="),
            String::new(),
            "..".into(),
        ] {
            assert_eq!(claims(&token), None, "{token}");
        }
        assert_eq!(
            verify_jwt(
                &[JwtAlgorithm::Hs512],
                JwtKeys::Secret(&[secret(SECRET)]),
                good.as_bytes(),
                NOW
            ),
            None
        );
        assert_eq!(
            verify_jwt(
                &[],
                JwtKeys::Secret(&[secret(SECRET)]),
                good.as_bytes(),
                NOW
            ),
            None
        );
    }

    #[test]
    fn each_kind_of_public_key_verifies_its_own_algorithm_alone() {
        let kinds = [
            (JwtAlgorithm::Es256, &PKCS_ECDSA_P256_SHA256),
            (JwtAlgorithm::Es384, &PKCS_ECDSA_P384_SHA384),
            (JwtAlgorithm::Eddsa, &PKCS_ED25519),
        ];
        let all = kinds.map(|(algorithm, _)| algorithm);
        let pairs =
            kinds.map(|(algorithm, kind)| (algorithm, KeyPair::generate_for(kind).unwrap()));
        let keys: Vec<_> = pairs
            .iter()
            .map(|(_, pair)| PublicKey::of_der(&pair.subject_public_key_info()).unwrap())
            .collect();
        for (place, (algorithm, pair)) in pairs.iter().enumerate() {
            let der = pair.serialize_der();
            let key = match algorithm {
                JwtAlgorithm::Eddsa => EncodingKey::from_ed_der(&der),
                _ => EncodingKey::from_ec_der(&der),
            };
            let token = encode(
                &Header::new(algorithm.library()),
                &json!({"jti": "e"}),
                &key,
            )
            .unwrap();
            let found = verify_jwt(&all, JwtKeys::Public(&keys), token.as_bytes(), NOW);
            assert_eq!(found.map(|(place, _)| place), Some(place), "{algorithm:?}");
            let others: Vec<_> = all
                .iter()
                .copied()
                .filter(|other| other != algorithm)
                .collect();
            let found = verify_jwt(&others, JwtKeys::Public(&keys), token.as_bytes(), NOW);
            assert_eq!(found, None, "{algorithm:?}");
        }
    }

    #[test]
    fn a_public_key_is_never_an_hmac_secret() {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let der = pair.subject_public_key_info();
        let key = EncodingKey::from_secret(&der);
        let token = encode(&Header::new(Algorithm::HS256), &json!({"jti": "e"}), &key).unwrap();
        let keys = [PublicKey::of_der(&der).unwrap()];
        for algorithm in [JwtAlgorithm::Hs256, JwtAlgorithm::Es256] {
            let found = verify_jwt(&[algorithm], JwtKeys::Public(&keys), token.as_bytes(), NOW);
            assert_eq!(found, None, "{algorithm:?}");
        }
    }
}

//! JSON Web Keys (RFC 7517) as public keys.
//!
//! What is no public signing key of a known kind is passed over: sets hold keys for other purposes too. A
//! symmetric key in a public set is never taken for one.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;

use super::{PublicAlgorithm, PublicKey};

/// The public keys of a set, each with its `kid`.
#[derive(Debug)]
pub struct KeySet(Vec<(Option<String>, PublicKey)>);

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// The members that matter here (RFC 7518, section 6; RFC 8037, section 2).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl KeySet {
    /// Reads a set; none where it is not one.
    pub fn read(document: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(document).ok()?;
        let keys = document.keys.into_iter().filter_map(|key| {
            let key: Jwk = serde_json::from_value(key).ok()?;
            let signs = key
                .purpose
                .as_deref()
                .is_none_or(|purpose| purpose == "sig");
            let public = PublicKey::of_der(&key.der()?).ok()?;
            signs.then_some((key.kid, public))
        });
        Some(Self(keys.collect()))
    }

    /// The key of that `kid`; where the token names none, the set's only key.
    pub fn find(&self, id: &str) -> Option<&PublicKey> {
        match self.0.as_slice() {
            [(_, only)] if id.is_empty() => Some(only),
            keys => {
                let named = keys.iter().find(|(kid, _)| kid.as_deref() == Some(id));
                named.map(|(_, key)| key)
            }
        }
    }
}

/// The raw bytes or DER of one public key; none where it is none.
pub(super) fn read(key: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<Jwk>(key).ok()?.der()
}

impl Jwk {
    fn der(&self) -> Option<Vec<u8>> {
        let decode = |member: &Option<String>| {
            BASE64URL_NOPAD
                .decode(member.as_deref()?.trim_end_matches('=').as_bytes())
                .ok()
        };
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Some(rsa(&decode(&self.n)?, &decode(&self.e)?)),
            ("EC", Some("P-256" | "P-384")) => {
                let point = [vec![4], decode(&self.x)?, decode(&self.y)?].concat();
                Some(point)
            }
            ("OKP", Some("Ed25519")) => decode(&self.x),
            _ => None,
        }
    }
}

/// The DER of an RSA key (RFC 8017, A.1.1).
fn rsa(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let numbers = [
        element(0x02, &unsigned(modulus)),
        element(0x02, &unsigned(exponent)),
    ];
    element(0x30, &numbers.concat())
}

/// The shortest form of a number whose sign bit is clear.
fn unsigned(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = &number[zeros..];
    match number.first() {
        Some(first) if first & 0x80 == 0 => number.to_vec(),
        _ => [&[0], number].concat(),
    }
}

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let length = &length[zeros..];
    let head = match (contents.len(), length) {
        (short @ ..=0x7f, _) => vec![u8::try_from(short).unwrap_or_default()],
        (_, long) => {
            let count = u8::try_from(long.len()).unwrap_or_default();
            [&[0x80 | count], long].concat()
        }
    };
    [vec![tag], head, contents.to_vec()].concat()
}

impl PublicKey {
    /// What it is for.
    pub fn algorithm(&self) -> PublicAlgorithm {
        self.algorithm
    }
}

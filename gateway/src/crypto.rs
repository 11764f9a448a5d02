//! Keys and verification: the only place that names `ring`.
//!
//! Keys are decoded strictly and refused by reason, never by value; nothing here prints one. Comparison is
//! constant-time throughout: `ring`'s own, or equality of HMACs under a random key of this process. What is
//! public is kept apart from what is secret: no MAC is ever keyed with a public key, which anyone could do.

pub mod certificate;
pub mod jwk;
pub mod jwt;
mod spki;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use ring::{agreement, digest, hmac};
use serde::Deserialize;

/// The shortest key that is taken without `allow_weak_key`, in bytes.
pub const MIN_KEY: usize = 16;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their names")]
pub enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    /// The digest of these bytes.
    pub fn of(self, bytes: &[u8]) -> Vec<u8> {
        self.of_pieces([bytes])
    }

    /// The digest of these pieces, one behind the other.
    pub fn of_pieces<'a>(self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut digest = self.begin();
        pieces.into_iter().for_each(|piece| digest.update(piece));
        digest.finish()
    }

    /// A digest to be taken piece by piece.
    pub fn begin(self) -> Digest {
        Digest(digest::Context::new(self.digest()))
    }
}

/// A digest, piece by piece.
pub struct Digest(digest::Context);

impl Digest {
    /// Adds these bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

/// How a signature is computed from a key and a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mac {
    /// HMAC (RFC 2104).
    Hmac(Hash),
    /// A digest of the message, which holds the secret itself.
    Plain(Hash),
}

/// The SHA-256 digest of these bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(bytes);
    digest.finish()
}

/// SHA-256, piece by piece.
pub struct Sha256(digest::Context);

impl Sha256 {
    /// Of nothing yet.
    #[allow(
        clippy::new_without_default,
        reason = "an empty digest is no natural default"
    )]
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Adds these bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    pub fn finish(self) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(self.0.finish().as_ref());
        out
    }
}

/// How a configured secret becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyForm {
    /// Its bytes.
    #[default]
    Raw,
    /// Its bytes behind the first colon, before which is the key's name; without a colon, all of them.
    Named,
    /// Its bytes, written as hexadecimal.
    Hex,
    /// Its bytes, written as base64.
    Base64,
    /// Its bytes, written as base64 behind an optional `whsec_`.
    Whsec,
    /// Its bytes, written as base64 behind an optional `whpk_`: a public key of Standard Webhooks.
    Whpk,
    /// Its bytes, written as PEM: a public key.
    Pem,
    /// A public key as a JSON Web Key.
    Jwk,
    /// Its SHA-1 digest.
    Sha1,
    /// Its SHA-256 digest.
    Sha256,
}

impl KeyForm {
    /// The name of the key that a value is; none where it has none. No part of the secret.
    pub fn name_of(self, value: &[u8]) -> Option<&str> {
        let colon = value.iter().position(|byte| *byte == b':')?;
        let name = std::str::from_utf8(&value[..colon]).ok();
        name.filter(|name| self == Self::Named && !name.is_empty())
    }

    /// The key's bytes of a configured value.
    fn decode(self, value: &[u8]) -> Result<Vec<u8>, KeyError> {
        if value.is_empty() {
            return Err(KeyError::Empty);
        }
        if value.iter().all(u8::is_ascii_whitespace) {
            return Err(KeyError::Blank);
        }
        if [b"${".as_slice(), b"$(", b"{{", b"%("]
            .iter()
            .any(|open| value.starts_with(open))
        {
            return Err(KeyError::Unexpanded);
        }
        match self {
            Self::Raw => Ok(value.to_vec()),
            Self::Named => match value.iter().position(|byte| *byte == b':') {
                Some(colon) if colon + 1 == value.len() => Err(KeyError::Empty),
                Some(colon) => Ok(value[colon + 1..].to_vec()),
                None => Ok(value.to_vec()),
            },
            Self::Hex => HEXLOWER_PERMISSIVE
                .decode(value)
                .map_err(|_| KeyError::NotHex),
            Self::Base64 => base64(value),
            Self::Whsec => base64(value.strip_prefix(b"whsec_").unwrap_or(value)),
            Self::Whpk => base64(value.strip_prefix(b"whpk_").unwrap_or(value)),
            Self::Pem => pem(value),
            Self::Jwk => jwk::read(value).ok_or(KeyError::NotJwk),
            Self::Sha1 => Ok(Hash::Sha1.of(value)),
            Self::Sha256 => Ok(Hash::Sha256.of(value)),
        }
    }
}

/// Why a secret is no key. Never holds the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing there.
    #[error("it is empty")]
    Empty,
    /// White space only.
    #[error("it holds only white space")]
    Blank,
    /// Not replaced by what it stands for.
    #[error("it is a placeholder that nothing has replaced, such as `${{NAME}}`")]
    Unexpanded,
    /// Not hexadecimal.
    #[error("it is not hexadecimal, which its form demands")]
    NotHex,
    /// Not base64.
    #[error("it is not base64, which its form demands")]
    NotBase64,
    /// Not PEM.
    #[error("it is not a public key as PEM, which its form demands")]
    NotPem,
    /// No public key as a JSON Web Key.
    #[error("it is not a public key as a JSON Web Key, which its form demands")]
    NotJwk,
    /// Too easily guessed.
    #[error("its key has {length} bytes; fewer than {MIN_KEY} need `allow_weak_key = true`")]
    TooShort {
        /// The decoded key's length in bytes.
        length: usize,
    },
    /// A public key was wanted.
    #[error(transparent)]
    Public(#[from] PublicKeyError),
}

/// Why bytes are no public key, or not the one that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Of no known shape.
    #[error(
        "its {length} bytes are no public key: neither the 32 of Ed25519, nor the 65 or 97 of an uncompressed \
         point of P-256 or P-384, nor the DER of one of these or of RSA"
    )]
    NoKey {
        /// The decoded length in bytes.
        length: usize,
    },
    /// Not a point of its curve, or one under which anybody can sign.
    #[error("it is not a {algorithm} key that anything could safely be verified with")]
    Unsafe {
        /// What its shape says it is.
        algorithm: PublicAlgorithm,
    },
    /// An RSA key that is too weak or too large.
    #[error("it is an RSA key of {bits} bits; 2048 to 8192 are taken")]
    RsaSize {
        /// The modulus's length in bits.
        bits: usize,
    },
    /// A good key of another algorithm.
    #[error("it is a key of {found}; the plugin verifies with {wanted}")]
    Algorithm {
        /// What it is.
        found: PublicAlgorithm,
        /// What it should be.
        wanted: PublicAlgorithm,
    },
}

/// What a public key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the variants are their names")]
pub enum PublicAlgorithm {
    Ed25519,
    #[serde(rename = "ecdsa-p256")]
    EcdsaP256,
    #[serde(rename = "ecdsa-p384")]
    EcdsaP384,
    Rsa,
}

impl fmt::Display for PublicAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ed25519 => "Ed25519",
            Self::EcdsaP256 => "ECDSA P-256",
            Self::EcdsaP384 => "ECDSA P-384",
            Self::Rsa => "RSA",
        })
    }
}

/// How a public-key signature is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their names")]
pub enum Scheme {
    Ed25519,
    /// The signature is an ASN.1 DER sequence of two integers.
    EcdsaP256Sha256Der,
    /// The signature is the two integers, 32 bytes each.
    EcdsaP256Sha256Fixed,
    RsaPkcs1Sha1,
    RsaPkcs1Sha256,
    RsaPkcs1Sha512,
    RsaPssSha256,
}

impl Scheme {
    fn algorithm(self) -> PublicAlgorithm {
        match self {
            Self::Ed25519 => PublicAlgorithm::Ed25519,
            Self::EcdsaP256Sha256Der | Self::EcdsaP256Sha256Fixed => PublicAlgorithm::EcdsaP256,
            Self::RsaPkcs1Sha1
            | Self::RsaPkcs1Sha256
            | Self::RsaPkcs1Sha512
            | Self::RsaPssSha256 => PublicAlgorithm::Rsa,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Ed25519 => &signature::ED25519,
            Self::EcdsaP256Sha256Der => &signature::ECDSA_P256_SHA256_ASN1,
            Self::EcdsaP256Sha256Fixed => &signature::ECDSA_P256_SHA256_FIXED,
            Self::RsaPkcs1Sha1 => &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            Self::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Self::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        }
    }
}

/// One active public key of a source.
#[derive(Debug)]
pub struct PublicKey {
    algorithm: PublicAlgorithm,
    bytes: Box<[u8]>,
}

impl PublicKey {
    /// The key that a configured value stands for, of the wanted algorithm where one is. Takes raw bytes of
    /// Ed25519 and of uncompressed P-256 points, and DER (SubjectPublicKeyInfo, or an RSA key alone).
    pub fn decode(
        form: KeyForm,
        value: &[u8],
        wanted: Option<PublicAlgorithm>,
    ) -> Result<Self, KeyError> {
        let key = Self::of_der(&form.decode(value)?)?;
        let found = key.algorithm;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return Err(PublicKeyError::Algorithm { found, wanted }.into());
        }
        Ok(key)
    }

    /// The key that these bytes are, raw or DER.
    pub fn of_der(bytes: &[u8]) -> Result<Self, PublicKeyError> {
        let (algorithm, bytes) = spki::read(bytes)?;
        let is_safe = match algorithm {
            PublicAlgorithm::Ed25519 => !is_of_small_order(bytes),
            PublicAlgorithm::EcdsaP256 => is_on_curve(&agreement::ECDH_P256, bytes),
            PublicAlgorithm::EcdsaP384 => is_on_curve(&agreement::ECDH_P384, bytes),
            PublicAlgorithm::Rsa => true,
        };
        if !is_safe {
            return Err(PublicKeyError::Unsafe { algorithm });
        }
        Ok(Self {
            algorithm,
            bytes: bytes.into(),
        })
    }
}

/// Whether an Ed25519 key is one of the few points under which signatures can be made without any secret;
/// all zeros is among them. Compared without the sign of x, in canonical spellings and others.
fn is_of_small_order(key: &[u8]) -> bool {
    const ORDER_8: [&[u8]; 2] = [
        b"\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0\
          \xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05",
        b"\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f\
          \x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a",
    ];
    let [first, middle @ .., last] = key else {
        return false;
    };
    let last = last & 0x7f;
    let all = |byte: u8| middle.iter().all(|b| *b == byte);
    // y is 0 or 1; or -1, or 0 or 1 written with the prime added.
    let is_low = *first <= 1 && last == 0 && all(0);
    let is_high = (0xec..=0xee).contains(first) && last == 0x7f && all(0xff);
    let is_order_8 = |y: &&[u8]| y[..31] == key[..31] && y[31] == last;
    is_low || is_high || ORDER_8.iter().any(is_order_8)
}

/// Whether these are the coordinates of a point of the curve: key agreement takes no others.
fn is_on_curve(curve: &'static agreement::Algorithm, point: &[u8]) -> bool {
    let random = ring::rand::SystemRandom::new();
    let own = agreement::EphemeralPrivateKey::generate(curve, &random)
        .expect("the system has no random bytes");
    let point = agreement::UnparsedPublicKey::new(curve, point);
    agreement::agree_ephemeral(own, &point, |_| ()).is_ok()
}

/// Which of the public keys the signature fits, by its place; none where it fits none.
pub fn verify_signature(
    scheme: Scheme,
    keys: &[PublicKey],
    message: &[u8],
    signature: &[u8],
) -> Option<usize> {
    keys.iter().position(|key| {
        let verifier = UnparsedPublicKey::new(scheme.verification(), &key.bytes);
        key.algorithm == scheme.algorithm() && verifier.verify(message, signature).is_ok()
    })
}

/// One active value of a secret.
pub struct Key {
    bytes: Box<[u8]>,
    /// By hash function, made when first needed: a source uses one of the four.
    hmac: [OnceLock<Box<hmac::Key>>; 4],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(withheld)")
    }
}

impl Key {
    /// The key that a configured value stands for. A weak key is one shorter than [`MIN_KEY`].
    pub fn decode(form: KeyForm, value: &[u8], allow_weak: bool) -> Result<Self, KeyError> {
        let bytes = form.decode(value)?;
        // A digest is as strong as what it was made of.
        let strength = bytes.len().min(value.len());
        match strength {
            0 => Err(KeyError::Empty),
            length if length < MIN_KEY && !allow_weak => Err(KeyError::TooShort { length }),
            _ => Ok(Self {
                bytes: bytes.into(),
                hmac: Default::default(),
            }),
        }
    }

    fn hmac(&self, hash: Hash) -> &hmac::Key {
        self.hmac[hash as usize].get_or_init(|| Box::new(hmac::Key::new(hash.hmac(), &self.bytes)))
    }
}

fn base64(value: &[u8]) -> Result<Vec<u8>, KeyError> {
    let padded = BASE64.decode(value);
    padded
        .or_else(|_| BASE64_NOPAD.decode(value))
        .map_err(|_| KeyError::NotBase64)
}

/// What stands between the lines of a public key's PEM (RFC 7468).
fn pem(value: &[u8]) -> Result<Vec<u8>, KeyError> {
    use rustls::pki_types::pem::{SectionKind, from_buf};
    match from_buf(&mut &*value) {
        Ok(Some((SectionKind::PublicKey, der))) => Ok(der),
        _ => Err(KeyError::NotPem),
    }
}

/// The keys of a source by the manifest's names for them; several values of one are active at once while it
/// is being rotated. Secrets and public keys never answer to one another's names.
#[derive(Debug, Default)]
pub struct Keyring {
    secrets: BTreeMap<String, Vec<Key>>,
    public: BTreeMap<String, Vec<PublicKey>>,
}

impl Keyring {
    /// Makes a secret's name known, be there a value or not.
    pub fn declare(&mut self, name: &str) {
        self.secrets.entry(name.to_owned()).or_default();
    }

    /// Makes a public key's name known, be there a value or not.
    pub fn declare_public(&mut self, name: &str) {
        self.public.entry(name.to_owned()).or_default();
    }

    /// Adds an active value.
    pub fn add(&mut self, name: &str, key: Key) {
        self.secrets.entry(name.to_owned()).or_default().push(key);
    }

    /// Adds an active public key.
    pub fn add_public(&mut self, name: &str, key: PublicKey) {
        self.public.entry(name.to_owned()).or_default().push(key);
    }

    /// The active values; none where the name is not known as a secret's.
    pub fn get(&self, name: &str) -> Option<&[Key]> {
        self.secrets.get(name).map(Vec::as_slice)
    }

    /// The active public keys; none where the name is not known as a public key's.
    pub fn public(&self, name: &str) -> Option<&[PublicKey]> {
        self.public.get(name).map(Vec::as_slice)
    }
}

/// A piece of a message.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// The key that is being tried. In plain digests only.
    ThisKey,
    /// Another secret's key. In plain digests only.
    Key(&'a Key),
}

/// Which of the keys the signature fits, by its place; none where it fits none.
pub fn verify_mac(
    mac: Mac,
    keys: &[Key],
    message: &[Piece<'_>],
    signature: &[u8],
) -> Option<usize> {
    keys.iter().position(|key| match (mac, message) {
        // The commonest form needs one pass and no second comparison.
        (Mac::Hmac(hash), [Piece::Bytes(whole)]) => {
            hmac::verify(key.hmac(hash), whole, signature).is_ok()
        }
        _ => equal(&compute_mac(mac, key, message), signature),
    })
}

/// Which of the keys the value is; none where it is none of them.
pub fn verify_token(keys: &[Key], value: &[u8]) -> Option<usize> {
    keys.iter().position(|key| equal(&key.bytes, value))
}

/// A secret as a provider repeats it. For who sends as a provider would; verification never takes this way.
pub fn show_token(key: &Key) -> Vec<u8> {
    key.bytes.to_vec()
}

/// The MAC of a message. For who signs as a provider would; verification never takes this way.
pub fn sign(mac: Mac, key: &Key, message: &[Piece<'_>]) -> Vec<u8> {
    compute_mac(mac, key, message)
}

fn compute_mac(mac: Mac, key: &Key, message: &[Piece<'_>]) -> Vec<u8> {
    let pieces = message.iter().map(|piece| match piece {
        Piece::Bytes(bytes) => bytes,
        Piece::ThisKey => &*key.bytes,
        Piece::Key(other) => &*other.bytes,
    });
    match mac {
        Mac::Hmac(hash) => {
            let mut context = hmac::Context::with_key(key.hmac(hash));
            pieces.for_each(|piece| context.update(piece));
            context.sign().as_ref().to_vec()
        }
        Mac::Plain(hash) => hash.of_pieces(pieces),
    }
}

/// Equality in a time that tells nothing of where two values differ: that of their HMACs under a key that
/// nobody knows.
fn equal(a: &[u8], b: &[u8]) -> bool {
    static KEY: OnceLock<hmac::Key> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new())
            .expect("the system has no random bytes")
    });
    hmac::verify(key, a, hmac::sign(key, b).as_ref()).is_ok()
}

#[cfg(test)]
mod tests;

//! Keys and verification: the only place that names `ring`.
//!
//! Keys are decoded strictly and refused by reason, never by value; nothing here prints one. Comparison is
//! constant-time throughout: `ring`'s own, or equality of HMACs under a random key of this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use ring::{digest, hmac};
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
        let mut context = digest::Context::new(self.digest());
        pieces.into_iter().for_each(|piece| context.update(piece));
        context.finish().as_ref().to_vec()
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
    /// Its bytes, written as hexadecimal.
    Hex,
    /// Its bytes, written as base64.
    Base64,
    /// Its bytes, written as base64 behind an optional `whsec_`.
    Whsec,
    /// Its SHA-1 digest.
    Sha1,
    /// Its SHA-256 digest.
    Sha256,
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
    /// Too easily guessed.
    #[error("its key has {length} bytes; fewer than {MIN_KEY} need `allow_weak_key = true`")]
    TooShort {
        /// The decoded key's length in bytes.
        length: usize,
    },
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
        let bytes = match form {
            KeyForm::Raw => value.to_vec(),
            KeyForm::Hex => HEXLOWER_PERMISSIVE
                .decode(value)
                .map_err(|_| KeyError::NotHex)?,
            KeyForm::Base64 => base64(value)?,
            KeyForm::Whsec => base64(value.strip_prefix(b"whsec_").unwrap_or(value))?,
            KeyForm::Sha1 => Hash::Sha1.of(value),
            KeyForm::Sha256 => Hash::Sha256.of(value),
        };
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

/// The secrets of a source by the manifest's names for them; several values of one are active at once while
/// it is being rotated.
#[derive(Debug, Default)]
pub struct Keyring(BTreeMap<String, Vec<Key>>);

impl Keyring {
    /// Adds an active value.
    pub fn add(&mut self, name: &str, key: Key) {
        self.0.entry(name.to_owned()).or_default().push(key);
    }

    /// The active values; none where the name is not known.
    pub fn get(&self, name: &str) -> Option<&[Key]> {
        self.0.get(name).map(Vec::as_slice)
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

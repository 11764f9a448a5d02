//! What was signed, put together from segments, and the question whether a signature fits it.
//!
//! The host fills in body, method and URL and holds the keys: neither the content nor a secret is
//! copied into the plugin, which learns no more than yes or no.

use crate::bindings::hookgate::provider::types::{
    BodyDigest, DigestAlgorithm, Encoding, Key, MacAlgorithm, MacRequest, Part, Rejection, Segment,
    Signature, SignatureScheme,
};
use crate::bindings::hookgate::provider::verification as host;
use crate::encode;

pub use host::{crc32, digest, verify_jwt, verify_signature, verify_token};

/// The digest of the body in lower-case hexadecimal. It is public: a plugin may compare it.
pub fn body_digest(algorithm: DigestAlgorithm) -> String {
    encode::hex(&host::digest(algorithm, &[Segment::Body]))
}

/// Verifies that the value is one of the secret's active values.
///
/// # Errors
///
/// Missing signature where there is no value, bad signature where it is another; `place` says where it
/// should be, such as `header x-token`.
pub fn check_token<T: AsRef<[u8]>>(
    secret: &str,
    place: &str,
    value: Option<T>,
) -> Result<(), Rejection> {
    match value {
        None => Err(Rejection::missing_signature([place, ": absent"].concat())),
        Some(value) if host::verify_token(secret, value.as_ref()) => Ok(()),
        Some(_) => Err(Rejection::bad_signature(
            [place, ": not the secret"].concat(),
        )),
    }
}

impl Signature {
    /// A signature in lower-case hexadecimal; upper case is taken too.
    pub fn hex(text: &str) -> Self {
        Self::encoded(Encoding::Hex, text)
    }

    /// A signature in padded base64 of the standard alphabet.
    pub fn base64(text: &str) -> Self {
        Self::encoded(Encoding::Base64, text)
    }

    /// A signature in another encoding.
    pub fn encoded(encoding: Encoding, text: &str) -> Self {
        Self {
            encoding,
            text: text.as_bytes().to_vec(),
        }
    }
}

/// The content that was signed: its segments follow one another without a separator.
#[derive(Default)]
pub struct Message(Vec<Segment>);

impl Message {
    /// A message without segments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that the plugin has.
    #[must_use]
    pub fn literal(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.segment(Segment::Literal(bytes.into()))
    }

    /// Adds the body as received.
    #[must_use]
    pub fn body(self) -> Self {
        self.segment(Segment::Body)
    }

    /// Adds a digest of the body as text.
    #[must_use]
    pub fn body_digest(self, algorithm: DigestAlgorithm, encoding: Encoding) -> Self {
        self.segment(Segment::BodyDigest(BodyDigest {
            algorithm,
            encoding,
        }))
    }

    /// Adds any segment.
    #[must_use]
    pub fn segment(mut self, segment: Segment) -> Self {
        self.0.push(segment);
        self
    }

    /// The segments, for the host's other functions.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Verifies that one of the signatures fits under any active value of the secret.
    ///
    /// # Errors
    ///
    /// Missing signature where there are none, bad signature where none fits.
    pub fn verify_mac(
        &self,
        algorithm: MacAlgorithm,
        secret: &str,
        signatures: impl IntoIterator<Item = Signature>,
    ) -> Result<(), Rejection> {
        any(signatures, |signature| {
            host::verify_mac(algorithm, secret, &self.0, signature)
        })
    }

    /// Verifies that one of the signatures fits under any active value of the key.
    ///
    /// # Errors
    ///
    /// As for [`Message::verify_mac`].
    pub fn verify_signature(
        &self,
        scheme: SignatureScheme,
        key: &Key,
        signatures: impl IntoIterator<Item = Signature>,
    ) -> Result<(), Rejection> {
        any(signatures, |signature| {
            host::verify_signature(scheme, key, &self.0, signature)
        })
    }

    /// The part of a response that holds this message's MAC.
    pub fn into_mac(self, algorithm: MacAlgorithm, secret: &str, encoding: Encoding) -> Part {
        Part::Mac(MacRequest {
            algorithm,
            secret: secret.into(),
            message: self.0,
            encoding,
        })
    }
}

fn any(
    signatures: impl IntoIterator<Item = Signature>,
    fits: impl Fn(&Signature) -> bool,
) -> Result<(), Rejection> {
    let mut none = true;
    for signature in signatures {
        if fits(&signature) {
            return Ok(());
        }
        none = false;
    }
    Err(if none {
        Rejection::missing_signature("no signature of a known form")
    } else {
        Rejection::bad_signature("no signature fits")
    })
}

impl FromIterator<Segment> for Message {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

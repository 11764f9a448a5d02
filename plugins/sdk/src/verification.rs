//! What was signed, put together from segments, and the question whether a signature fits it.
//!
//! The host fills in body, method and URL and holds the keys: neither the content nor a secret is
//! copied into the plugin, which learns no more than yes or no.

use crate::bindings::hookgate::provider::types::{
    BodyDigest, DigestAlgorithm, Encoding, MacAlgorithm, Rejection, Segment, Signature,
};
use crate::bindings::hookgate::provider::verification as host;

pub use host::{digest, verify_jwt, verify_signature, verify_token};

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
        let mut none = true;
        for signature in signatures {
            if host::verify_mac(algorithm, secret, &self.0, &signature) {
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
}

impl FromIterator<Segment> for Message {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

//! Bytes as text: the encodings of signatures and digests. Decoding is strict, so that no two texts that a
//! careless decoder would take for each other count as one signature.

use data_encoding::{BASE64, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE, HEXUPPER};

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Bytes,
    /// Hexadecimal; either case is decoded.
    Hex,
    /// Upper-case hexadecimal; either case is decoded.
    HexUpper,
    /// Standard alphabet, padded.
    Base64,
    /// URL-safe alphabet, padding neither written nor needed.
    Base64Url,
}

impl Encoding {
    /// The text of these bytes.
    pub fn encode(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Bytes => bytes.to_vec(),
            Self::Hex => HEXLOWER.encode(bytes).into(),
            Self::HexUpper => HEXUPPER.encode(bytes).into(),
            Self::Base64 => BASE64.encode(bytes).into(),
            Self::Base64Url => BASE64URL_NOPAD.encode(bytes).into(),
        }
    }

    /// The bytes of this text; none where it is not one.
    pub fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Bytes => Some(text.to_vec()),
            Self::Hex | Self::HexUpper => HEXLOWER_PERMISSIVE.decode(text).ok(),
            Self::Base64 => BASE64.decode(text).ok(),
            Self::Base64Url if text.ends_with(b"=") => BASE64URL.decode(text).ok(),
            Self::Base64Url => BASE64URL_NOPAD.decode(text).ok(),
        }
    }
}

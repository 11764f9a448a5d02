//! The interface's enums as the gateway's own.

use super::wit;
use crate::crypto::jwt::JwtAlgorithm;
use crate::crypto::{Hash, Mac, Scheme};
use crate::encoding::Encoding;

impl From<wit::Encoding> for Encoding {
    fn from(encoding: wit::Encoding) -> Self {
        match encoding {
            wit::Encoding::Bytes => Self::Bytes,
            wit::Encoding::Hex => Self::Hex,
            wit::Encoding::HexUpper => Self::HexUpper,
            wit::Encoding::Base64 => Self::Base64,
            wit::Encoding::Base64Url => Self::Base64Url,
        }
    }
}

impl From<wit::DigestAlgorithm> for Hash {
    fn from(algorithm: wit::DigestAlgorithm) -> Self {
        match algorithm {
            wit::DigestAlgorithm::Sha1 => Self::Sha1,
            wit::DigestAlgorithm::Sha256 => Self::Sha256,
            wit::DigestAlgorithm::Sha384 => Self::Sha384,
            wit::DigestAlgorithm::Sha512 => Self::Sha512,
        }
    }
}

impl From<wit::MacAlgorithm> for Mac {
    fn from(algorithm: wit::MacAlgorithm) -> Self {
        match algorithm {
            wit::MacAlgorithm::HmacSha1 => Self::Hmac(Hash::Sha1),
            wit::MacAlgorithm::HmacSha256 => Self::Hmac(Hash::Sha256),
            wit::MacAlgorithm::HmacSha384 => Self::Hmac(Hash::Sha384),
            wit::MacAlgorithm::HmacSha512 => Self::Hmac(Hash::Sha512),
            wit::MacAlgorithm::Sha1 => Self::Plain(Hash::Sha1),
            wit::MacAlgorithm::Sha256 => Self::Plain(Hash::Sha256),
            wit::MacAlgorithm::Sha384 => Self::Plain(Hash::Sha384),
            wit::MacAlgorithm::Sha512 => Self::Plain(Hash::Sha512),
        }
    }
}

impl From<wit::JwtAlgorithm> for JwtAlgorithm {
    fn from(algorithm: wit::JwtAlgorithm) -> Self {
        match algorithm {
            wit::JwtAlgorithm::Hs256 => Self::Hs256,
            wit::JwtAlgorithm::Hs384 => Self::Hs384,
            wit::JwtAlgorithm::Hs512 => Self::Hs512,
            wit::JwtAlgorithm::Es256 => Self::Es256,
            wit::JwtAlgorithm::Es384 => Self::Es384,
            wit::JwtAlgorithm::Rs256 => Self::Rs256,
            wit::JwtAlgorithm::Rs384 => Self::Rs384,
            wit::JwtAlgorithm::Rs512 => Self::Rs512,
            wit::JwtAlgorithm::Ps256 => Self::Ps256,
            wit::JwtAlgorithm::Eddsa => Self::Eddsa,
        }
    }
}

impl From<wit::SignatureScheme> for Scheme {
    fn from(scheme: wit::SignatureScheme) -> Self {
        match scheme {
            wit::SignatureScheme::Ed25519 => Self::Ed25519,
            wit::SignatureScheme::EcdsaP256Sha256Der => Self::EcdsaP256Sha256Der,
            wit::SignatureScheme::EcdsaP256Sha256Fixed => Self::EcdsaP256Sha256Fixed,
            wit::SignatureScheme::RsaPkcs1Sha1 => Self::RsaPkcs1Sha1,
            wit::SignatureScheme::RsaPkcs1Sha256 => Self::RsaPkcs1Sha256,
            wit::SignatureScheme::RsaPkcs1Sha512 => Self::RsaPkcs1Sha512,
            wit::SignatureScheme::RsaPssSha256 => Self::RsaPssSha256,
        }
    }
}

//! What the bytes of a public key are: raw ones by their length, DER by its structure.
//!
//! Reads just enough DER to know the algorithm and to cut out what verification takes; knows no cryptography
//! and no text form. Anything beside the known shapes is refused: nothing here guesses.

use super::{PublicAlgorithm, PublicKeyError};

/// SEQUENCE { SEQUENCE { id-Ed25519 }, BIT STRING } up to the key.
const ED25519: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING } up to the key.
const P256: &[u8] =
    b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
/// The same with secp384r1.
const P384: &[u8] =
    b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00";
/// The contents of SEQUENCE { rsaEncryption, NULL }.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// Smaller ones can be factored, larger ones cannot be verified with. In bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The algorithm of a key, and its bytes as verification takes them: 32 of Ed25519, 65 of a P-256 point,
/// 97 of a P-384 point, or the DER of an RSA key (RFC 8017, A.1.1).
pub(super) fn read(bytes: &[u8]) -> Result<(PublicAlgorithm, &[u8]), PublicKeyError> {
    if let Some(key) = bytes.strip_prefix(ED25519).or(Some(bytes))
        && key.len() == 32
    {
        return Ok((PublicAlgorithm::Ed25519, key));
    }
    for (head, length, algorithm) in [
        (P256, 65, PublicAlgorithm::EcdsaP256),
        (P384, 97, PublicAlgorithm::EcdsaP384),
    ] {
        let key = bytes.strip_prefix(head).unwrap_or(bytes);
        if key.len() == length && key[0] == 4 {
            return Ok((algorithm, key));
        }
    }
    let key = rsa_of_spki(bytes).unwrap_or(bytes);
    let length = bytes.len();
    match rsa_bits(key) {
        Some(bits) if RSA_BITS.contains(&bits) => Ok((PublicAlgorithm::Rsa, key)),
        Some(bits) => Err(PublicKeyError::RsaSize { bits }),
        None => Err(PublicKeyError::NoKey { length }),
    }
}

fn rsa_of_spki(bytes: &[u8]) -> Option<&[u8]> {
    let (spki, []) = take(SEQUENCE, bytes)? else {
        return None;
    };
    let (RSA, rest) = take(SEQUENCE, spki)? else {
        return None;
    };
    match take(BIT_STRING, rest)? {
        ([0, key @ ..], []) => Some(key),
        _ => None,
    }
}

/// The modulus's length.
fn rsa_bits(key: &[u8]) -> Option<usize> {
    let (numbers, []) = take(SEQUENCE, key)? else {
        return None;
    };
    let (modulus, rest) = take(INTEGER, numbers)?;
    let (_exponent, []) = take(INTEGER, rest)? else {
        return None;
    };
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let modulus = &modulus[zeros..];
    let first = modulus.first()?;
    Some(modulus.len() * 8 - first.leading_zeros() as usize)
}

/// The contents of the element that `bytes` begin with, and what follows it.
fn take(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (
            usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)),
            rest.get(2..)?,
        ),
        _ => return None,
    };
    (*found == tag)
        .then(|| rest.split_at_checked(length))
        .flatten()
}

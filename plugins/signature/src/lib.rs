//! Any provider that signs with a private key and puts the signature into a header, described by the source's
//! options alone.
//!
//! As `hmac`, but for the key: the operator configures the provider's public key. Providers whose keys are
//! fetched, or whose signature is a token, have plugins of their own or `jwt`.

use hookgate_sdk::family::options::{required, wrong};
use hookgate_sdk::family::signed::Signed;
use hookgate_sdk::{Key, Provider, Rejection, SignatureScheme, Verdict};

struct PublicKeySignature;

hookgate_sdk::provider!(PublicKeySignature);

impl Provider for PublicKeySignature {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let options = Signed::read()?;
        let scheme = scheme()?;
        if options.holds_secret() {
            return Err(wrong("signed", "holds {secret}: there is none"));
        }
        let key = Key::Named("public_key".into());
        options.handle(None, |message, signatures| {
            message.verify_signature(scheme, &key, signatures)
        })
    }
}

fn scheme() -> Result<SignatureScheme, Rejection> {
    Ok(match required("algorithm")?.as_str() {
        "ed25519" => SignatureScheme::Ed25519,
        "ecdsa-p256" => SignatureScheme::EcdsaP256Sha256Der,
        "ecdsa-p256-fixed" => SignatureScheme::EcdsaP256Sha256Fixed,
        "rsa-sha1" => SignatureScheme::RsaPkcs1Sha1,
        "rsa-sha256" => SignatureScheme::RsaPkcs1Sha256,
        "rsa-sha512" => SignatureScheme::RsaPkcs1Sha512,
        "rsa-pss-sha256" => SignatureScheme::RsaPssSha256,
        _ => {
            return Err(wrong(
                "algorithm",
                "is none of ed25519, ecdsa-p256, ecdsa-p256-fixed, rsa-sha1, rsa-sha256, rsa-sha512, \
                 rsa-pss-sha256",
            ));
        }
    })
}

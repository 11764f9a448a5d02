//! Any provider that sends an HMAC in a header, described by the source's options alone.
//!
//! The options say which header holds the signature, how it is written, what is signed, and where id,
//! type, time and order are in a delivery. Knows no provider: what a program is needed for has a plugin
//! of its own.

use hookgate_sdk::family::challenge::Mac;
use hookgate_sdk::family::options::{text, wrong};
use hookgate_sdk::family::signed::Signed;
use hookgate_sdk::{Encoding, MacAlgorithm, Provider, Rejection, Verdict};

struct Hmac;

hookgate_sdk::provider!(Hmac);

impl Provider for Hmac {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let options = Signed::read()?;
        let algorithm = algorithm()?;
        if options.holds_secret() != is_plain(algorithm) {
            return Err(wrong(
                "signed",
                "holds {secret} where algorithm is sha1, sha256 or sha512, and only there",
            ));
        }
        let mac = Mac {
            algorithm,
            encoding: answer_encoding()?,
        };
        options.handle(Some(mac), |message, signatures| {
            message.verify_mac(algorithm, "secret", signatures)
        })
    }
}

fn algorithm() -> Result<MacAlgorithm, Rejection> {
    match text("algorithm").as_deref() {
        None | Some("hmac-sha256") => Ok(MacAlgorithm::HmacSha256),
        Some("hmac-sha1") => Ok(MacAlgorithm::HmacSha1),
        Some("hmac-sha384") => Ok(MacAlgorithm::HmacSha384),
        Some("hmac-sha512") => Ok(MacAlgorithm::HmacSha512),
        Some("sha1") => Ok(MacAlgorithm::Sha1),
        Some("sha256") => Ok(MacAlgorithm::Sha256),
        Some("sha512") => Ok(MacAlgorithm::Sha512),
        Some(_) => Err(wrong(
            "algorithm",
            "is none of hmac-sha1, hmac-sha256, hmac-sha384, hmac-sha512, sha1, sha256, sha512",
        )),
    }
}

fn is_plain(algorithm: MacAlgorithm) -> bool {
    matches!(
        algorithm,
        MacAlgorithm::Sha1 | MacAlgorithm::Sha256 | MacAlgorithm::Sha512
    )
}

fn answer_encoding() -> Result<Encoding, Rejection> {
    match text("answer_encoding").as_deref() {
        None | Some("hex") => Ok(Encoding::Hex),
        Some("base64") => Ok(Encoding::Base64),
        Some(_) => Err(wrong("answer_encoding", "is neither hex nor base64")),
    }
}

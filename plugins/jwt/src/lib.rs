//! Any provider that sends a JSON Web Token with a delivery, or as its body, described by the source's options
//! alone.
//!
//! The options say which algorithms and which key count, who must have issued the token for whom, and which
//! claim holds the body's digest: without one the token covers no body. `exp` and `nbf` are the host's to check.

use hookgate_sdk::family::challenge::Challenge;
use hookgate_sdk::family::locator::{Given, Locator};
use hookgate_sdk::family::options::{self, Facts, Timestamp, text, wrong};
use hookgate_sdk::{
    DigestAlgorithm, Elements, Json, JsonValue, JwksKey, JwtAlgorithm, Key, Provider, Rejection,
    Segment, Verdict, delivery, encode, verification,
};

struct Jwt;

hookgate_sdk::provider!(Jwt);

impl Provider for Jwt {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let options = Options::read()?;
        let answer = options.challenge.answered(None)?;
        if let Some(response) = answer.clone().filter(|_| !options.challenge.is_signed) {
            return response.respond();
        }
        let claims = options.claims()?;
        check_claims(&claims)?;
        check_body(&claims)?;
        if let Some(response) = answer {
            return response.respond();
        }
        let given = Given {
            elements: Elements::single(""),
            claims: Some(&claims),
        };
        let signed_at = options.timestamp.signed_at(given)?;
        options.facts.event(given, signed_at)?.accept()
    }
}

struct Options {
    algorithms: Vec<JwtAlgorithm>,
    key: Key,
    timestamp: Timestamp,
    facts: Facts,
    challenge: Challenge,
}

impl Options {
    fn read() -> Result<Self, Rejection> {
        let algorithms = algorithms()?;
        let timestamp = Timestamp::read()?;
        if !matches!(timestamp.locator, None | Some(Locator::Claim(_))) {
            return Err(wrong("timestamp", "is not claim:, which alone is signed"));
        }
        Ok(Self {
            key: key(&algorithms)?,
            algorithms,
            facts: Facts::read(timestamp.unit)?,
            timestamp,
            challenge: Challenge::read()?,
        })
    }

    fn claims(&self) -> Result<Json, Rejection> {
        let token = token()?;
        verification::verify_jwt(&self.algorithms, &self.key, &token)
            .map(Json::Text)
            .ok_or_else(|| Rejection::bad_signature("the token does not fit, or not now"))
    }
}

/// The token: of the place that the option names, or the whole body.
fn token() -> Result<Vec<u8>, Rejection> {
    let place = options::required("token")?;
    if place == "body" {
        return Ok(delivery::whole_body().trim_ascii().to_vec());
    }
    let locator = options::locator("token")?.ok_or_else(|| wrong("token", "is required"))?;
    let found = locator
        .find(Given::nothing())?
        .ok_or_else(|| Rejection::missing_signature([&place, ": absent"].concat()))?;
    let prefix = text("prefix").unwrap_or_default();
    match found.get(..prefix.len()).zip(found.get(prefix.len()..)) {
        Some((before, token)) if before.eq_ignore_ascii_case(&prefix) => {
            Ok(token.trim_ascii().as_bytes().to_vec())
        }
        _ => Err(Rejection::missing_signature(
            [&place, ": without its prefix"].concat(),
        )),
    }
}

fn algorithms() -> Result<Vec<JwtAlgorithm>, Rejection> {
    let names = options::required("algorithms")?;
    let algorithms = names.split_ascii_whitespace().map(|name| {
        Ok(match name {
            "HS256" => JwtAlgorithm::Hs256,
            "HS384" => JwtAlgorithm::Hs384,
            "HS512" => JwtAlgorithm::Hs512,
            "ES256" => JwtAlgorithm::Es256,
            "ES384" => JwtAlgorithm::Es384,
            "RS256" => JwtAlgorithm::Rs256,
            "RS384" => JwtAlgorithm::Rs384,
            "RS512" => JwtAlgorithm::Rs512,
            "PS256" => JwtAlgorithm::Ps256,
            "EdDSA" => JwtAlgorithm::Eddsa,
            _ => return Err(wrong("algorithms", "holds an unknown one")),
        })
    });
    algorithms.collect()
}

/// A secret makes HMACs and a public key none: algorithms of both kinds at once would let one pass for the other.
fn key(algorithms: &[JwtAlgorithm]) -> Result<Key, Rejection> {
    let is_hmac = |algorithm: &JwtAlgorithm| {
        matches!(
            algorithm,
            JwtAlgorithm::Hs256 | JwtAlgorithm::Hs384 | JwtAlgorithm::Hs512
        )
    };
    let hmacs = algorithms
        .iter()
        .filter(|algorithm| is_hmac(algorithm))
        .count();
    let url = text("jwks");
    match (hmacs, url) {
        (0, Some(url)) => Ok(Key::Jwks(JwksKey {
            url,
            id: String::new(),
        })),
        (0, None) => Ok(Key::Named("public_key".into())),
        (count, None) if count == algorithms.len() => Ok(Key::Named("secret".into())),
        (_, Some(_)) => Err(wrong("jwks", "holds public keys, which make no HMACs")),
        _ => Err(wrong("algorithms", "holds HMACs and others")),
    }
}

fn check_claims(claims: &Json) -> Result<(), Rejection> {
    if let Some(issuers) = text("issuer") {
        let issuer = claims.text("/iss")?;
        let known = issuers
            .split_ascii_whitespace()
            .any(|known| Some(known) == issuer.as_deref());
        if !known {
            return Err(Rejection::bad_signature("iss: another issuer"));
        }
    }
    if let Some(audience) = text("audience") {
        check_audience(claims, &audience)?;
    }
    let demanded = text("claims").unwrap_or_default();
    for demand in demanded.split_ascii_whitespace() {
        let (pointer, value) = demand
            .split_once('=')
            .ok_or_else(|| wrong("claims", "holds something that is not /POINTER=VALUE"))?;
        if claims.text(pointer)?.as_deref() != Some(value) {
            return Err(Rejection::bad_signature(
                [pointer, ": another value"].concat(),
            ));
        }
    }
    Ok(())
}

/// An audience is one text, or a list of which one must fit.
fn check_audience(claims: &Json, wanted: &str) -> Result<(), Rejection> {
    if let Ok(Some(JsonValue::Raw(_))) = claims.value("/aud") {
        let mut place = 0;
        while let Some(one) = claims.text(&["/aud/", &place.to_string()].concat())? {
            if one == wanted {
                return Ok(());
            }
            place += 1;
        }
    } else if claims.text("/aud")?.as_deref() == Some(wanted) {
        return Ok(());
    }
    Err(Rejection::bad_signature("aud: another audience"))
}

fn check_body(claims: &Json) -> Result<(), Rejection> {
    let Some(pointer) = text("body_sha256") else {
        return Ok(());
    };
    let claim = claims
        .text(&pointer)?
        .ok_or_else(|| Rejection::bad_signature([&pointer, ": absent"].concat()))?;
    let digest = verification::digest(DigestAlgorithm::Sha256, &[Segment::Body]);
    let fits = match text("body_sha256_encoding").as_deref() {
        None | Some("hex") => claim.eq_ignore_ascii_case(&encode::hex(&digest)),
        Some("base64") => encode::from_base64(claim.as_bytes()) == Some(digest),
        Some(_) => return Err(wrong("body_sha256_encoding", "is neither hex nor base64")),
    };
    if fits {
        Ok(())
    } else {
        Err(Rejection::bad_signature(
            [&pointer, ": not the body's"].concat(),
        ))
    }
}

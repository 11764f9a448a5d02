//! Any provider that proves itself by a token that it repeats in every delivery, described by the source's
//! options alone.
//!
//! The token may be in a header (behind `Bearer `, or a user and password in base64 behind `Basic `), in the
//! query, or in a field of the body. Such a token signs nothing: it is as secret as everything that sees a
//! request is, and no body is covered.

use hookgate_sdk::family::challenge::Challenge;
use hookgate_sdk::family::locator::Given;
use hookgate_sdk::family::options::{self, Facts, text, wrong};
use hookgate_sdk::{Provider, Rejection, Verdict, encode, time, verification};

struct Token;

hookgate_sdk::provider!(Token);

impl Provider for Token {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let facts = Facts::read(time::from_seconds)?;
        let challenge = Challenge::read()?;
        let answer = challenge.answered(None)?;
        if let Some(response) = answer.clone().filter(|_| !challenge.is_signed) {
            return response.respond();
        }
        verify()?;
        if let Some(response) = answer {
            return response.respond();
        }
        facts.event(Given::nothing(), None)?.accept()
    }
}

fn verify() -> Result<(), Rejection> {
    let place = options::required("token")?;
    let locator = options::locator("token")?.ok_or_else(|| wrong("token", "is required"))?;
    let found = locator.find(Given::nothing())?;
    let prefix = text("prefix").unwrap_or_default();
    let Some(found) = found else {
        return verification::check_token::<&str>("secret", &place, None);
    };
    let token = behind(&found, &prefix)
        .ok_or_else(|| Rejection::missing_signature([&place, ": without its prefix"].concat()))?;
    match text("encoding").as_deref() {
        None | Some("text") => verification::check_token("secret", &place, Some(token)),
        Some("base64") => {
            let decoded = encode::from_base64(token.as_bytes())
                .ok_or_else(|| Rejection::malformed([&place, ": not base64"].concat()))?;
            verification::check_token("secret", &place, Some(decoded))
        }
        Some(_) => Err(wrong("encoding", "is neither text nor base64")),
    }
}

/// What follows the prefix, in which case does not matter: `Bearer` and `Basic` are such.
fn behind<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let found = text.get(..prefix.len())?;
    let rest = text.get(prefix.len()..)?;
    found
        .eq_ignore_ascii_case(prefix)
        .then(|| rest.trim_ascii_start())
        .filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn a_prefix_has_any_case_and_something_behind_it() {
        assert_eq!(behind("bearer  a b", "Bearer "), Some("a b"));
        assert_eq!(behind("a", ""), Some("a"));
        for text in ["Bearer", "Bearer ", "Basic a", "é"] {
            assert_eq!(behind(text, "Bearer "), None, "{text}");
        }
    }
}

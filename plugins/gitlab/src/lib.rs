//! GitLab: a secret token that `X-Gitlab-Token` repeats, or the signature of Standard Webhooks where the hook has
//! a signing token.
//!
//! Either is enough: a source has the secret of the one that its hook uses. The plain token covers no body.
//! `Idempotency-Key` names the event over its retries. What must stay in order shares the project.

use hookgate_sdk::{
    Elements, Event, Json, MacAlgorithm, Message, Provider, Rejection, Signature, Verdict,
    delivery, time, verification,
};

struct GitLab;

hookgate_sdk::provider!(GitLab);

impl Provider for GitLab {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signed = Signed::read()?;
        let by_signature = match &signed {
            Some(signed) => signed.verify(),
            None => Err(Rejection::missing_signature(
                "neither X-Gitlab-Token nor webhook-signature",
            )),
        };
        let signed_at = match by_signature {
            Ok(signed_at) => Some(signed_at),
            Err(rejection) => by_token(rejection).map(|()| None)?,
        };
        Event {
            id: id(signed)?,
            event_type: delivery::header("x-gitlab-event")?,
            ordering_key: Json::Body.first_scalar(&["/project/id", "/project_id", "/group_id"])?,
            signed_at,
            ..Event::default()
        }
        .accept()
    }
}

fn by_token(otherwise: Rejection) -> Result<(), Rejection> {
    match delivery::header("x-gitlab-token")? {
        Some(token) => verification::check_token("secret", "X-Gitlab-Token", Some(&token)),
        None => Err(otherwise),
    }
}

fn id(signed: Option<Signed>) -> Result<Option<String>, Rejection> {
    match (delivery::header("idempotency-key")?, signed) {
        (Some(key), _) => Ok(Some(key)),
        (None, Some(signed)) => Ok(Some(signed.id)),
        (None, None) => delivery::header("x-gitlab-event-uuid"),
    }
}

/// What the headers of Standard Webhooks say.
struct Signed {
    id: String,
    timestamp: String,
    signatures: String,
}

impl Signed {
    fn read() -> Result<Option<Self>, Rejection> {
        let Some(signatures) = delivery::header("webhook-signature")? else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: delivery::signature_header("webhook-id")?,
            timestamp: delivery::signature_header("webhook-timestamp")?,
            signatures,
        }))
    }

    /// Verifies a signature and returns when it was made, in milliseconds since 1970.
    fn verify(&self) -> Result<u64, Rejection> {
        let signed_at = time::from_seconds(&self.timestamp)
            .ok_or_else(|| Rejection::malformed("webhook-timestamp: not a number of seconds"))?;
        let signatures = Elements::new(&self.signatures, b' ').with_prefix("v1,");
        Message::new()
            .literal([self.id.as_str(), ".", &self.timestamp, "."].concat())
            .body()
            .verify_mac(
                MacAlgorithm::HmacSha256,
                "signing_token",
                signatures.map(Signature::base64),
            )?;
        Ok(signed_at)
    }
}

//! What an operator does with a claim: look at it, and let its event be sent once more.

use serde::{Deserialize, Serialize};

use super::{Claim, ClaimStore, State, StoreError};

/// An event's claim as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// The claim; none where nothing is recorded.
    pub claim: Option<Claim>,
    /// Whether it was forgotten just now: the next delivery of the event is sent once more.
    pub forgotten: bool,
}

/// Looks at a claim, and forgets it first where that is asked for. Only an accepted one can be forgotten.
pub async fn look(store: &impl ClaimStore, key: &str, forgets: bool) -> Result<Looked, StoreError> {
    let found = store.look(key).await?;
    let accepted = found
        .as_ref()
        .filter(|claim| forgets && claim.state == State::Accepted);
    let Some(accepted) = accepted else {
        return Ok(Looked {
            claim: found,
            forgotten: false,
        });
    };
    let forgotten = store.forget(key, accepted.generation).await?;
    Ok(Looked {
        claim: store.look(key).await?,
        forgotten,
    })
}

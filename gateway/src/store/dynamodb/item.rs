//! A claim as an item, and back. Numbers and texts, so that a person can read it in the console.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::store::{Claim, State, StoreError, Token};

pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const PROCESSING: &str = "processing";
pub(super) const ACCEPTED: &str = "accepted";

pub(super) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(super) fn number(number: impl Into<u64>) -> AttributeValue {
    AttributeValue::N(number.into().to_string())
}

pub(super) fn token(token: Token) -> AttributeValue {
    AttributeValue::S(format!("{token:?}"))
}

/// The item that holds a claim.
pub(super) fn of(key: &str, claim: &Claim) -> Item {
    let state = match claim.state {
        State::Processing => PROCESSING,
        State::Accepted => ACCEPTED,
    };
    let response = claim.response.as_ref();
    let response = response.and_then(|response| serde_json::to_string(response).ok());
    let fields = [
        ("pk", Some(text(key))),
        ("version", Some(number(claim.version))),
        ("state", Some(text(state))),
        ("token", Some(token(claim.token))),
        ("lease_until", Some(number(claim.lease_until))),
        ("first_at", Some(number(claim.first_at))),
        ("accepted_at", claim.accepted_at.map(number)),
        ("generation", Some(number(claim.generation))),
        ("group", Some(text(&claim.group))),
        ("queue", Some(text(&claim.queue))),
        ("body_sha256", Some(text(&claim.body_sha256))),
        ("response", response.map(AttributeValue::S)),
        ("expires_at", Some(number(claim.expires_at))),
    ];
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// The claim that an item holds. What is not one is an outage: it must not count as absent.
pub(super) fn claim(item: &Item) -> Result<Claim, StoreError> {
    read(item).ok_or_else(|| {
        let key = item.get("pk").and_then(|pk| pk.as_s().ok());
        let key = key.map_or("?", String::as_str);
        StoreError::Refused(format!("the item {key} is not a claim"))
    })
}

fn read(item: &Item) -> Option<Claim> {
    let text = |name: &str| item.get(name)?.as_s().ok();
    Some(Claim {
        version: integer(item, "version")?,
        state: match text("state")?.as_str() {
            PROCESSING => State::Processing,
            ACCEPTED => State::Accepted,
            _ => return None,
        },
        token: Token::parse(text("token")?)?,
        lease_until: integer(item, "lease_until")?,
        first_at: integer(item, "first_at")?,
        accepted_at: integer(item, "accepted_at"),
        generation: integer(item, "generation")?,
        group: text("group")?.clone(),
        queue: text("queue")?.clone(),
        body_sha256: text("body_sha256")?.clone(),
        response: match text("response") {
            Some(response) => Some(serde_json::from_str(response).ok()?),
            None => None,
        },
        expires_at: integer(item, "expires_at")?,
    })
}

fn integer<N: std::str::FromStr>(item: &Item, name: &str) -> Option<N> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

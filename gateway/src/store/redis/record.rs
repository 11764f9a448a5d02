//! Records as hashes that a person can read, and the scripts' answers.
//!
//! A field of the hash is a field of [`Claim`]; the response is JSON.

use std::time::Duration;

use redis::Value;
use serde::Serialize as _;
use serde_json::Value as Json;

use crate::store::{Claim, Claimed, Grant, Token};

/// Fields that are numbers; all others but the response are text.
const NUMBERS: &[&str] = &[
    "version",
    "lease_until",
    "first_at",
    "accepted_at",
    "generation",
    "expires_at",
];

/// An answer that is none of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign(pub String);

impl Foreign {
    pub fn of(what: &impl std::fmt::Debug) -> Self {
        Self(format!("an unknown record or answer: {what:.300?}"))
    }
}

/// A token as records hold it.
pub(super) fn token_text(token: Token) -> String {
    match serde_json::to_value(token) {
        Ok(Json::String(text)) => text,
        other => unreachable!("a token is text, not {other:?}"),
    }
}

fn token(text: &str) -> Result<Token, Foreign> {
    serde_json::from_value(Json::from(text)).map_err(|_| Foreign::of(&text))
}

/// The record as fields and values.
pub(super) fn fields(claim: &Claim) -> Vec<(String, String)> {
    let Ok(Json::Object(fields)) = claim.serialize(serde_json::value::Serializer) else {
        unreachable!("a claim is an object with text as keys")
    };
    let text = |value| match value {
        Json::String(text) => text,
        other => other.to_string(),
    };
    fields
        .into_iter()
        .map(|(field, value)| (field, text(value)))
        .collect()
}

/// The record of a hash as `HGETALL` gives it.
pub(super) fn claim(hash: &Value) -> Result<Claim, Foreign> {
    let foreign = || Foreign::of(hash);
    let Value::Array(flat) = hash else {
        return Err(foreign());
    };
    let mut record = serde_json::Map::new();
    for pair in flat.chunks_exact(2) {
        let (field, value) = (text(&pair[0])?, text(&pair[1])?);
        let value = match field {
            "response" => serde_json::from_str(value).map_err(|_| foreign())?,
            number if NUMBERS.contains(&number) => {
                Json::from(value.parse::<u64>().map_err(|_| foreign())?)
            }
            _ => Json::from(value),
        };
        record.insert(field.to_owned(), value);
    }
    serde_json::from_value(Json::Object(record)).map_err(|_| foreign())
}

/// What the claim script answers behind the time.
pub(super) fn claimed(answer: &[Value]) -> Result<Claimed, Foreign> {
    let foreign = || Foreign::of(&answer);
    let (outcome, rest) = answer.split_first().ok_or_else(foreign)?;
    match (text(outcome)?, rest) {
        ("owner", [generation, group, queue, first_at, taken_over]) => Ok(Claimed::Owner(Grant {
            generation: number(generation)?,
            group: text(group)?.to_owned(),
            queue: text(queue)?.to_owned(),
            first_at: number(first_at)?,
            taken_over: text(taken_over)? == "1",
        })),
        ("duplicate", [hash]) => Ok(Claimed::Duplicate(Box::new(claim(hash)?))),
        ("in flight", [left, owner]) => Ok(Claimed::InFlight {
            lease_left: Duration::from_millis(number(left)?),
            owner: token(text(owner)?)?,
        }),
        _ => Err(foreign()),
    }
}

/// The server's time in ms since 1970, which every script's answer begins with, and what follows it.
pub(super) fn timed(answer: &Value) -> Result<(u64, &[Value]), Foreign> {
    match answer {
        Value::Array(parts) => match parts.split_first() {
            Some((time, rest)) => Ok((number(time)?, rest)),
            None => Err(Foreign::of(answer)),
        },
        _ => Err(Foreign::of(answer)),
    }
}

pub(super) fn text(value: &Value) -> Result<&str, Foreign> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).map_err(|_| Foreign::of(value)),
        Value::SimpleString(text) => Ok(text),
        _ => Err(Foreign::of(value)),
    }
}

fn number<N: std::str::FromStr>(value: &Value) -> Result<N, Foreign> {
    text(value)?.parse().map_err(|_| Foreign::of(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Response;
    use crate::store::{RECORD_VERSION, State};

    fn full() -> Claim {
        Claim {
            version: RECORD_VERSION,
            state: State::Accepted,
            token: Token::new(),
            lease_until: 1_700_000_000_200,
            first_at: 1_700_000_000_000,
            accepted_at: Some(1_700_000_000_100),
            generation: 3,
            group: "7".into(),
            queue: "ünïcode".into(),
            body_sha256: "00".repeat(32),
            response: Some(Response {
                status: Some(204),
                headers: vec![("x-a".into(), "b".into())],
                body: vec![0xff, 0, b'\n'].into(),
            }),
            expires_at: 1_700_000_060,
        }
    }

    fn hash(claim: &Claim) -> Value {
        let flat = fields(claim).into_iter().flat_map(|(field, value)| {
            [field, value].map(|text| Value::BulkString(text.into_bytes()))
        });
        Value::Array(flat.collect())
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let open = Claim {
            accepted_at: None,
            response: None,
            state: State::Processing,
            ..full()
        };
        for record in [full(), open] {
            assert_eq!(claim(&hash(&record)), Ok(record));
        }
    }

    #[test]
    fn a_record_is_readable_by_a_person() {
        let record = fields(&full());
        let value = |name: &str| {
            let found = record.iter().find(|(field, _)| field == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(value("state"), Some("accepted"));
        assert_eq!(value("first_at"), Some("1700000000000"));
        assert_eq!(value("group"), Some("7"));
    }

    #[test]
    fn the_owner_of_a_running_lease_is_told_with_what_is_left() {
        let owner = Token::new();
        let answer = ["in flight", "150", &token_text(owner)];
        let answer = answer.map(|text| Value::BulkString(text.into()));
        assert_eq!(
            claimed(&answer),
            Ok(Claimed::InFlight {
                lease_left: Duration::from_millis(150),
                owner,
            })
        );
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let wrong = Value::Array(vec![Value::BulkString(b"state".to_vec()), Value::Nil]);
        assert!(claim(&wrong).is_err());
        assert!(claim(&Value::Array(Vec::new())).is_err());
        assert!(timed(&Value::Nil).is_err());
        assert!(claimed(&[Value::BulkString(b"owner".to_vec())]).is_err());
    }

    #[test]
    fn the_servers_time_is_told_from_its_answer() {
        let answer = Value::Array(vec![
            Value::BulkString(b"1700000000123".to_vec()),
            Value::BulkString(b"kept".to_vec()),
        ]);
        let (time, rest) = timed(&answer).unwrap();
        assert_eq!((time, rest.len()), (1_700_000_000_123, 1));
    }
}

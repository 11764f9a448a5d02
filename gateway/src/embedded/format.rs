//! What stands in the database's tables, and how it is written.
//!
//! Few tables, and only one of them keyed by what providers choose: each random key of a batch costs a page.
//! Messages are in the order of their sequence, which is every group's order too.

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::delivery::Message;
use crate::queue::Held;
use crate::store::Claim;

/// Claim records as JSON, by claim key.
const CLAIMS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("claims");
/// Claim keys by (`expires_at` in seconds, a number that tells equal ones apart).
const EXPIRY: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("expiry");
/// Messages by sequence: the length of the JSON head in 4 bytes, the head, the body.
pub(super) const MESSAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
/// When deduplication ids that no claim remembers were sent (ms since 1970).
const SENT: TableDefinition<'_, &str, u64> = TableDefinition::new("sent");
/// Those ids by (when they were sent, the sequence of their message).
const SENT_ORDER: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("sent-order");
/// Numbers of the database itself.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

const NEXT_SEQUENCE: &str = "next-sequence";

/// What is wrong with a record, or with the database under it.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error(transparent)]
    Database(#[from] redb::Error),
    #[error("a record is damaged: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a message is damaged: it is shorter than its head says")]
    Short,
}

macro_rules! from_redb {
    ($($error:ty),*) => {$(
        impl From<$error> for RecordError {
            fn from(error: $error) -> Self {
                Self::Database(error.into())
            }
        }
    )*};
}
from_redb!(
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError
);

/// An entry of an order: where it stands, and what it names.
pub(super) type Due = ((u64, u64), String);

/// The tables, open for writing.
pub(super) struct Tables<'a> {
    pub(super) claims: Table<'a, &'static str, &'static [u8]>,
    pub(super) expiry: Table<'a, (u64, u64), &'static str>,
    pub(super) messages: Table<'a, u64, &'static [u8]>,
    pub(super) sent: Table<'a, &'static str, u64>,
    pub(super) sent_order: Table<'a, (u64, u64), &'static str>,
    numbers: Table<'a, &'static str, u64>,
}

impl<'a> Tables<'a> {
    /// Opens the tables, making those that are not there.
    pub(super) fn open(transaction: &'a WriteTransaction) -> Result<Self, RecordError> {
        Ok(Self {
            claims: transaction.open_table(CLAIMS)?,
            expiry: transaction.open_table(EXPIRY)?,
            messages: transaction.open_table(MESSAGES)?,
            sent: transaction.open_table(SENT)?,
            sent_order: transaction.open_table(SENT_ORDER)?,
            numbers: transaction.open_table(NUMBERS)?,
        })
    }

    pub(super) fn claim(&self, key: &str) -> Result<Option<Claim>, RecordError> {
        let found = self.claims.get(key)?;
        found
            .map(|record| Ok(serde_json::from_slice(record.value())?))
            .transpose()
    }

    /// Remembers that a deduplication id was sent, with the message of that sequence.
    pub(super) fn remember(&mut self, id: &str, now: u64, next: u64) -> Result<(), RecordError> {
        self.sent.insert(id, now)?;
        self.sent_order.insert((now, next), id)?;
        Ok(())
    }

    /// At most `limit` entries of an order, up to and including `ends`.
    pub(super) fn due(
        order: &Table<'a, (u64, u64), &'static str>,
        ends: (u64, u64),
        limit: usize,
    ) -> Result<Vec<Due>, RecordError> {
        let due = order.range(..=ends)?.take(limit).map(|entry| {
            let (at, key) = entry?;
            Ok((at.value(), key.value().to_owned()))
        });
        due.collect()
    }

    pub(super) fn set_next_sequence(&mut self, next: u64) -> Result<(), RecordError> {
        self.numbers.insert(NEXT_SEQUENCE, next)?;
        Ok(())
    }
}

/// The sequence of the next message.
pub(super) fn next_sequence(database: &Database) -> Result<u64, RecordError> {
    let transaction = database.begin_read()?;
    let numbers = transaction.open_table(NUMBERS)?;
    Ok(numbers.get(NEXT_SEQUENCE)?.map_or(1, |next| next.value()))
}

pub(super) fn read_claim(database: &Database, key: &str) -> Result<Option<Claim>, RecordError> {
    let transaction = database.begin_read()?;
    let claims = transaction.open_table(CLAIMS)?;
    let found = claims.get(key)?;
    found
        .map(|record| Ok(serde_json::from_slice(record.value())?))
        .transpose()
}

/// How many deduplication ids are remembered, and how many of them in their order.
#[cfg(test)]
pub(super) fn remembered(database: &Database) -> Result<(u64, u64), RecordError> {
    use redb::ReadableTableMetadata as _;
    let transaction = database.begin_read()?;
    let (ids, order) = (
        transaction.open_table(SENT)?,
        transaction.open_table(SENT_ORDER)?,
    );
    Ok((ids.len()?, order.len()?))
}

/// A claim's record.
pub(super) fn encode_claim(claim: &Claim) -> Result<Vec<u8>, RecordError> {
    Ok(serde_json::to_vec(claim)?)
}

/// A message, written as far as it can be while its place is not known.
pub(super) struct Encoded {
    json: Vec<u8>,
    body: Bytes,
}

impl Encoded {
    pub(super) fn of(message: &Message) -> Result<Self, RecordError> {
        Ok(Self {
            json: serde_json::to_vec(message)?,
            body: message.body.clone(),
        })
    }

    /// The record of a [`Held`] that was sent now and not received yet.
    pub(super) fn record(&self, sequence: u64, now: u64) -> Vec<u8> {
        let front = format!(
            r#"{{"sequence":{sequence},"sent_at":{now},"receives":0,"visible_at":0,"message":"#
        );
        let head = front.len() + self.json.len() + 1;
        let mut record = Vec::with_capacity(4 + head + self.body.len());
        record.extend(u32::try_from(head).unwrap_or(u32::MAX).to_be_bytes());
        record.extend_from_slice(front.as_bytes());
        record.extend_from_slice(&self.json);
        record.push(b'}');
        record.extend_from_slice(&self.body);
        record
    }
}

pub(super) fn decode_message(record: &[u8]) -> Result<Held, RecordError> {
    let (length, rest) = record.split_first_chunk().ok_or(RecordError::Short)?;
    let length = u32::from_be_bytes(*length) as usize;
    let (head, body) = rest.split_at_checked(length).ok_or(RecordError::Short)?;
    let mut held: Held = serde_json::from_slice(head)?;
    held.message.body = Bytes::copy_from_slice(body);
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let message = Message {
            deduplication_id: "acme.gh.1".into(),
            group_id: "acme.gh".into(),
            attributes: vec![("ce-id".into(), "\"1\"".into())],
            body: Bytes::from_static(b"}\xff"),
        };
        let record = Encoded::of(&message).unwrap().record(7, 1_700_000_000_000);
        let held = Held {
            sequence: 7,
            sent_at: 1_700_000_000_000,
            receives: 0,
            visible_at: 0,
            message,
        };
        assert_eq!(decode_message(&record).unwrap(), held);
        let head = serde_json::to_vec(&held).unwrap();
        assert_eq!(record[4..4 + head.len()], head);
    }
}

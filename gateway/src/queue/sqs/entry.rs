//! A message as an entry of a batch, with the digests by which SQS says what it understood.

use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder;
use aws_sdk_sqs::types::{
    MessageAttributeValue, SendMessageBatchRequestEntry, SendMessageBatchResultEntry,
};
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};

use crate::delivery::Message;

/// The only type of attribute that is used.
const STRING: &str = "String";
/// How SQS marks it in the digest of attributes (SQS developer guide, "Calculating the MD5 message digest for
/// message attributes").
const STRING_TRANSPORT: u8 = 1;

/// An entry that has no id in its batch yet.
pub(super) struct Entry {
    request: SendMessageBatchRequestEntryBuilder,
    /// As SQS counts them, in bytes.
    pub(super) size: usize,
    body_md5: String,
    attributes_md5: String,
}

/// The entry of a checked message.
pub(super) fn of(message: &Message) -> Entry {
    let body = String::from_utf8_lossy(&message.body).into_owned();
    let mut request = SendMessageBatchRequestEntry::builder()
        .message_deduplication_id(&message.deduplication_id)
        .message_group_id(&message.group_id);
    for (name, value) in &message.attributes {
        let value = MessageAttributeValue::builder()
            .data_type(STRING)
            .string_value(value);
        if let Ok(value) = value.build() {
            request = request.message_attributes(name.as_ref(), value);
        }
    }
    Entry {
        size: message.size(),
        body_md5: HEXLOWER.encode(&Md5::digest(&message.body)),
        attributes_md5: attributes_md5(message),
        request: request.message_body(body),
    }
}

impl Entry {
    /// The request for it at this place of a batch.
    pub(super) fn request(&self, place: usize) -> Option<SendMessageBatchRequestEntry> {
        self.request.clone().id(place.to_string()).build().ok()
    }

    /// Whether SQS understood what was sent.
    pub(super) fn is_understood(&self, result: &SendMessageBatchResultEntry) -> bool {
        let attributes = result.md5_of_message_attributes();
        result.md5_of_message_body() == self.body_md5
            && attributes.is_none_or(|digest| digest == self.attributes_md5)
    }
}

fn attributes_md5(message: &Message) -> String {
    let mut sorted: Vec<_> = message.attributes.iter().collect();
    sorted.sort();
    let mut framed = Vec::new();
    for (name, value) in sorted {
        for part in [name.as_ref(), STRING] {
            frame(&mut framed, part);
        }
        framed.push(STRING_TRANSPORT);
        frame(&mut framed, value);
    }
    HEXLOWER.encode(&Md5::digest(&framed))
}

fn frame(framed: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(text.as_bytes());
}

//! Paddle Classic: the form field `p_signature` is the RSA signature (PKCS#1, SHA-1), in base64, of all other fields as
//! PHP's `serialize` writes them, sorted by name.
//!
//! `alert_id` names the alert over its retries. What must stay in order shares the subscription or order.

use hookgate_sdk::{
    Event, Key, Message, Provider, Rejection, Signature, SignatureScheme, Verdict, delivery,
    pairs::{self, NameValue},
    time,
};

struct PaddleClassic;

hookgate_sdk::provider!(PaddleClassic);

impl Provider for PaddleClassic {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let signature = delivery::form("p_signature")?
            .ok_or_else(|| Rejection::missing_signature("p_signature: absent"))?;
        let mut fields = pairs::sorted(delivery::form_pairs());
        fields.retain(|(name, _)| name != b"p_signature");
        Message::new()
            .literal(serialized(&fields)?)
            .verify_signature(
                SignatureScheme::RsaPkcs1Sha1,
                &Key::Named("public_key".into()),
                [Signature::base64(&signature)],
            )?;
        let occurred_at = delivery::form("event_time")?;
        Event {
            id: delivery::form("alert_id")?,
            event_type: delivery::form("alert_name")?,
            ordering_key: delivery::form("subscription_id")?.or(delivery::form("order_id")?),
            occurred_at: occurred_at.and_then(|text| time::from_rfc3339(&text)),
            ..Event::default()
        }
        .accept()
    }
}

/// An array of texts by text, as PHP serialises it. A name twice is two readings of one form.
fn serialized(fields: &[NameValue]) -> Result<Vec<u8>, Rejection> {
    let mut text = ["a:", &fields.len().to_string(), ":{"]
        .concat()
        .into_bytes();
    let mut before: Option<&[u8]> = None;
    for (name, value) in fields {
        if before == Some(name) {
            return Err(Rejection::malformed("the form has a field twice"));
        }
        before = Some(name);
        for part in [name, value] {
            text.extend(["s:", &part.len().to_string(), ":\""].concat().bytes());
            text.extend_from_slice(part);
            text.extend_from_slice(b"\";");
        }
    }
    text.push(b'}');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::serialized;

    #[test]
    fn lengths_are_bytes_and_names_unique() {
        let fields = [
            (b"a".to_vec(), "\u{e9}".into()),
            (b"b".to_vec(), Vec::new()),
        ];
        let text = serialized(&fields).unwrap();
        assert_eq!(
            text,
            "a:2:{s:1:\"a\";s:2:\"\u{e9}\";s:1:\"b\";s:0:\"\";}".as_bytes()
        );
        assert!(serialized(&[(b"a".to_vec(), Vec::new()), (b"a".to_vec(), Vec::new())]).is_err());
    }
}

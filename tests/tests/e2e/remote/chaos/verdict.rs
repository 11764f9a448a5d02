//! What must hold once the storm is over: the queue against the journal.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::site::Message;
use super::plan::Event;
use super::providers::Seen;

/// The queue, judged.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Events with a 2xx and no message.
    pub lost: usize,
    /// Messages beyond an event's first.
    pub doubled: usize,
    /// Pairs whose order was promised.
    pub ordered_pairs: usize,
    /// Everything that is not as promised, in words.
    pub wrong: Vec<String>,
}

impl Verdict {
    /// Of these events, what was seen of them, and the queue in its order.
    pub fn of(events: &[(Event, Bytes)], seen: &[Seen], queue: &[Message]) -> Self {
        let mut places: HashMap<(&str, &str), Vec<&Message>> = HashMap::new();
        for message in queue {
            let key = (message.source.as_str(), message.id.as_str());
            places.entry(key).or_default().push(message);
        }
        let mut verdict = Self::default();
        let mut firsts = Vec::new();
        for ((event, body), seen) in events.iter().zip(seen) {
            let held = places.remove(&(event.source(), event.id.as_str()));
            let held = held.unwrap_or_default();
            verdict.count(event, seen, held.len());
            let first = held.first().copied();
            verdict
                .wrong
                .extend(first.and_then(|message| altered(event, body, message)));
            firsts.push(first);
        }
        let unknown = places.keys().map(|key| format!("{key:?} was never sent"));
        verdict.wrong.extend(unknown);
        verdict.order(events, seen, &firsts);
        verdict
    }

    fn count(&mut self, event: &Event, seen: &Seen, times: usize) {
        let id = &event.id;
        if times == 0 && seen.acknowledged.is_some() {
            self.lost += 1;
            self.wrong.push(format!("{id} is LOST: it got a 2xx"));
        }
        if times > 1 {
            self.doubled += times - 1;
            self.wrong
                .push(format!("{id} is in the queue {times} times"));
        }
    }

    /// An event whose 2xx was read before another's first request comes before it in their group.
    fn order(&mut self, events: &[(Event, Bytes)], seen: &[Seen], firsts: &[Option<&Message>]) {
        let all = || events.iter().zip(seen).zip(firsts);
        for (((one, _), seen_one), first) in all() {
            for (((other, _), seen_other), second) in all() {
                let (Some(first), Some(second)) = (first, second) else {
                    continue;
                };
                let is_group = (one.is_letter, &one.group) == (other.is_letter, &other.group);
                if is_group != (first.group == second.group) {
                    self.wrong
                        .push(format!("{} and {}: wrong groups", one.id, other.id));
                }
                let is_promised = matches!((seen_one.acknowledged, seen_other.first_sent),
                    (Some(read), Some(sent)) if read < sent);
                if !is_group || !is_promised {
                    continue;
                }
                self.ordered_pairs += 1;
                if first.place > second.place {
                    self.wrong
                        .push(format!("{} comes after {}", one.id, other.id));
                }
            }
        }
    }
}

fn altered(event: &Event, body: &Bytes, message: &Message) -> Option<String> {
    if message.body.as_bytes() != &body[..] {
        return Some(format!("{} has another body", event.id));
    }
    // Nothing here is older than the queue's memory.
    message
        .is_flagged()
        .then(|| format!("{} is flagged", event.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> Event {
        Event {
            id: id.into(),
            group: "g".into(),
            is_letter: false,
            copies: 1,
        }
    }

    fn message(id: &str, place: u128) -> Message {
        Message {
            place,
            group: "acme.orders.g".into(),
            id: id.into(),
            source: "orders".into(),
            head: serde_json::Value::Null,
            body: "body".into(),
        }
    }

    fn said(queue: &[Message]) -> (usize, usize, String) {
        let seen = |sent, read| Seen {
            first_sent: Some(sent),
            acknowledged: Some(read),
            promises: 1,
        };
        let verdict = Verdict::of(
            &[event("a"), event("b")].map(|event| (event, Bytes::from("body"))),
            &[seen(0, 1), seen(2, 3)],
            queue,
        );
        assert!(queue.len() < 2 || verdict.ordered_pairs == 1);
        (verdict.lost, verdict.doubled, verdict.wrong.join("; "))
    }

    #[test]
    fn what_is_lost_doubled_turned_round_or_altered_is_seen() {
        let (a, b) = (message("a", 1), message("b", 2));
        assert_eq!(said(&[a.clone(), b.clone()]), (0, 0, String::new()));
        let lost = said(std::slice::from_ref(&a));
        assert!(lost.0 == 1 && lost.2.contains("b is LOST"), "{lost:?}");
        let doubled = said(&[a.clone(), b.clone(), message("b", 3)]);
        assert!(
            doubled.1 == 1 && doubled.2.contains("2 times"),
            "{doubled:?}"
        );
        let turned = said(&[message("a", 3), b.clone()]);
        assert!(turned.2.contains("a comes after b"), "{turned:?}");
        let group = Message {
            group: "acme.orders.h".into(),
            ..b.clone()
        };
        assert!(said(&[a.clone(), group]).2.contains("wrong groups"));
        let body = Message {
            body: "other".into(),
            ..b.clone()
        };
        assert!(said(&[a.clone(), body]).2.contains("another body"));
        let head = serde_json::json!({ "flags": ["possible-duplicate"] });
        let flagged = Message { head, ..b.clone() };
        assert!(said(&[a.clone(), flagged]).2.contains("flagged"));
        assert!(said(&[a, b, message("c", 3)]).2.contains("never sent"));
    }
}

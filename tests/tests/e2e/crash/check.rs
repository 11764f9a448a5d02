//! What must hold once the storm is over: the queue against the journal.

use std::collections::{BTreeMap, HashMap, HashSet};

use hookgate_tests::provider::Answer;
use serde_json::Value;

use super::plan::Event;
use super::provider::Seen;

/// A message of the queue, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    source: String,
    id: String,
    group: String,
    delivery: String,
    body: String,
}

impl Message {
    /// Of the admin listener's JSON.
    pub fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let attributes = &event["attributes"];
        let head: Value = serde_json::from_str(&text(&attributes["hookgate"])).unwrap_or_default();
        let source = text(&attributes["ce-source"]);
        let id = text(&attributes["ce-id"]);
        Self {
            source: source.rsplit('/').next().unwrap_or_default().to_owned(),
            // Behind it may stand the body's digest.
            id: id.split('~').next().unwrap_or_default().to_owned(),
            group: text(&event["group_id"]),
            delivery: text(&head["delivery"]),
            body: text(&event["body"]),
        }
    }

    /// Whether it is this event's.
    pub fn is_of(&self, event: &Event) -> bool {
        (self.source.as_str(), self.id.as_str()) == (event.source, event.id.as_str())
    }
}

/// Everything that is not as promised.
pub fn violations(events: &[Event], seen: &[Seen], queue: &[Message]) -> Vec<String> {
    let mut places: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (place, message) in queue.iter().enumerate() {
        let key = (message.source.as_str(), message.id.as_str());
        places.entry(key).or_default().push(place);
    }
    let mut wrong = Vec::new();
    let mut first_places = Vec::new();
    for (event, seen) in events.iter().zip(seen) {
        let places = places
            .remove(&(event.source, event.id.as_str()))
            .unwrap_or_default();
        wrong.extend(miscounted(event, seen, places.len()));
        let first = places.first().copied();
        wrong.extend(first.and_then(|place| altered(event, seen, &queue[place])));
        wrong.extend(inconsistent(event, seen));
        first_places.push(first);
    }
    wrong.extend(
        places
            .keys()
            .map(|key| format!("{key:?} is in the queue and was never sent")),
    );
    wrong.extend(mixed_groups(events, &first_places, queue));
    wrong.extend(out_of_order(events, seen, &first_places));
    wrong
}

fn name(event: &Event) -> String {
    format!("{} {}", event.source, event.id)
}

fn miscounted(event: &Event, seen: &Seen, times: usize) -> Option<String> {
    let event = name(event);
    match times {
        0 if seen.acknowledged.is_some() => Some(format!("{event} is LOST: it got a 2xx")),
        0 | 1 => None,
        _ => Some(format!("{event} is in the queue {times} times")),
    }
}

/// The message must be of the delivery that every answer names, and hold its bytes.
fn altered(event: &Event, seen: &Seen, message: &Message) -> Option<String> {
    if message.body.as_bytes() != &event.signed.body[..] {
        return Some(format!("{} has another body in the queue", name(event)));
    }
    let promise = seen.promises.first()?;
    let named: Value = serde_json::from_slice(&promise.body).unwrap_or_default();
    (named["delivery_id"] != message.delivery.as_str()).then(|| {
        format!(
            "{}: the answer is of another delivery than the message",
            name(event)
        )
    })
}

/// Every 2xx of an event has the first one's body, and only the first is no duplicate's.
fn inconsistent(event: &Event, seen: &Seen) -> Option<String> {
    let bodies: HashSet<_> = seen.promises.iter().map(|answer| &answer.body).collect();
    let fits = |answer: &Answer| answer.status == if answer.duplicate { 200 } else { 202 };
    let firsts = seen
        .promises
        .iter()
        .filter(|answer| !answer.duplicate)
        .count();
    if bodies.len() <= 1 && firsts <= 1 && seen.promises.iter().all(fits) {
        return None;
    }
    Some(format!(
        "{} got answers that do not agree: {:?}",
        name(event),
        seen.promises
    ))
}

fn mixed_groups(events: &[Event], places: &[Option<usize>], queue: &[Message]) -> Vec<String> {
    let mut ours: BTreeMap<&str, HashSet<(&str, &str)>> = BTreeMap::new();
    let mut theirs: BTreeMap<(&str, &str), HashSet<&str>> = BTreeMap::new();
    for (event, place) in events.iter().zip(places) {
        let Some(place) = place else { continue };
        let (group, held) = (
            (event.source, event.group.as_str()),
            queue[*place].group.as_str(),
        );
        ours.entry(held).or_default().insert(group);
        theirs.entry(group).or_default().insert(held);
    }
    let mixed = ours.iter().filter(|(_, groups)| groups.len() > 1);
    let split = theirs.iter().filter(|(_, groups)| groups.len() > 1);
    mixed
        .map(|mixed| format!("groups meet: {mixed:?}"))
        .chain(split.map(|split| format!("a group is split: {split:?}")))
        .collect()
}

/// An event whose 2xx was read before another's first request began stands before it in their group.
fn out_of_order(events: &[Event], seen: &[Seen], places: &[Option<usize>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (a, first) in events.iter().enumerate() {
        for (b, second) in events.iter().enumerate() {
            let same_group = first.source == second.source && first.group == second.group;
            let promised = matches!(
                (seen[a].acknowledged, seen[b].first_sent),
                (Some(acknowledged), Some(sent)) if acknowledged < sent
            );
            let kept = !matches!((places[a], places[b]), (Some(a), Some(b)) if a >= b);
            if same_group && promised && !kept {
                let (first, second) = (name(first), name(second));
                wrong.push(format!(
                    "{first} was acknowledged before {second} was sent, and follows it"
                ));
            }
        }
    }
    wrong
}

/// How many ordered pairs the journal speaks of: a test of order that has none shows nothing.
pub fn promised_pairs(events: &[Event], seen: &[Seen]) -> usize {
    let all = || events.iter().zip(seen);
    let follows = |(a, first): (&Event, &Seen), (b, second): (&Event, &Seen)| {
        a.source == b.source
            && a.group == b.group
            && matches!((first.acknowledged, second.first_sent), (Some(x), Some(y)) if x < y)
    };
    all()
        .map(|first| all().filter(|second| follows(first, *second)).count())
        .sum()
}

#[cfg(test)]
mod tests {
    use hookgate_tests::provider::Signed;

    use super::*;

    fn event(id: &str) -> Event {
        Event {
            source: "orders",
            id: id.into(),
            group: "customer-1".into(),
            signed: Signed::post("run/orders", &[], id.to_owned()),
        }
    }

    fn seen(sent: u64, acknowledged: u64, delivery: &str) -> Seen {
        Seen {
            first_sent: Some(sent),
            acknowledged: Some(acknowledged),
            promises: vec![Answer {
                status: 202,
                duplicate: false,
                retry_after: None,
                body: format!(r#"{{"delivery_id":"{delivery}"}}"#).into(),
            }],
        }
    }

    fn message(id: &str, delivery: &str) -> Message {
        Message {
            source: "orders".into(),
            id: id.into(),
            group: "run.orders.customer-1".into(),
            delivery: delivery.into(),
            body: id.into(),
        }
    }

    /// What is said of two events, of which `a` was acknowledged before `b` was sent.
    fn said(queue: &[Message]) -> String {
        let events = [event("a"), event("b")];
        let seen = [seen(0, 1, "d-a"), seen(2, 3, "d-b")];
        violations(&events, &seen, queue).join("; ")
    }

    #[test]
    fn every_kind_of_broken_promise_is_seen() {
        let (a, b) = (message("a", "d-a"), message("b", "d-b"));
        let other_group = Message {
            group: "run.orders.customer-2".into(),
            ..b.clone()
        };
        let other_body = Message {
            body: "c".into(),
            ..b.clone()
        };
        assert_eq!(said(&[a.clone(), b.clone()]), "");
        for (queue, verdict) in [
            (vec![a.clone()], "orders b is LOST"),
            (
                vec![a.clone(), b.clone(), b.clone()],
                "orders b is in the queue 2 times",
            ),
            (
                vec![b.clone(), a.clone()],
                "orders a was acknowledged before orders b was sent",
            ),
            (vec![a.clone(), b, message("c", "d-c")], "was never sent"),
            (vec![a.clone(), message("b", "d-x")], "of another delivery"),
            (vec![a.clone(), other_group], "a group is split"),
            (vec![a, other_body], "another body"),
        ] {
            let said = said(&queue);
            assert!(said.contains(verdict), "{said:?} is not {verdict:?}");
        }
    }

    #[test]
    fn answers_that_do_not_agree_are_seen() {
        let mut twice = seen(0, 1, "d-a");
        twice.promises.extend(seen(0, 1, "d-a").promises);
        let queue = [message("a", "d-a")];
        let said = violations(&[event("a")], &[twice], &queue).join("; ");
        assert!(said.contains("answers that do not agree"), "{said}");
    }
}

//! Arbitrary verdicts, from a guest's memory to the queue and the answer: whatever is accepted makes a message
//! that SQS takes, and every outcome an answer that HTTP takes.
//!
//! A verdict is laid out as the component model says and comes out of a real sandbox, so that the host reads it
//! as it reads a plugin's; some are bytes that no compiler would lay out.

#![no_main]

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use hookgate::backend::{Backend, MemoryPair};
use hookgate::delivery::identity::MAX_BROKER_ID;
use hookgate::delivery::message::MAX_MESSAGE;
use hookgate::delivery::{Delivery, Ordering, Verdict};
use hookgate::outcome::Outcome;
use hookgate::pipeline::Gateway;
use hookgate::plugin::{Fault, Handled, Limits, Manifest, Plugin, Sandbox, Setup, WasmPlugin};
use hookgate::tenants::SameIdOtherBody;
use hookgate_fuzz::{component, gateway, policy, runtime};
use libfuzzer_sys::fuzz_target;

/// Where the guest has its verdict, and where its strings' addresses count from.
const BASE: u32 = 0x8000;
/// A gateway in memory keeps what it accepts: a new one after so many inputs.
const INPUTS: u32 = 4096;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    setting: u8,
    body: &'a [u8],
    headers: Vec<(&'a str, &'a [u8])>,
    made: Made<'a>,
}

#[derive(Debug, Arbitrary)]
enum Made<'a> {
    Accept(Event<'a>),
    AcceptMany(Vec<Event<'a>>),
    Respond(Response<'a>),
    Reject(u8, &'a [u8]),
    Raw(&'a [u8]),
}

#[derive(Debug, Arbitrary)]
struct Event<'a> {
    id: Option<Text<'a>>,
    ordering_key: Option<Text<'a>>,
    event_type: Option<Text<'a>>,
    signed_at: Option<u64>,
    occurred_at: Option<u64>,
    sequence: Option<Text<'a>>,
    response: Option<Response<'a>>,
    extra: Vec<(Text<'a>, Text<'a>)>,
}

/// Short text mostly, and text around the limits of ids and messages.
#[derive(Debug, Arbitrary)]
enum Text<'a> {
    Plain(&'a str),
    Bytes(&'a [u8]),
    Long(&'a str, u16),
}

#[derive(Debug, Arbitrary)]
struct Response<'a> {
    status: u16,
    headers: Vec<(Text<'a>, Text<'a>)>,
    body: Vec<Text<'a>>,
}

impl Text<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Plain(text) => text.as_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Long(text, times) => text.repeat(usize::from(*times) % 600).into_bytes(),
        }
    }
}

/// A guest's memory from [`BASE`] on, in the making. `tests/guests/accept.wat` tells the layout.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Memory {
    /// Room at an address that 8 divides, all zero.
    fn room(&mut self, length: usize) -> usize {
        let at = self.0.len().next_multiple_of(8);
        self.0.resize(at + length, 0);
        at
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_list(&mut self, at: usize, list: usize, length: usize) {
        let address = BASE + u32::try_from(list).unwrap_or(u32::MAX);
        self.put(at, &address.to_le_bytes());
        self.put(
            at + 4,
            &u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes(),
        );
    }

    fn put_text(&mut self, at: usize, bytes: &[u8]) {
        let room = self.room(bytes.len());
        self.put(room, bytes);
        self.put_list(at, room, bytes.len());
    }

    fn put_option(&mut self, at: usize, text: Option<&Text>) {
        if let Some(text) = text {
            self.put(at, &[1]);
            self.put_text(at + 4, &text.bytes());
        }
    }

    fn put_time(&mut self, at: usize, time: Option<u64>) {
        if let Some(time) = time {
            self.put(at, &[1]);
            self.put(at + 8, &time.to_le_bytes());
        }
    }

    fn put_pairs(&mut self, at: usize, pairs: &[(Text, Text)]) {
        let list = self.room(16 * pairs.len());
        for (n, (name, value)) in pairs.iter().enumerate() {
            self.put_text(list + 16 * n, &name.bytes());
            self.put_text(list + 16 * n + 8, &value.bytes());
        }
        self.put_list(at, list, pairs.len());
    }

    fn put_response(&mut self, at: usize, response: &Response) {
        self.put(at, &response.status.to_le_bytes());
        self.put_pairs(at + 4, &response.headers);
        let parts = self.room(28 * response.body.len());
        for (n, part) in response.body.iter().enumerate() {
            self.put_text(parts + 28 * n + 4, &part.bytes());
        }
        self.put_list(at + 12, parts, response.body.len());
    }

    fn put_event(&mut self, at: usize, event: &Event) {
        self.put_option(at, event.id.as_ref());
        self.put_option(at + 12, event.ordering_key.as_ref());
        self.put_option(at + 24, event.event_type.as_ref());
        self.put_time(at + 40, event.signed_at);
        self.put_time(at + 56, event.occurred_at);
        self.put_option(at + 72, event.sequence.as_ref());
        if let Some(response) = &event.response {
            self.put(at + 84, &[1]);
            self.put_response(at + 88, response);
        }
        self.put_pairs(at + 108, &event.extra);
    }

    fn put_events(&mut self, at: usize, events: &[&Event]) {
        let list = self.room(120 * events.len());
        for (n, event) in events.iter().enumerate() {
            self.put_event(list + 120 * n, event);
        }
        self.put_list(at, list, events.len());
    }

    fn of(made: &Made) -> Self {
        let mut memory = Self::default();
        if let Made::Raw(bytes) = made {
            memory.0.extend_from_slice(bytes);
            return memory;
        }
        let top = memory.room(24);
        match made {
            Made::Accept(event) => memory.put_events(top + 4, &[event]),
            Made::AcceptMany(events) => {
                memory.put_events(top + 4, &events.iter().collect::<Vec<_>>())
            }
            Made::Respond(response) => {
                memory.put(top, &[1]);
                memory.put_response(top + 4, response);
            }
            Made::Reject(kind, reason) => {
                memory.put(top, &[2, 0, 0, 0, *kind]);
                memory.put_text(top + 8, reason);
            }
            Made::Raw(_) => {}
        }
        memory
    }
}

thread_local! {
    /// What the guest answers next.
    static NEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether the last verdict was an event.
static ACCEPTS: AtomicBool = AtomicBool::new(false);

/// The guest, whose deliveries' bodies are not their verdicts.
struct Echo(WasmPlugin);

impl Plugin for Echo {
    fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    fn handle(&self, delivery: &Arc<Delivery>, setup: &Arc<Setup>) -> Result<Handled, Fault> {
        let next = NEXT.with(RefCell::take);
        let handled = self.0.handle(&of(delivery.headers.clone(), next), setup);
        let accepts =
            matches!(&handled, Ok(handled) if matches!(handled.verdict, Verdict::Accept(_)));
        ACCEPTS.store(accepts, Relaxed);
        handled
    }
}

fn of(headers: http::HeaderMap, body: Vec<u8>) -> Arc<Delivery> {
    Arc::new(Delivery {
        id: uuid::Uuid::nil(),
        received_at: 1_700_000_000_000,
        method: http::Method::POST,
        target: "/in/t/s".into(),
        rest: String::new(),
        headers,
        body: body.into(),
    })
}

static PLUGIN: LazyLock<Arc<Echo>> = LazyLock::new(|| {
    let sandbox = Sandbox::new(Limits {
        concurrent_calls: 1,
        ..Limits::default()
    })
    .expect("a sandbox");
    let bytes = component(include_str!("../../guests/echo.wat"));
    let plugin = sandbox.load(&bytes).expect("a plugin");
    Arc::new(Echo(plugin))
});

/// One gateway for each setting.
fn gateways() -> Vec<Arc<Gateway<MemoryPair>>> {
    let settings = [Ordering::Key, Ordering::Source, Ordering::None].map(|ordering| {
        [SameIdOtherBody::Distinct, SameIdOtherBody::Duplicate].map(|same| policy(ordering, same))
    });
    let plugin = || Arc::<Echo>::clone(&PLUGIN);
    settings
        .into_iter()
        .flatten()
        .map(|policy| gateway(plugin(), policy))
        .collect()
}

fn check(gateway: &Gateway<MemoryPair>, outcome: Outcome, accepts: bool) {
    let stands = |id: &str| {
        (1..=MAX_BROKER_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
    };
    if accepts {
        // Nothing but its size may keep an event out of the queue.
        let fine = matches!(
            outcome,
            Outcome::Accepted(_) | Outcome::Duplicate(_) | Outcome::TooLarge
        );
        // Ages are not bounded here.
        assert!(fine, "an accepted event ended as {outcome:?}");
    }
    if let Outcome::Accepted(_) = outcome {
        let held = gateway
            .backend
            .browse()
            .expect("memory")
            .list(0, usize::MAX)
            .expect("memory");
        let message = &held.last().expect("an accepted event's message").message;
        assert_eq!(message.check(MAX_MESSAGE), Ok(()));
        assert!(
            stands(&message.deduplication_id),
            "{:?}",
            message.deduplication_id
        );
        assert!(stands(&message.group_id), "{:?}", message.group_id);
        assert!(message.attributes.len() <= 10, "{:?}", message.attributes);
    }
    let answer = outcome.answer(Some(PLUGIN.manifest()));
    let mut response = http::Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let response = response.body(()).expect("an answer that HTTP takes");
    assert!(
        (200..600).contains(&response.status().as_u16()),
        "{response:?}"
    );
}

thread_local! {
    static WORLD: RefCell<(u32, Vec<Arc<Gateway<MemoryPair>>>)> = RefCell::new((0, gateways()));
    static RUNTIME: tokio::runtime::Runtime = runtime();
}

fuzz_target!(|input: Input| {
    let mut headers = http::HeaderMap::new();
    for (name, value) in &input.headers {
        let name = http::HeaderName::try_from(*name);
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    NEXT.set(Memory::of(&input.made).0);
    let gateway = WORLD.with_borrow_mut(|(inputs, gateways)| {
        *inputs += 1;
        if *inputs % INPUTS == 0 {
            *gateways = self::gateways();
        }
        Arc::clone(&gateways[usize::from(input.setting) % gateways.len()])
    });
    let source = gateway
        .tenants
        .load()
        .find("t", "s")
        .cloned()
        .expect("the source");
    let outcome = RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let now = tokio::time::Instant::now();
            let delivery = of(headers, input.body.to_vec());
            gateway.deliver(&source, delivery, now, Box::new(())).await
        })
    });
    check(&gateway, outcome, ACCEPTS.swap(false, Relaxed));
});

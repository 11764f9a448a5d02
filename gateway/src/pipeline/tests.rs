use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::*;
use crate::backend::MemoryPair;
use crate::clock::{Clock as _, ManualClock};
use crate::delivery::{Name, Ordering as Order, Rejection};
use crate::embedded::Embedded;
use crate::plugin::{Handled, Manifest, Plugin, Setup};
use crate::queue::{Browse, Held};
use crate::store::memory::MemoryStore;
use crate::telemetry::Telemetry;
use crate::tenants::Policy;

const NOON: u64 = 1_700_000_000_000;

/// A plugin that says what it is told to.
struct Fixed {
    manifest: Manifest,
    verdict: Mutex<Result<Verdict, Fault>>,
}

impl Plugin for Fixed {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn handle(&self, _: &Arc<Delivery>, _: &Arc<Setup>) -> Result<Handled, Fault> {
        let verdict = self.verdict.lock().unwrap().clone()?;
        Ok(Handled {
            verdict,
            key: None,
            confirm: None,
            fuel: 0,
        })
    }
}

fn policy() -> Policy {
    Policy {
        ordering: Order::Key,
        max_age: Duration::from_secs(300),
        max_future: Duration::from_secs(300),
        no_event_id: NoEventId::Reject,
        same_id_other_body: SameIdOtherBody::Duplicate,
        claim_ttl: Duration::from_secs(86_400),
        content_ttl: Duration::from_secs(400),
        lease: Duration::from_secs(4),
        answer_deadline: Duration::from_secs(2),
        in_flight: InFlightPolicy::Wait,
        claim_ttl_follows_queue: false,
        claim_outage: ClaimOutage::Reject,
        redelivery_after: None,
    }
}

fn event(id: &str) -> Event {
    Event {
        id: Some(id.into()),
        ..Event::default()
    }
}

/// A gateway with one source, and everything that a test turns.
struct Rig<B> {
    gateway: Arc<Gateway<B>>,
    clock: Arc<ManualClock>,
    plugin: Arc<Fixed>,
    policy: Policy,
}

impl<B: Backend> Rig<B> {
    fn new(backend: impl FnOnce(&SharedClock) -> B) -> Self {
        let clock = ManualClock::at(NOON);
        let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
        let backend = backend(&shared);
        let timing = Timing {
            backoff: Duration::from_millis(1),
            ..Timing::default()
        };
        let gateway = Gateway::new(backend, shared, Arc::new(Telemetry::default()), timing);
        let manifest = Manifest::parse(r#"{"v":1,"name":"acme","version":"1"}"#).unwrap();
        let verdict = Mutex::new(Ok(Verdict::Accept(event("e1"))));
        let plugin = Arc::new(Fixed { manifest, verdict });
        Self {
            gateway: Arc::new(gateway),
            clock,
            plugin,
            policy: policy(),
        }
    }

    fn says(&self, verdict: Result<Verdict, Fault>) {
        *self.plugin.verdict.lock().unwrap() = verdict;
    }

    fn source(&self) -> Arc<Source> {
        let (tenant, name) = (Name::new("t").unwrap(), Name::new("s").unwrap());
        Arc::new(Source {
            metrics: self.gateway.telemetry.source(&tenant, &name),
            tenant,
            name,
            state: Ok(Ready {
                plugin: Arc::<Fixed>::clone(&self.plugin),
                setup: Arc::default(),
                signature_header: None,
            }),
            policy: self.policy.clone(),
        })
    }

    async fn deliver(&self, body: &'static str) -> Outcome {
        let delivery = Arc::new(Delivery {
            id: uuid::Uuid::new_v4(),
            received_at: self.clock.wall_ms(),
            method: Method::POST,
            target: "/in/t/s".into(),
            rest: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        });
        self.gateway
            .deliver(&self.source(), delivery, Instant::now(), Box::new(()))
            .await
    }

    fn messages(&self) -> Vec<Held> {
        self.gateway
            .backend
            .browse()
            .unwrap()
            .list(0, usize::MAX)
            .unwrap()
    }

    fn metric(&self, line: &str) -> bool {
        self.gateway
            .telemetry
            .encode()
            .lines()
            .any(|found| found == line)
    }
}

fn memory() -> Rig<MemoryPair> {
    Rig::new(|clock| MemoryPair::new(clock, Duration::from_secs(300)))
}

/// The embedded pair, fused.
struct Fused {
    embedded: Embedded,
    _directory: tempfile::TempDir,
}

impl Backend for Fused {
    type Store = MemoryStore;
    type Queue = crate::queue::memory::MemoryQueue;
    type Fused = Embedded;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Fused(&self.embedded)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        Some(&self.embedded)
    }
}

fn embedded() -> Rig<Fused> {
    Rig::new(|clock| {
        let directory = tempfile::tempdir().unwrap();
        let window = Duration::from_secs(300);
        let embedded = Embedded::open(directory.path(), Arc::clone(clock), window).unwrap();
        Fused {
            embedded,
            _directory: directory,
        }
    })
}

fn body(outcome: &Outcome) -> &Bytes {
    match outcome {
        Outcome::Accepted(response) | Outcome::Duplicate(response) => &response.body,
        other => panic!("{other:?}"),
    }
}

async fn a_duplicate_gets_the_first_answer<B: Backend>(rig: Rig<B>) {
    let first = rig.deliver("{}").await;
    assert!(matches!(first, Outcome::Accepted(_)), "{first:?}");
    let second = rig.deliver("{}").await;
    assert!(matches!(second, Outcome::Duplicate(_)), "{second:?}");
    assert_eq!(body(&first), body(&second));
    assert_eq!(rig.messages().len(), 1);
}

#[tokio::test]
async fn a_duplicate_gets_the_first_answer_in_memory() {
    a_duplicate_gets_the_first_answer(memory()).await;
}

#[tokio::test]
async fn a_duplicate_gets_the_first_answer_embedded() {
    a_duplicate_gets_the_first_answer(embedded()).await;
}

async fn concurrent_copies_make_one_message<B: Backend>(rig: Rig<B>) {
    let rig = Arc::new(rig);
    let copies: Vec<_> = (0..32)
        .map(|_| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move { rig.deliver("{}").await })
        })
        .collect();
    let mut accepted = 0;
    for copy in copies {
        match copy.await.unwrap() {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Duplicate(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((accepted, rig.messages().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_copies_make_one_message_in_memory() {
    concurrent_copies_make_one_message(memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_copies_make_one_message_embedded() {
    concurrent_copies_make_one_message(embedded()).await;
}

#[tokio::test]
async fn a_signature_is_timely_up_to_and_including_its_bounds() {
    let rig = memory();
    for (signed_at, timely) in [
        (NOON - 300_000, true),
        (NOON - 300_001, false),
        (NOON + 300_000, true),
        (NOON + 300_001, false),
        (0, false),
        (u64::MAX, false),
    ] {
        let id = signed_at.to_string();
        rig.says(Ok(Verdict::Accept(Event {
            signed_at: Some(signed_at),
            ..event(&id)
        })));
        let outcome = rig.deliver("{}").await;
        match timely {
            true => assert!(
                matches!(outcome, Outcome::Accepted(_)),
                "{signed_at}: {outcome:?}"
            ),
            false => assert_eq!(outcome, Outcome::Rejected(RejectKind::Stale), "{signed_at}"),
        }
    }
}

#[tokio::test]
async fn an_event_without_an_id_is_refused_or_known_by_its_content() {
    let mut rig = memory();
    let unnamed = |extra: &str| {
        let extra = vec![("at".to_owned(), extra.to_owned())];
        Ok(Verdict::Accept(Event {
            extra,
            ..Event::default()
        }))
    };
    for id in [None, Some(String::new())] {
        rig.says(Ok(Verdict::Accept(Event {
            id,
            ..Event::default()
        })));
        assert_eq!(
            rig.deliver("{}").await,
            Outcome::Rejected(RejectKind::NoEventId)
        );
    }
    rig.policy.no_event_id = NoEventId::Hash;
    rig.says(unnamed("1"));
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert!(matches!(rig.deliver("{}").await, Outcome::Duplicate(_)));
    assert!(matches!(rig.deliver("{ }").await, Outcome::Accepted(_)));
    rig.says(unnamed("2"));
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert_eq!(rig.messages().len(), 3);
}

#[tokio::test]
async fn a_known_id_on_another_body_is_a_counted_duplicate_or_a_distinct_event() {
    let mut rig = memory();
    assert!(matches!(rig.deliver("a").await, Outcome::Accepted(_)));
    assert!(matches!(rig.deliver("b").await, Outcome::Duplicate(_)));
    assert!(rig.metric(r#"hookgate_same_id_other_body_total{tenant="t",source="s"} 1"#));
    rig.policy.same_id_other_body = SameIdOtherBody::Distinct;
    assert!(matches!(rig.deliver("a").await, Outcome::Accepted(_)));
    assert!(matches!(rig.deliver("b").await, Outcome::Accepted(_)));
    assert!(matches!(rig.deliver("b").await, Outcome::Duplicate(_)));
    assert_eq!(rig.messages().len(), 3);
}

#[tokio::test]
async fn refusals_and_handshakes_leave_nothing_behind() {
    let rig = memory();
    let answer = Response {
        status: Some(200),
        headers: vec![],
        body: "challenge".into(),
    };
    rig.says(Ok(Verdict::Respond(answer.clone())));
    assert_eq!(rig.deliver("{}").await, Outcome::Handshake(answer));
    rig.says(Ok(Verdict::Reject(Rejection::new(
        RejectKind::BadSignature,
        "no",
    ))));
    assert_eq!(
        rig.deliver("{}").await,
        Outcome::Rejected(RejectKind::BadSignature)
    );
    rig.says(Err(Fault::OutOfFuel { limit: 1 }));
    assert_eq!(rig.deliver("{}").await, Outcome::PluginFault);
    rig.says(Err(Fault::WallClock {
        limit: Duration::ZERO,
    }));
    assert_eq!(rig.deliver("{}").await, Outcome::PluginSlow);
    assert!(rig.messages().is_empty());
    assert!(rig.metric(r#"hookgate_plugin_faults_total{plugin="acme",kind="fuel"} 1"#));
}

#[tokio::test]
async fn a_message_above_the_queues_limit_is_refused_and_can_be_delivered_once_it_fits() {
    let mut rig = memory();
    Arc::get_mut(&mut rig.gateway).unwrap().max_message = 100;
    assert_eq!(rig.deliver("{}").await, Outcome::TooLarge);
    Arc::get_mut(&mut rig.gateway).unwrap().max_message = MAX_MESSAGE;
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
}

#[tokio::test]
async fn an_answer_that_the_plugin_asks_for_is_kept_for_duplicates() {
    let rig = memory();
    let wanted = Response {
        status: Some(204),
        headers: vec![],
        body: Bytes::new(),
    };
    rig.says(Ok(Verdict::Accept(Event {
        response: Some(wanted.clone()),
        ..event("e1")
    })));
    assert_eq!(rig.deliver("{}").await, Outcome::Accepted(wanted.clone()));
    assert_eq!(rig.deliver("{}").await, Outcome::Duplicate(wanted));
}

#[tokio::test]
async fn a_dropped_connection_does_not_cancel_the_event() {
    let rig = embedded();
    let mut delivery = Box::pin(rig.deliver("{}"));
    // One poll: authenticated, joined, its task begun. Then the provider hangs up.
    assert!(futures_poll(delivery.as_mut()).is_pending());
    drop(delivery);
    assert!(rig.gateway.drain(Duration::from_secs(30)).await);
    assert_eq!(rig.messages().len(), 1);
    assert!(matches!(rig.deliver("{}").await, Outcome::Duplicate(_)));
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// A queue that answers as scripted, then as memory does.
struct Scripted {
    pair: MemoryPair,
    sends: Mutex<Vec<Send>>,
    tried: AtomicUsize,
}

#[derive(Clone, Copy)]
enum Send {
    Refused,
    LostBefore,
    LostAfter,
    Panics,
}

impl EventQueue for Scripted {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        self.tried.fetch_add(1, Ordering::SeqCst);
        let next = {
            let mut sends = self.sends.lock().unwrap();
            if sends.is_empty() {
                None
            } else {
                Some(sends.remove(0))
            }
        };
        match next {
            Some(Send::Refused) => Err(QueueError::Refused("AccessDenied".into())),
            Some(Send::LostBefore) => Err(QueueError::Ambiguous("reset".into())),
            Some(Send::LostAfter) => {
                self.pair.queue.send(message, lease).await?;
                Err(QueueError::Ambiguous("reset".into()))
            }
            Some(Send::Panics) => {
                // Others may join before.
                tokio::task::yield_now().await;
                panic!("a bug in an adapter")
            }
            None => self.pair.queue.send(message, lease).await,
        }
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

impl Backend for Scripted {
    type Store = MemoryStore;
    type Queue = Self;
    type Fused = std::convert::Infallible;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Split(&self.pair.store, self)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        self.pair.browse()
    }
}

fn scripted(sends: &[Send]) -> Rig<Scripted> {
    Rig::new(|clock| Scripted {
        pair: MemoryPair::new(clock, Duration::from_secs(300)),
        sends: Mutex::new(sends.to_vec()),
        tried: AtomicUsize::new(0),
    })
}

impl Rig<Scripted> {
    async fn claim(&self) -> Option<Claim> {
        self.gateway
            .backend
            .pair
            .store
            .look("t.s.e1")
            .await
            .unwrap()
    }

    fn tried(&self) -> usize {
        self.gateway.backend.tried.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_definite_refusal_deletes_the_claim() {
    let rig = scripted(&[Send::Refused]);
    assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
    assert_eq!(rig.claim().await, None);
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
}

#[tokio::test]
async fn a_refusal_behind_an_ambiguous_send_is_not_definite_and_keeps_the_record() {
    let rig = scripted(&[Send::LostAfter, Send::Refused]);
    assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
    let claim = rig.claim().await.unwrap();
    assert_eq!(
        (claim.state, claim.lease_left(NOON)),
        (State::Processing, None)
    );
    // The retry takes over and meets its own message in the window.
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert_eq!(rig.messages().len(), 1);
}

#[tokio::test]
async fn a_refusal_of_a_taker_is_not_definite_and_keeps_the_record() {
    let rig = scripted(&[Send::LostAfter, Send::Refused, Send::Refused]);
    assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
    // A taker, and all it met was a refusal; its predecessor's message is in the queue.
    assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
    assert_eq!(rig.claim().await.unwrap().first_at, NOON);
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert_eq!(rig.messages().len(), 1);
}

#[tokio::test]
async fn an_ambiguous_send_is_sent_again_with_the_same_ids() {
    let rig = scripted(&[Send::LostBefore, Send::LostAfter, Send::LostAfter]);
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert_eq!((rig.tried(), rig.messages().len()), (4, 1));
}

#[tokio::test]
async fn a_takeover_long_after_the_first_claim_flags_a_possible_duplicate() {
    for (later, flagged) in [(200, false), (310, true)] {
        let rig = scripted(&[Send::LostAfter, Send::Refused]);
        assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
        rig.clock.advance(Duration::from_secs(later));
        assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
        let messages = rig.messages();
        let context = messages
            .last()
            .unwrap()
            .message
            .attribute("hookgate")
            .unwrap();
        assert_eq!(
            context.contains("possible-duplicate"),
            flagged && messages.len() == 2
        );
        assert_eq!(messages.len(), if flagged { 2 } else { 1 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_taker_that_may_send_behind_the_window_flags_its_message_from_the_start() {
    let lost = [Send::LostBefore; 100];
    let rig = scripted(&[&[Send::LostAfter, Send::Refused], &lost[..]].concat());
    assert_eq!(rig.deliver("{}").await, Outcome::Unavailable);
    // Still inside the window, but its lease of 4 s ends behind it.
    rig.clock.advance(Duration::from_millis(297_900));
    let goes_on = async {
        while rig.tried() < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        rig.clock.advance(Duration::from_secs(3));
        rig.gateway.backend.sends.lock().unwrap().clear();
    };
    let (outcome, ()) = tokio::join!(rig.deliver("{}"), goes_on);
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    let flagged = rig.messages().into_iter().map(|held| {
        let context = held.message.attribute("hookgate").map(str::to_owned);
        context.is_some_and(|context| context.contains("possible-duplicate"))
    });
    assert_eq!(flagged.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_queue_never_confirms_ends_with_its_lease() {
    let rig = scripted(&[Send::LostBefore; 1000]);
    let goes_on = async {
        while rig.tried() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        rig.clock.advance(Duration::from_secs(5));
    };
    let (outcome, ()) = tokio::join!(rig.deliver("{}"), goes_on);
    assert_eq!(outcome, Outcome::Unavailable);
    assert!(rig.gateway.drain(Duration::from_secs(30)).await);
    assert_eq!(rig.claim().await.unwrap().lease_until, 0);
}

#[tokio::test]
async fn followers_of_a_leader_that_panics_are_told_to_come_again() {
    let rig = Arc::new(scripted(&[Send::Panics]));
    let copies: Vec<_> = (0..8)
        .map(|_| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move { rig.deliver("{}").await })
        })
        .collect();
    for copy in copies {
        assert_eq!(copy.await.unwrap(), Outcome::Unavailable);
    }
    // The claim is a dead owner's until its lease lapses; nothing is stuck in this process.
    rig.clock.advance(Duration::from_secs(5));
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert!(rig.metric("hookgate_running_deliveries 0"));
}

impl Rig<MemoryPair> {
    /// Another instance's claim of the event, its lease running.
    async fn claimed_elsewhere(&self) -> Token {
        let request = ClaimRequest {
            key: "t.s.e1".into(),
            token: Token::new(),
            lease: Duration::from_secs(30),
            group: "t.s.e1".into(),
            queue: "memory".into(),
            body_sha256: HEXLOWER.encode(&crypto::sha256(b"{}")),
            ttl: Duration::from_secs(86_400),
            take_over: None,
        };
        let claimed = self.gateway.backend.store.claim(&request).await.unwrap();
        assert!(matches!(claimed, Claimed::Owner(_)));
        request.token
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_an_event_in_flight_elsewhere_is_told_to_come_again_at_its_deadline() {
    let rig = memory();
    rig.claimed_elsewhere().await;
    let started = Instant::now();
    let (leader, follower) = tokio::join!(rig.deliver("{}"), rig.deliver("{}"));
    assert_eq!((leader, follower), (Outcome::InFlight, Outcome::InFlight));
    assert_eq!(started.elapsed(), rig.policy.answer_deadline);
    assert!(rig.messages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_waits_finds_the_other_owners_answer() {
    let rig = memory();
    let token = rig.claimed_elsewhere().await;
    let settle = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let store = &rig.gateway.backend.store;
        let mut claim = store.look("t.s.e1").await.unwrap().unwrap();
        assert_eq!(claim.token, token);
        claim.state = State::Accepted;
        claim.response = Some(Response {
            status: None,
            headers: vec![],
            body: "first".into(),
        });
        let key = "t.s.e1".to_owned();
        store.settle(&Settlement { key, claim }).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(rig.deliver("{}"), settle);
    assert!(matches!(&outcome, Outcome::Duplicate(_)), "{outcome:?}");
    assert_eq!(body(&outcome), "first");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_comes_again_takes_the_claim_over_within_its_deadline() {
    let mut rig = memory();
    rig.policy.in_flight = InFlightPolicy::TakeOver;
    let stale = rig.claimed_elsewhere().await;
    let outcome = rig.deliver("{}").await;
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    assert_eq!(rig.messages().len(), 1);
    // The one that lost it cannot give it up any more.
    let store = &rig.gateway.backend.store;
    store
        .release("t.s.e1", stale, Release::Delete)
        .await
        .unwrap();
    assert_eq!(
        store.look("t.s.e1").await.unwrap().unwrap().state,
        State::Accepted
    );
}

mod policies;

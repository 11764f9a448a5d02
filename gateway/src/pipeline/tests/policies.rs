//! Pressure, the claim store's outage, throttling, redeliveries: what a source's policy decides.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::pressure::{Limits, Pressure};
use crate::queue::Depth;

/// The reference pair, whose store can be out of reach and whose queue can throttle.
struct Weak {
    pair: MemoryPair,
    is_down: AtomicBool,
    throttles: AtomicUsize,
    claims: AtomicUsize,
}

impl Weak {
    fn up(&self) -> Result<&MemoryStore, StoreError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(StoreError::Ambiguous("no answer".into()));
        }
        Ok(&self.pair.store)
    }
}

impl ClaimStore for Weak {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        self.up()?.claim(request).await
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        self.up()?.settle(settlement).await
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        self.up()?.release(key, token, how).await
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        self.up()?.forget(key, generation).await
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        self.up()?.look(key).await
    }
}

impl EventQueue for Weak {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        let left = self.throttles.load(Ordering::SeqCst);
        if left > 0 {
            self.throttles.store(left - 1, Ordering::SeqCst);
            return Err(QueueError::Busy("RequestThrottled".into()));
        }
        self.pair.queue.send(message, lease).await
    }

    fn name(&self) -> &str {
        self.pair.queue.name()
    }
}

impl Backend for Weak {
    type Store = Self;
    type Queue = Self;
    type Fused = std::convert::Infallible;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Split(self, self)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        self.pair.browse()
    }
}

fn weak() -> Rig<Weak> {
    let mut rig = Rig::new(|clock| Weak {
        pair: MemoryPair::new(clock, Duration::from_secs(300)),
        is_down: AtomicBool::new(false),
        throttles: AtomicUsize::new(0),
        claims: AtomicUsize::new(0),
    });
    rig.policy.answer_deadline = Duration::from_millis(200);
    rig
}

/// The same under pressure: marks of 60 and 100 messages.
fn pressed(depth: u64) -> Rig<Weak> {
    let mut rig = weak();
    let gateway = Arc::get_mut(&mut rig.gateway).unwrap();
    let limits = Limits {
        high_water: 100,
        low_water: 60,
        ..Limits::default()
    };
    let (clock, telemetry) = (Arc::clone(&gateway.clock), Arc::clone(&gateway.telemetry));
    gateway.pressure = Pressure::new(limits, clock, telemetry);
    deepen(&rig, depth);
    rig
}

fn deepen(rig: &Rig<Weak>, visible: u64) {
    let depth = Depth {
        visible,
        ..Depth::default()
    };
    rig.gateway.pressure.poll(Some(Ok(depth)));
}

impl Rig<Weak> {
    fn down(&self, is_down: bool) {
        self.gateway
            .backend
            .is_down
            .store(is_down, Ordering::SeqCst);
    }

    async fn event(&self, id: &str) -> Outcome {
        self.says(Ok(Verdict::Accept(event(id))));
        self.deliver("{}").await
    }

    fn flags(&self, place: usize) -> bool {
        let messages = self.messages();
        let context = messages[place].message.attribute("hookgate").unwrap();
        context.contains("possible-duplicate")
    }

    async fn settled(&self, key: &str) -> Claim {
        for _ in 0..10_000 {
            if let Ok(Some(claim)) = self.gateway.backend.pair.store.look(key).await
                && claim.state == State::Accepted
            {
                return claim;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{key} is not settled");
    }
}

#[tokio::test]
async fn a_queue_too_deep_refuses_new_events_and_answers_known_ones() {
    let rig = pressed(0);
    assert!(matches!(rig.event("known").await, Outcome::Accepted(_)));
    rig.settled("t.s.known").await;
    deepen(&rig, 100);
    let claims = rig.gateway.backend.claims.load(Ordering::SeqCst);
    let refused = rig.event("new").await;
    let Outcome::Overloaded { retry_after } = refused else {
        panic!("{refused:?}")
    };
    assert!((5..=15).contains(&retry_after), "{retry_after}");
    assert!(matches!(rig.event("known").await, Outcome::Duplicate(_)));
    let now = rig.gateway.backend.claims.load(Ordering::SeqCst);
    assert_eq!(now, claims, "under pressure the store is only read");
    assert_eq!(rig.messages().len(), 1);
    deepen(&rig, 79);
    deepen(&rig, 0);
    assert!(matches!(rig.event("new").await, Outcome::Accepted(_)));
}

#[tokio::test]
async fn a_lapsed_claim_within_the_window_goes_on_under_pressure_and_an_older_one_does_not() {
    let rig = pressed(0);
    let claim = |key: &str| ClaimRequest {
        key: key.into(),
        token: Token::new(),
        lease: Duration::from_secs(4),
        group: "e".into(),
        queue: "q".into(),
        body_sha256: "00".repeat(32),
        ttl: Duration::from_secs(86_400),
        take_over: None,
    };
    let store = &rig.gateway.backend.pair.store;
    store.claim(&claim("t.s.old")).await.unwrap();
    rig.clock.advance(Duration::from_secs(295));
    store.claim(&claim("t.s.young")).await.unwrap();
    rig.clock.advance(Duration::from_secs(5));
    deepen(&rig, 100);
    assert!(matches!(rig.event("old").await, Outcome::Overloaded { .. }));
    assert!(matches!(rig.event("young").await, Outcome::Accepted(_)));
}

#[tokio::test]
async fn a_provider_that_takes_429_as_final_is_told_503() {
    let manifest = r#"{"v":1,"name":"okta","version":"1","retries_on":["5xx"]}"#;
    let manifest = Manifest::parse(manifest).unwrap();
    let answer = Outcome::Overloaded { retry_after: 7 }.answer(Some(&manifest));
    assert_eq!(answer.status, 503);
    let answer = Outcome::Overloaded { retry_after: 7 }.answer(None);
    assert_eq!(answer.status, 429);
    assert!(answer.headers.contains(&("retry-after".into(), "7".into())));
}

#[tokio::test]
async fn while_the_store_is_out_of_reach_events_are_rejected_unless_the_source_forwards() {
    let mut rig = weak();
    rig.down(true);
    assert_eq!(rig.event("e1").await, Outcome::Unavailable);
    assert!(rig.messages().is_empty());
    rig.policy.claim_outage = ClaimOutage::Forward;
    let first = rig.event("e2").await;
    assert!(matches!(first, Outcome::Accepted(_)), "{first:?}");
    assert!(rig.flags(0), "nobody knows whether others sent it");
    assert!(rig.metric("hookgate_unclaimed_total{tenant=\"t\",source=\"s\"} 1"));
    // This process still knows it; once the store is back, all do.
    assert!(matches!(rig.event("e2").await, Outcome::Duplicate(_)));
    rig.down(false);
    let claim = rig.settled("t.s.e2").await;
    assert_eq!(claim.generation, 0);
    assert!(matches!(rig.event("e2").await, Outcome::Duplicate(_)));
    assert_eq!(rig.messages().len(), 1);
    assert!(matches!(rig.event("e3").await, Outcome::Accepted(_)));
    assert!(!rig.flags(1));
}

#[tokio::test]
async fn an_event_that_waits_to_be_settled_holds_no_body() {
    let mut rig = weak();
    rig.policy.claim_outage = ClaimOutage::Forward;
    rig.down(true);
    let held = Arc::new(());
    let delivery = Arc::new(Delivery {
        id: uuid::Uuid::new_v4(),
        received_at: rig.clock.wall_ms(),
        method: Method::POST,
        target: "/in/t/s".into(),
        rest: String::new(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
    });
    let (weak, hold) = (Arc::downgrade(&delivery), Box::new(Arc::clone(&held)));
    let gateway = &rig.gateway;
    let outcome = gateway
        .deliver(&rig.source(), delivery, Instant::now(), hold)
        .await;
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    while weak.upgrade().is_some() || Arc::strong_count(&held) > 1 {
        tokio::task::yield_now().await;
    }
    assert!(
        rig.metric("hookgate_running_deliveries 1"),
        "it is not settled yet"
    );
    rig.down(false);
    rig.settled("t.s.e1").await;
}

#[tokio::test]
async fn a_throttled_send_is_tried_again_and_given_up_at_the_deadline_with_its_claim() {
    let rig = weak();
    rig.gateway.backend.throttles.store(2, Ordering::SeqCst);
    assert!(matches!(rig.event("soon").await, Outcome::Accepted(_)));
    rig.gateway
        .backend
        .throttles
        .store(usize::MAX, Ordering::SeqCst);
    assert_eq!(rig.event("never").await, Outcome::Unavailable);
    let released = || async {
        rig.gateway
            .backend
            .pair
            .store
            .look("t.s.never")
            .await
            .unwrap()
            .is_none()
    };
    for _ in 0..1000 {
        if released().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(released().await, "nothing was sent: the claim is deleted");
}

#[tokio::test]
async fn a_late_delivery_of_an_accepted_event_is_one_more_message_where_the_source_says_so() {
    let mut rig = weak();
    rig.policy.redelivery_after = Some(Duration::from_secs(600));
    let first = rig.event("e1").await;
    rig.settled("t.s.e1").await;
    rig.clock.advance(Duration::from_secs(600));
    assert!(
        matches!(rig.event("e1").await, Outcome::Duplicate(_)),
        "not late yet"
    );
    rig.clock.advance(Duration::from_millis(1));
    let again = rig.event("e1").await;
    assert!(matches!(again, Outcome::Accepted(_)), "{again:?}");
    let claim = rig.settled("t.s.e1").await;
    assert_eq!(claim.generation, 1);
    let ids: Vec<_> = rig
        .messages()
        .iter()
        .map(|held| held.message.deduplication_id.clone())
        .collect();
    assert_eq!(ids, ["t.s.e1", "t.s.e1~1"]);
    let id_of = |place: usize| {
        rig.messages()[place]
            .message
            .attribute("ce-id")
            .map(str::to_owned)
    };
    assert_eq!(id_of(0), id_of(1), "one event");
    assert!(!rig.flags(1), "somebody asked for it");
    assert!(matches!(rig.event("e1").await, Outcome::Duplicate(_)));
    assert_ne!(body(&first), body(&again), "each has its own first answer");
}

#[tokio::test]
async fn an_event_is_redelivered_from_one_database_too() {
    let mut rig = embedded();
    rig.policy.redelivery_after = Some(Duration::from_secs(600));
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    rig.clock.advance(Duration::from_secs(601));
    assert!(matches!(rig.deliver("{}").await, Outcome::Accepted(_)));
    assert!(matches!(rig.deliver("{}").await, Outcome::Duplicate(_)));
    let ids: Vec<_> = rig
        .messages()
        .iter()
        .map(|held| held.message.deduplication_id.clone())
        .collect();
    assert_eq!(ids, ["t.s.e1", "t.s.e1~1"]);
}

#[tokio::test]
async fn one_body_under_new_ids_is_counted() {
    let rig = weak();
    for id in ["e1", "e2", "e1"] {
        rig.event(id).await;
    }
    assert!(rig.metric("hookgate_unstable_ids_total{tenant=\"t\",source=\"s\"} 1"));
    assert_eq!(rig.messages().len(), 2);
}

#[tokio::test]
async fn claims_outlive_what_the_queue_keeps_where_the_policy_follows_it() {
    let mut rig = weak();
    rig.policy.claim_ttl_follows_queue = true;
    let days = |days: u64| days * 24 * 60 * 60;
    rig.gateway
        .retained
        .store(days(20) * 1000, Ordering::SeqCst);
    rig.event("long").await;
    let claim = rig.settled("t.s.long").await;
    assert_eq!(claim.expires_at, NOON / 1000 + days(20));
    rig.policy.claim_ttl_follows_queue = false;
    rig.event("fixed").await;
    let claim = rig.settled("t.s.fixed").await;
    assert_eq!(claim.expires_at, NOON / 1000 + days(1));
}

#[tokio::test]
async fn a_second_clock_counts_towards_a_possible_duplicate() {
    for (skew, flagged) in [(0, false), (10, true)] {
        let mut rig = weak();
        Arc::get_mut(&mut rig.gateway).unwrap().timing.skew = Duration::from_secs(skew);
        let mine = ClaimRequest {
            key: "t.s.e1".into(),
            token: Token::new(),
            lease: Duration::from_secs(4),
            group: "e".into(),
            queue: "memory".into(),
            body_sha256: "00".repeat(32),
            ttl: Duration::from_secs(86_400),
            take_over: None,
        };
        rig.gateway.backend.pair.store.claim(&mine).await.unwrap();
        // The rest of the lease (4 s) and sending (2 s) make 286 s, two skews of 10 s make 306 s.
        rig.clock.advance(Duration::from_secs(280));
        assert!(matches!(rig.event("e1").await, Outcome::Accepted(_)));
        assert_eq!(rig.flags(0), flagged, "{skew}");
    }
}

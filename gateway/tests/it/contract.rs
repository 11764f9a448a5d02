//! What every backend must do: one suite for claim stores, one for queues, one for the pair of them. A
//! backend is put on a bench and runs all of a suite's cases.
//!
//! Cases know the seams alone. They wait through the bench, which moves a clock or really waits, with leases
//! of 200 ms and lives of seconds; keys are made anew, so that cases may share one server.

/// A test of each case on one bench.
macro_rules! contract {
    ($name:ident: $($case:ident),* $(,)?) => {
        mod $name {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::contract::bench::$name().await).await;
            })*
        }
    };
}

pub mod bench;
mod pair;
mod queue;
mod store;

use std::time::Duration;

use hookgate::clock::{SharedClock, Span};
use hookgate::delivery::{Message, Response};
use hookgate::queue::{EventQueue, Sent};
use hookgate::store::{
    Claim, ClaimRequest, ClaimStore, Claimed, Grant, RECORD_VERSION, Settlement, State, Token,
};

pub const LEASE: Duration = Duration::from_millis(200);
pub const TTL: Duration = Duration::from_secs(60);
pub const WINDOW: Duration = Duration::from_secs(3);

/// Time as a backend and its owners see it.
pub trait Time {
    fn clock(&self) -> SharedClock;

    /// Lets this time pass.
    async fn pass(&self, time: Duration);

    fn now(&self) -> u64 {
        self.clock().wall_ms()
    }
}

/// A claim store under test.
pub trait StoreBench: Time {
    type Store: ClaimStore;

    fn store(&self) -> &Self::Store;

    /// Leaves a record that is not there yet, as an operator or another version would.
    async fn plant(&self, key: &str, claim: Claim) {
        let key = key.to_owned();
        self.store()
            .settle(&Settlement { key, claim })
            .await
            .unwrap();
    }

    async fn claim(&self, request: &ClaimRequest) -> Claimed {
        self.store().claim(request).await.unwrap()
    }

    /// Claims what must be free.
    async fn own(&self, request: &ClaimRequest) -> Grant {
        match self.claim(request).await {
            Claimed::Owner(grant) => grant,
            other => panic!("{other:?}"),
        }
    }

    async fn look(&self, key: &str) -> Option<Claim> {
        self.store().look(key).await.unwrap()
    }

    async fn settle(&self, key: &str, claim: &Claim) {
        let (key, claim) = (key.to_owned(), claim.clone());
        self.store()
            .settle(&Settlement { key, claim })
            .await
            .unwrap();
    }
}

/// A queue under test, whose deduplication window is [`WINDOW`] where the broker's can be chosen.
pub trait QueueBench: Time {
    type Queue: EventQueue;

    fn queue(&self) -> &Self::Queue;

    fn window(&self) -> Duration {
        WINDOW
    }

    /// What it says of a send that another one would say this of: not every queue tells copies apart.
    fn says(&self, sent: Sent) -> Sent {
        sent
    }

    /// Everything of these groups that it holds, in its order.
    async fn held(&self, groups: &[&str]) -> Vec<Message>;

    fn lease(&self, length: Duration) -> Span {
        Span::start(&self.clock(), length)
    }
}

/// A key that nobody has used.
pub fn fresh(name: &str) -> String {
    format!("t.s.{name}-{}", uuid::Uuid::new_v4().simple())
}

pub fn request(key: &str) -> ClaimRequest {
    ClaimRequest {
        key: key.to_owned(),
        token: Token::new(),
        lease: LEASE,
        group: format!("{key}-group"),
        queue: "q".into(),
        body_sha256: "00".repeat(32),
        ttl: TTL,
        take_over: None,
    }
}

/// A record of that generation as its owner settles it.
pub fn accepted(now: u64, token: Token, generation: u32, answer: &str) -> Claim {
    Claim {
        version: RECORD_VERSION,
        state: State::Accepted,
        token,
        lease_until: 0,
        first_at: now,
        accepted_at: Some(now),
        generation,
        group: "g".into(),
        queue: "q".into(),
        body_sha256: "00".repeat(32),
        response: Some(Response {
            status: None,
            headers: vec![("x-first".into(), "yes".into())],
            body: answer.to_owned().into(),
        }),
        expires_at: now / 1000 + TTL.as_secs(),
    }
}

/// A record that waits for its owner, who is gone.
pub fn open(now: u64, token: Token, generation: u32) -> Claim {
    Claim {
        state: State::Processing,
        accepted_at: None,
        response: None,
        ..accepted(now, token, generation, "")
    }
}

pub fn answer_of(claim: &Claim) -> &[u8] {
    claim
        .response
        .as_ref()
        .map_or(b"", |response| &response.body)
}

pub fn message(id: &str, group: &str, body: &str) -> Message {
    Message {
        deduplication_id: id.to_owned(),
        group_id: group.to_owned(),
        attributes: vec![("ce-id".into(), id.to_owned())],
        body: body.to_owned().into(),
    }
}

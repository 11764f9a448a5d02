//! Providers that hang up while their event is being worked on, with copies of it waiting: whatever the step and
//! the way, the event ends up in the queue once and every copy gets its answer.

use tokio::sync::Semaphore;

use super::*;
use crate::backend::Pair;
use crate::clock::Span;
use crate::delivery::Message;
use crate::queue::{Browse, EventQueue, QueueError, Sent};
use crate::store::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token,
};

const FOLLOWERS: usize = 31;

/// Where the work stops until it is let on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    BeforeClaim,
    AfterClaim,
    BeforeSend,
    AfterSend,
    BeforeSettle,
}

/// The memory pair with one gate in it.
struct Gated {
    pair: MemoryPair,
    gate: Gate,
    reached: Semaphore,
    opened: Semaphore,
}

impl Gated {
    async fn pass(&self, here: Gate) {
        if here == self.gate {
            self.reached.add_permits(1);
            // Closed once it is open to all.
            let _ = self.opened.acquire().await;
        }
    }
}

impl ClaimStore for Gated {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        self.pass(Gate::BeforeClaim).await;
        let claimed = self.pair.store.claim(request).await;
        self.pass(Gate::AfterClaim).await;
        claimed
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        self.pass(Gate::BeforeSettle).await;
        self.pair.store.settle(settlement).await
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        self.pair.store.release(key, token, how).await
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        self.pair.store.forget(key, generation).await
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        self.pair.store.look(key).await
    }
}

impl EventQueue for Gated {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        self.pass(Gate::BeforeSend).await;
        let sent = self.pair.queue.send(message, lease).await;
        self.pass(Gate::AfterSend).await;
        sent
    }

    fn name(&self) -> &'static str {
        "gated"
    }
}

impl Backend for Gated {
    type Store = Self;
    type Queue = Self;
    type Fused = Infallible;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Split(self, self)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        self.pair.browse()
    }
}

async fn gated(gate: Gate) -> Rig<Gated> {
    let roomy = Limits {
        memory_budget: 1 << 20,
        ..limits()
    };
    rig_on(roomy, None, |clock| Gated {
        pair: MemoryPair::new(clock, Duration::from_secs(300)),
        gate,
        reached: Semaphore::new(0),
        opened: Semaphore::new(0),
    })
    .await
}

const REQUEST: &[u8] =
    b"POST /in/t/s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";

/// How a provider hangs up.
#[derive(Debug, Clone, Copy)]
enum Hangup {
    Fin,
    Rst,
    RstStream,
}

/// Delivers, and hangs up once the work has come to the gate.
async fn deliver_and_hang_up(rig: &Rig<Gated>, how: Hangup) {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let reached = &rig.gateway.backend.reached;
    if let Hangup::RstStream = how {
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let body = http_body_util::Full::new(bytes::Bytes::from_static(b"{}"));
        let request = Request::post("http://x/in/t/s").body(body).unwrap();
        let answer = tokio::spawn(sender.send_request(request));
        reached.acquire().await.unwrap().forget();
        // Dropping what waits for the answer resets its stream, and the connection lives on.
        answer.abort();
        let _ = answer.await;
        return;
    }
    stream.write_all(REQUEST).await.unwrap();
    reached.acquire().await.unwrap().forget();
    if let Hangup::Rst = how {
        stream.set_zero_linger().unwrap();
    }
    drop(stream);
}

#[tokio::test]
async fn a_leader_that_hangs_up_at_any_step_in_any_way_leaves_its_event_and_its_followers_alone() {
    use Gate::{AfterClaim, AfterSend, BeforeClaim, BeforeSend, BeforeSettle};
    for gate in [BeforeClaim, AfterClaim, BeforeSend, AfterSend, BeforeSettle] {
        for how in [Hangup::Fin, Hangup::Rst, Hangup::RstStream] {
            let rig = Arc::new(gated(gate).await);
            deliver_and_hang_up(&rig, how).await;
            let followers: Vec<_> = (0..FOLLOWERS)
                .map(|_| {
                    let rig = Arc::clone(&rig);
                    tokio::spawn(async move { rig.exchange(REQUEST).await })
                })
                .collect();
            while rig.plugin.seen.lock().unwrap().len() <= FOLLOWERS {
                tokio::task::yield_now().await;
            }
            rig.gateway.backend.opened.close();
            for follower in followers {
                let answer = follower.await.unwrap();
                assert_eq!(status(&answer), "200", "{gate:?} {how:?}: {answer}");
            }
            assert!(rig.gateway.drain(Duration::from_secs(30)).await);
            assert_eq!(rig.messages(), 1, "{gate:?} {how:?}");
        }
    }
}

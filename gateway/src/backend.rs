//! The pair of a claim store and a queue, chosen at start: two seams side by side, or one database that
//! holds both and accepts an event in one transaction.

mod finding;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use crate::clock::SharedClock;
use crate::delivery::Message;
use crate::queue::memory::MemoryQueue;
use crate::queue::{Browse, EventQueue};
use crate::store::memory::MemoryStore;
use crate::store::{Claim, ClaimStore, StoreError, Token};

pub use finding::{Finding, Gravity};

/// A claim as accepted, and its message: one transaction, or nothing.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The claim's key.
    pub key: String,
    /// The record as it is to stand.
    pub claim: Claim,
    /// The message.
    pub message: Message,
    /// The open record that this acceptance closes, by its token, where one was found before.
    pub closes: Option<Token>,
}

/// What an acceptance finds inside its transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// Nothing: claim and message are durable now.
    New,
    /// The event was accepted before. Nothing has changed.
    Duplicate(Box<Claim>),
    /// A record that is not accepted, whose generation and group the message must carry. Nothing has changed.
    Open(Box<Claim>),
}

/// Claim and message in one durable transaction: an optional capability of a pair.
pub trait Accept: Send + Sync + 'static {
    /// Accepts an event unless it is a duplicate. Durable once it returns [`Accepted::New`]; cancelling it
    /// leaves the transaction to go on.
    fn accept(
        &self,
        acceptance: Acceptance,
    ) -> impl Future<Output = Result<Accepted, StoreError>> + Send;

    /// As [`ClaimStore::forget`].
    fn forget(
        &self,
        key: &str,
        generation: u32,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The queue's name, as claims record it.
    fn queue_name(&self) -> &str;
}

impl Accept for Infallible {
    async fn accept(&self, _: Acceptance) -> Result<Accepted, StoreError> {
        match *self {}
    }

    async fn forget(&self, _: &str, _: u32) -> Result<bool, StoreError> {
        match *self {}
    }

    fn queue_name(&self) -> &str {
        match *self {}
    }
}

/// How the pair is used.
pub enum Pair<'a, B: Backend + ?Sized> {
    /// Claim, send, settle: three calls.
    Split(&'a B::Store, &'a B::Queue),
    /// One transaction.
    Fused(&'a B::Fused),
}

/// A store-and-queue pair.
pub trait Backend: Send + Sync + 'static {
    /// Its claim store.
    type Store: ClaimStore;
    /// Its queue.
    type Queue: EventQueue;
    /// What it is where both are one.
    type Fused: Accept;

    /// How it is used.
    fn pair(&self) -> Pair<'_, Self>;

    /// Its claim store, where an operator may look into it.
    fn store(&self) -> Option<&Self::Store> {
        match self.pair() {
            Pair::Split(store, _) => Some(store),
            Pair::Fused(_) => None,
        }
    }

    /// Its queue's messages, where they can be looked at.
    fn browse(&self) -> Option<&dyn Browse>;
}

/// The reference pair. Nothing in it is durable.
pub struct MemoryPair {
    /// The claims.
    pub store: MemoryStore,
    /// The messages.
    pub queue: MemoryQueue,
}

impl MemoryPair {
    /// An empty pair with this deduplication window.
    pub fn new(clock: &SharedClock, window: std::time::Duration) -> Self {
        Self {
            store: MemoryStore::new(Arc::clone(clock)),
            queue: MemoryQueue::new(Arc::clone(clock), window),
        }
    }
}

impl Backend for MemoryPair {
    type Store = MemoryStore;
    type Queue = MemoryQueue;
    type Fused = Infallible;

    fn pair(&self) -> Pair<'_, Self> {
        Pair::Split(&self.store, &self.queue)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        Some(&self.queue)
    }
}

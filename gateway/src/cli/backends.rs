//! The backends that a configuration can choose: a closed list, opened here and nowhere else.

use std::sync::Arc;

use crate::aws;
use crate::backend::{Backend, Finding, Pair};
use crate::clock::skew::Skew;
use crate::clock::{SharedClock, Span};
use crate::config::secret::{Process, SecretRef};
use crate::config::validate::{BackendSettings, QueueSettings, StoreSettings};
use crate::delivery::Message;
use crate::embedded::{self, Embedded};
use crate::pipeline::Timing;
use crate::queue::memory::MemoryQueue;
use crate::queue::sqs::{QueueFacts, SqsQueue};
use crate::queue::{Browse, Depth, EventQueue, QueueError, Sent};
use crate::store::dynamodb::DynamoStore;
use crate::store::memory::MemoryStore;
use crate::store::redis::{self, RedisSettings, RedisStore};
use crate::store::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token,
};

/// Claims and messages that those in memory keep: the oldest are forgotten, or what is only for measuring would
/// grow for ever, and growing would be what is measured.
const IN_MEMORY: usize = 16_384;

/// The claim stores.
pub(super) enum Stores {
    Embedded(Arc<Embedded>),
    Memory(MemoryStore),
    DynamoDb(DynamoStore),
    Redis(Box<RedisStore>),
}

/// The queues.
pub(super) enum Queues {
    Embedded(Arc<Embedded>),
    Memory(MemoryQueue),
    Sqs(SqsQueue),
}

/// A store and a queue, which may be one database.
pub(super) struct Backends {
    pub(super) store: Stores,
    pub(super) queue: Queues,
    fused: Option<Arc<Embedded>>,
    /// The clocks that are compared with this machine's.
    pub(super) skews: Vec<Arc<Skew>>,
}

/// Why there are no backends.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    #[error(transparent)]
    Redis(#[from] redis::OpenError),
    #[error("store.redis: {0}")]
    Secret(String),
}

/// What a look at the live backends found, with the section of the configuration that each is about.
pub(super) struct Look {
    pub(super) findings: Vec<(&'static str, Finding)>,
    pub(super) queue: Option<QueueFacts>,
}

impl Backends {
    /// Opens both. Remote ones are not called yet.
    pub(super) async fn open(
        settings: &BackendSettings,
        clock: &SharedClock,
        timing: &Timing,
    ) -> Result<Self, OpenError> {
        let embedded = |path| {
            let opened = Embedded::open(path, Arc::clone(clock), timing.window);
            opened.map(Arc::new)
        };
        let mut skews = Vec::new();
        let mut compared = |backend| {
            let skew = Arc::new(Skew::of(backend));
            skews.push(Arc::clone(&skew));
            (skew, Arc::clone(clock))
        };
        let mut fused = None;
        let store = match &settings.store {
            StoreSettings::Embedded { path } => {
                let embedded = embedded(path)?;
                fused = (settings.queue == QueueSettings::Store).then(|| Arc::clone(&embedded));
                Stores::Embedded(embedded)
            }
            StoreSettings::Memory => {
                Stores::Memory(MemoryStore::keeping(Arc::clone(clock), IN_MEMORY))
            }
            StoreSettings::DynamoDb(dynamodb) => {
                let shared = aws::configuration(&dynamodb.aws, dynamodb.timeout).await;
                Stores::DynamoDb(DynamoStore::new(&shared, dynamodb, compared("dynamodb")))
            }
            StoreSettings::Redis(servers) => {
                let read = |at: &Option<SecretRef>| {
                    let password = at.as_ref().map(|at| at.password(&Process));
                    password.transpose().map_err(OpenError::Secret)
                };
                let redis = RedisSettings {
                    password: read(&servers.password)?,
                    sentinel_password: read(&servers.sentinel_password)?,
                    ..servers.settings.clone()
                };
                let store = RedisStore::connect(redis, compared("redis").0)?;
                Stores::Redis(Box::new(store))
            }
        };
        let queue = match (&settings.queue, &fused) {
            (QueueSettings::Store, Some(fused)) => Queues::Embedded(Arc::clone(fused)),
            (QueueSettings::Embedded { path }, _) => Queues::Embedded(embedded(path)?),
            (QueueSettings::Sqs(sqs), _) => {
                let shared = aws::configuration(&sqs.aws, sqs.timeout).await;
                Queues::Sqs(SqsQueue::new(&shared, sqs, compared("sqs")))
            }
            (QueueSettings::Memory | QueueSettings::Store, _) => {
                let clock = Arc::clone(clock);
                Queues::Memory(MemoryQueue::keeping(clock, timing.window, IN_MEMORY))
            }
        };
        Ok(Self {
            store,
            queue,
            fused,
            skews,
        })
    }

    /// Looks at the live backends. Changes nothing.
    pub(super) async fn check(&self) -> Look {
        // Large, for what is done once a minute.
        Box::pin(self.look()).await
    }

    async fn look(&self) -> Look {
        let mut findings = Vec::new();
        if let Stores::DynamoDb(store) = &self.store {
            findings.extend(
                store
                    .check()
                    .await
                    .into_iter()
                    .map(|found| ("store", found)),
            );
        }
        if let Stores::Redis(store) = &self.store {
            let found = store.check().await.unwrap_or_else(|error| {
                let finding = Finding::error(error.to_string());
                vec![
                    finding
                        .hint("check the network, and `store.redis.nodes`")
                        .passing(),
                ]
            });
            findings.extend(found.into_iter().map(|found| ("store", found)));
        }
        let mut queue = None;
        if let Queues::Sqs(sqs) = &self.queue {
            let (facts, found) = sqs.check().await;
            findings.extend(found.into_iter().map(|found| ("queue", found)));
            queue = facts;
        }
        Look { findings, queue }
    }

    /// How many messages the queue holds; none where it does not tell.
    pub(super) async fn depth(&self) -> Option<Result<Depth, QueueError>> {
        match &self.queue {
            Queues::Sqs(sqs) => Some(sqs.depth().await),
            // Nothing takes messages out of these yet: their depth says nothing of pressure.
            Queues::Embedded(_) | Queues::Memory(_) => None,
        }
    }
}

impl Backend for Backends {
    type Store = Stores;
    type Queue = Queues;
    type Fused = Embedded;

    fn pair(&self) -> Pair<'_, Self> {
        match &self.fused {
            Some(fused) => Pair::Fused(fused.as_ref()),
            None => Pair::Split(&self.store, &self.queue),
        }
    }

    fn store(&self) -> Option<&Stores> {
        Some(&self.store)
    }

    fn browse(&self) -> Option<&dyn Browse> {
        match &self.queue {
            Queues::Embedded(embedded) => Some(embedded.as_ref()),
            Queues::Memory(memory) => Some(memory),
            Queues::Sqs(_) => None,
        }
    }
}

/// Calls the one that was chosen. A call to AWS is large, and every delivery would carry room for it.
macro_rules! chosen {
    ($self:expr, $store:ident => $call:expr) => {
        match $self {
            Stores::Embedded($store) => $call.await,
            Stores::Memory($store) => $call.await,
            Stores::DynamoDb($store) => Box::pin($call).await,
            Stores::Redis($store) => $call.await,
        }
    };
}

impl ClaimStore for Stores {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        chosen!(self, store => store.claim(request))
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        chosen!(self, store => store.settle(settlement))
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        chosen!(self, store => store.release(key, token, how))
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        chosen!(self, store => store.forget(key, generation))
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        chosen!(self, store => store.look(key))
    }
}

impl EventQueue for Queues {
    async fn send(&self, message: &Message, lease: &Span) -> Result<Sent, QueueError> {
        match self {
            Self::Embedded(queue) => queue.send(message, lease).await,
            Self::Memory(queue) => queue.send(message, lease).await,
            Self::Sqs(queue) => queue.send(message, lease).await,
        }
    }

    async fn send_recorded(
        &self,
        queue: &str,
        message: &Message,
        lease: &Span,
    ) -> Result<Sent, QueueError> {
        match self {
            Self::Sqs(sqs) => sqs.send_recorded(queue, message, lease).await,
            Self::Embedded(_) | Self::Memory(_) => self.send(message, lease).await,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Embedded(queue) => queue.name(),
            Self::Memory(queue) => queue.name(),
            Self::Sqs(queue) => queue.name(),
        }
    }
}

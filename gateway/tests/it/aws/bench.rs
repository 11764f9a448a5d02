//! The benches of DynamoDB (in this process, a database a test) and of SQS (one process, an account a test).

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use hookgate::aws::{self, AwsSettings, Compared};
use hookgate::clock::skew::Skew;
use hookgate::clock::{SharedClock, SystemClock};
use hookgate::delivery::Message;
use hookgate::queue::Sent;
use hookgate::queue::sqs::{SqsQueue, SqsSettings};
use hookgate::store::dynamodb::{DynamoSettings, DynamoStore};
use hookgate_backends::aws::Aws;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::contract::{QueueBench, StoreBench, Time};

/// Generous: a busy machine must not fail a test.
const CALL: Duration = Duration::from_secs(10);

pub fn compared() -> Compared {
    (Arc::new(Skew::of("aws")), Arc::new(SystemClock))
}

/// As a gateway's, with the credentials of this account.
pub async fn shared(endpoint: &str, account: &str) -> SdkConfig {
    let credentials = Credentials::new(account, "secret", None, None, "test");
    let shared = aws::configuration(&at(endpoint), CALL).await;
    shared
        .into_builder()
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

pub fn at(endpoint: &str) -> AwsSettings {
    AwsSettings {
        region: Some("eu-central-1".into()),
        endpoint: Some(endpoint.into()),
    }
}

/// A DynamoDB of one's own.
pub struct Dynamo {
    pub store: DynamoStore,
    pub endpoint: String,
    _stop: oneshot::Sender<()>,
}

impl Dynamo {
    /// Without a table yet.
    pub async fn empty() -> Self {
        let database = dynoxide::Database::memory().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            dynoxide::server::serve_with_shutdown(listener, database, stopped).await
        });
        Self {
            store: store(&endpoint, "claims").await,
            endpoint,
            _stop: stop,
        }
    }
}

pub async fn store(endpoint: &str, table: &str) -> DynamoStore {
    let settings = DynamoSettings {
        aws: at(endpoint),
        table: table.into(),
        timeout: CALL,
    };
    DynamoStore::new(&shared(endpoint, "test").await, &settings, compared())
}

pub async fn dynamodb() -> Dynamo {
    let dynamo = Dynamo::empty().await;
    dynamo.store.create_table().await.unwrap();
    dynamo
}

/// Real time, as every remote backend has it.
macro_rules! real_time {
    ($($bench:ty),*) => {$(
        impl Time for $bench {
            fn clock(&self) -> SharedClock {
                Arc::new(SystemClock)
            }

            async fn pass(&self, time: Duration) {
                tokio::time::sleep(time).await;
            }
        }
    )*};
}

real_time!(Dynamo, Fifo);

impl StoreBench for Dynamo {
    type Store = DynamoStore;

    fn store(&self) -> &DynamoStore {
        &self.store
    }
}

/// A FIFO queue of one's own, in an account of one's own.
pub struct Fifo {
    pub queue: SqsQueue,
    pub client: aws_sdk_sqs::Client,
    pub url: String,
    /// What was taken out of it.
    taken: Mutex<Vec<Message>>,
}

/// The stand-in that all tests share.
pub fn stand_in() -> &'static Aws {
    static AWS: OnceLock<Aws> = OnceLock::new();
    AWS.get_or_init(|| Aws::start().unwrap_or_else(|error| panic!("{error}")))
}

pub fn settings(endpoint: &str, url: &str) -> SqsSettings {
    SqsSettings {
        aws: at(endpoint),
        url: url.into(),
        timeout: CALL,
        linger: Duration::from_millis(2),
        batches: 16,
        max_bytes: 1 << 20,
    }
}

/// The attributes of a queue that events may be sent to.
pub const FIFO: [(QueueAttributeName, &str); 3] = [
    (QueueAttributeName::FifoQueue, "true"),
    (QueueAttributeName::DeduplicationScope, "messageGroup"),
    (QueueAttributeName::FifoThroughputLimit, "perMessageGroupId"),
];

/// A queue of that name and those attributes; its sender goes to `through`.
pub async fn queue(name: &str, attributes: &[(QueueAttributeName, &str)], through: &str) -> Fifo {
    let shared = shared(&stand_in().endpoint(), &Aws::account()).await;
    let client = aws_sdk_sqs::Client::new(&shared);
    let mut create = client.create_queue().queue_name(name);
    for (name, value) in attributes {
        create = create.attributes(name.clone(), *value);
    }
    let url = create.send().await.unwrap().queue_url.unwrap();
    let through = shared.into_builder().endpoint_url(through).build();
    Fifo {
        queue: SqsQueue::new(
            &through,
            &settings(through.endpoint_url().unwrap(), &url),
            compared(),
        ),
        client,
        url,
        taken: Mutex::default(),
    }
}

pub async fn sqs() -> Fifo {
    queue("events.fifo", &FIFO, &stand_in().endpoint()).await
}

impl QueueBench for Fifo {
    type Queue = SqsQueue;

    fn queue(&self) -> &SqsQueue {
        &self.queue
    }

    fn says(&self, _: Sent) -> Sent {
        Sent::Held
    }

    async fn held(&self, groups: &[&str]) -> Vec<Message> {
        let received = self.receive_all().await;
        let mut taken = self.taken.lock().unwrap();
        taken.extend(received);
        let of_groups = taken
            .iter()
            .filter(|message| groups.contains(&message.group_id.as_str()));
        of_groups.cloned().collect()
    }
}

impl Fifo {
    /// Takes every message out of the queue, in its order.
    pub async fn receive_all(&self) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let received = self
                .client
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(10)
                .message_attribute_names("All")
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await
                .unwrap()
                .messages
                .unwrap_or_default();
            if received.is_empty() {
                return all;
            }
            for message in received {
                all.push(read(&message));
                let handle = message.receipt_handle.unwrap();
                let delete = self.client.delete_message().queue_url(&self.url);
                delete.receipt_handle(handle).send().await.unwrap();
            }
        }
    }
}

fn read(message: &aws_sdk_sqs::types::Message) -> Message {
    let system = message.attributes.as_ref().unwrap();
    let of = |name: MessageSystemAttributeName| system[&name].clone();
    let mut attributes: Vec<_> = message.message_attributes.iter().flatten().collect();
    attributes.sort_by_key(|(name, _)| *name);
    Message {
        deduplication_id: of(MessageSystemAttributeName::MessageDeduplicationId),
        group_id: of(MessageSystemAttributeName::MessageGroupId),
        attributes: attributes
            .into_iter()
            .map(|(name, value)| (name.clone().into(), value.string_value.clone().unwrap()))
            .collect(),
        body: message.body.clone().unwrap().into(),
    }
}

/// Both, as a pair.
pub struct Both {
    dynamo: Dynamo,
    fifo: Fifo,
}

pub async fn both() -> Both {
    Both {
        dynamo: dynamodb().await,
        fifo: sqs().await,
    }
}

real_time!(Both);

impl StoreBench for Both {
    type Store = DynamoStore;

    fn store(&self) -> &DynamoStore {
        &self.dynamo.store
    }
}

impl QueueBench for Both {
    type Queue = SqsQueue;

    fn queue(&self) -> &SqsQueue {
        &self.fifo.queue
    }

    fn says(&self, sent: Sent) -> Sent {
        self.fifo.says(sent)
    }

    async fn held(&self, groups: &[&str]) -> Vec<Message> {
        self.fifo.held(groups).await
    }
}

//! A site: a claim store and a FIFO queue of one's own, the gateways that share them, and the proxies between.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};
use hookgate::aws::{self, AwsSettings};
use hookgate_backends::aws::Aws;
use hookgate_backends::proxy::{FaultProxy, Plan, Protocol};
use hookgate_backends::redis::{Redis, RedisCluster};
use hookgate_tests::gateway::{self, Gateway, StartError};
use hookgate_tests::provider::{Answer, Connection, Signed};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

use super::letters;
use crate::world::{self, DEADLINE};

/// The secret of the source `orders`.
pub const SECRET: &str = "a secret that only this test knows";

/// What keeps the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A table of the stand-in.
    DynamoDb,
    /// One server.
    Redis,
    /// A cluster of three.
    RedisCluster,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DynamoDb, Self::Redis, Self::RedisCluster];
    /// Those that a proxy can stand in front of: a cluster names its servers itself.
    pub const PROXIED: [Self; 2] = [Self::DynamoDb, Self::Redis];
}

/// The stand-in for AWS that tests share, an account each.
fn stand_in() -> &'static Aws {
    static AWS: OnceLock<Aws> = OnceLock::new();
    AWS.get_or_init(|| Aws::start().unwrap_or_else(|error| panic!("{error}")))
}

/// The server that tests share, a prefix each.
fn redis() -> &'static Redis {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    REDIS.get_or_init(|| Redis::start(&[]).unwrap_or_else(|error| panic!("{error}")))
}

fn cluster() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(|| RedisCluster::start().unwrap_or_else(|error| panic!("{error}")))
}

/// Where a gateway finds its backends.
#[derive(Debug, Clone)]
pub struct Paths {
    /// AWS's endpoint.
    pub aws: String,
    /// The Redis server, or one of the cluster's.
    pub redis: String,
}

/// Proxies between one gateway and its backends.
pub struct Proxies {
    /// In front of AWS: the queue, and the table where there is one.
    pub aws: FaultProxy,
    /// In front of Redis.
    pub redis: FaultProxy,
    /// What keeps the claims.
    pub kind: Kind,
}

impl Proxies {
    /// The way through them.
    pub fn paths(&self) -> Paths {
        Paths {
            aws: format!("http://{}", self.aws.address()),
            redis: format!("redis://{}", self.redis.address()),
        }
    }

    /// Breaks what goes to the claim store.
    pub fn break_store(&self, plan: Plan) {
        const CALLS: [&str; 4] = ["PutItem", "UpdateItem", "GetItem", "DeleteItem"];
        match self.kind {
            Kind::DynamoDb => self.aws.set(CALLS.into_iter().fold(plan, Plan::on)),
            Kind::Redis | Kind::RedisCluster => self.redis.set(plan),
        }
    }

    /// Breaks what is sent to the queue.
    pub fn break_queue(&self, plan: Plan) {
        self.aws.set(plan.on("SendMessageBatch"));
    }

    /// Breaks nothing any more.
    pub fn heal(&self) {
        self.aws.set(Plan::healthy());
        self.redis.set(Plan::healthy());
    }
}

/// A message of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its place in the queue.
    pub place: u128,
    /// The group.
    pub group: String,
    /// The event.
    pub id: String,
    /// The source's name.
    pub source: String,
    /// The attribute `hookgate`.
    pub head: Value,
    /// The body.
    pub body: String,
}

impl Message {
    /// Whether it says that it may be a second one.
    pub fn is_flagged(&self) -> bool {
        let flags = self.head["flags"].as_array();
        flags.is_some_and(|flags| flags.iter().any(|flag| flag == "possible-duplicate"))
    }
}

/// A claim store and a queue that gateways share.
pub struct Site {
    kind: Kind,
    aws: SocketAddr,
    /// The account, which is the access key too.
    pub account: String,
    client: aws_sdk_sqs::Client,
}

impl Site {
    /// A new one: an account, a table or a prefix, queues.
    pub async fn new(kind: Kind) -> Self {
        Self::at(kind, stand_in()).await
    }

    /// The same on a stand-in that nobody else uses.
    pub async fn at(kind: Kind, aws: &Aws) -> Self {
        let account = Aws::account();
        let settings = AwsSettings {
            region: Some("eu-central-1".into()),
            endpoint: Some(aws.endpoint()),
        };
        let credentials = Credentials::new(&account, "secret", None, None, "test");
        let shared = aws::configuration(&settings, DEADLINE).await;
        let shared = shared
            .into_builder()
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let site = Self {
            kind,
            aws: SocketAddr::from(([127, 0, 0, 1], aws.port())),
            account,
            client: aws_sdk_sqs::Client::new(&shared),
        };
        let directory = site.directory(&site.direct(), "");
        let made = site.run(directory.path(), &["dev", "create-tables"]).await;
        assert!(made.contains("queue are there"), "{made}");
        site
    }

    /// Straight to the backends.
    pub fn direct(&self) -> Paths {
        let redis = match self.kind {
            Kind::RedisCluster => cluster().url(),
            Kind::DynamoDb | Kind::Redis => redis().url(),
        };
        Paths {
            aws: format!("http://{}", self.aws),
            redis,
        }
    }

    /// Proxies for one gateway, which break nothing yet.
    pub async fn proxies(&self) -> Proxies {
        let aws = FaultProxy::start(self.aws, Protocol::Http, Plan::healthy());
        let redis = FaultProxy::start(redis().address(), Protocol::Redis, Plan::healthy());
        Proxies {
            aws: aws.await.expect("a proxy"),
            redis: redis.await.expect("a proxy"),
            kind: self.kind,
        }
    }

    /// A gateway's directory: both sources, and these lines more before them.
    pub fn directory(&self, paths: &Paths, more: &str) -> TempDir {
        let store = match self.kind {
            Kind::DynamoDb => {
                "[store]\nkind = \"dynamodb\"\ndynamodb.table = \"claims\"\n".to_owned()
            }
            Kind::Redis | Kind::RedisCluster => format!(
                "[store]\nkind = \"redis\"\nredis.nodes = [\"{}\"]\nredis.cluster = {}\nredis.key_prefix = \"{}:\"\n",
                paths.redis,
                self.kind == Kind::RedisCluster,
                self.account,
            ),
        };
        let backends = format!(
            "{store}\n[queue]\nkind = \"sqs\"\nsqs.url = \"{}\"\n\n[aws]\nregion = \"eu-central-1\"\nendpoint = \"{}\"\n",
            self.queue(),
            paths.aws
        );
        let orders = world::orders(&self.tenant(), "orders", "SECRET");
        let orders = orders + "in_flight = \"take_over\"\n";
        let letters = letters::source(&self.tenant());
        let config = world::head() + &backends + more + &orders + &letters;
        let directory = world::directory();
        world::configure(directory.path(), &config).expect("a configuration is written");
        letters::add_plugin(directory.path());
        directory
    }

    /// The tenant. Its own: a port may have another site's gateway behind it by the time of a retry.
    pub fn tenant(&self) -> String {
        format!("t{}", self.account)
    }

    /// An order's delivery: a source where deliveries take over what is in flight.
    pub fn order(&self, id: &str, customer: &str) -> Signed {
        let source = format!("{}/orders", self.tenant());
        world::order(&source, SECRET, id, customer, "note")
    }

    /// A letter's delivery, signed now.
    pub fn letter(&self, id: &str, contact: &str) -> Signed {
        letters::letter(&self.tenant(), id, contact)
    }

    fn queue(&self) -> String {
        format!("http://{}/{}/events.fifo", self.aws, self.account)
    }

    /// What a gateway of this site finds in its environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", self.account.clone()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("SECRET", SECRET.to_owned()),
            ("LETTERS", letters::secret()),
        ]
    }

    /// Starts a gateway in a directory.
    pub async fn serve(&self, directory: &Path, failpoints: &str) -> Result<Gateway, StartError> {
        let environment = self.environment();
        let mut environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        environment.push(("FAILPOINTS", failpoints));
        Gateway::start(directory, &environment).await
    }

    /// A gateway in a directory of its own, on this way to the backends.
    pub async fn member(&self, paths: &Paths, failpoints: &str) -> Member {
        let directory = self.directory(paths, "");
        self.member_in(directory, failpoints).await
    }

    /// The same in a directory that is there.
    pub async fn member_in(&self, directory: TempDir, failpoints: &str) -> Member {
        let started = self.serve(directory.path(), failpoints).await;
        let gateway = started.unwrap_or_else(|error| panic!("no start: {error}"));
        Member { directory, gateway }
    }

    /// All that a command of the binary prints, with its exit code first.
    pub async fn run(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = gateway::command(directory);
        command.args(arguments).envs(self.environment());
        let output = timeout(DEADLINE, command.output()).await;
        let output = output.expect("it ends by itself").expect("the binary runs");
        format!(
            "{:?}\n{}{}",
            output.status.code(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }

    /// The state of an event's claim, as `claims show` tells it; `None` where nothing is known.
    pub async fn state(&self, directory: &Path, event: &str) -> Option<String> {
        let event = format!("{}/{event}", self.tenant());
        let text = self
            .run(directory, &["claims", "show", "--json", &event])
            .await;
        let json = text.split_once('\n').map_or("", |(_, json)| json);
        let claim: Value = serde_json::from_str(json).unwrap_or_default();
        claim["claim"]["state"].as_str().map(str::to_owned)
    }

    /// Takes every message out of the queue, in its order.
    pub async fn messages(&self) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let some = self.take(10).await;
            if some.is_empty() {
                all.sort_by_key(|message: &Message| message.place);
                return all;
            }
            all.extend(some);
        }
    }

    /// Takes a few messages out of the queue, ten at the most.
    pub async fn take(&self, at_most: i32) -> Vec<Message> {
        let received = self
            .client
            .receive_message()
            .queue_url(self.queue())
            .max_number_of_messages(at_most)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send();
        let received = received.await.expect("the queue is readable");
        let received = received.messages.unwrap_or_default();
        if received.is_empty() {
            return Vec::new();
        }
        let entries = received.iter().enumerate().map(|(place, message)| {
            let handle = message.receipt_handle.clone().unwrap_or_default();
            let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string());
            entry.receipt_handle(handle).build().expect("an entry")
        });
        let delete = self.client.delete_message_batch().queue_url(self.queue());
        let deleted = delete.set_entries(Some(entries.collect())).send().await;
        deleted.expect("messages are deleted");
        received.iter().map(read).collect()
    }
}

fn read(message: &aws_sdk_sqs::types::Message) -> Message {
    let system = message.attributes.as_ref().expect("system attributes");
    let own: HashMap<&str, &str> = message
        .message_attributes
        .iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.string_value()?)))
        .collect();
    let source = own["ce-source"].rsplit('/').next().unwrap_or_default();
    let id = own["ce-id"];
    Message {
        place: system[&MessageSystemAttributeName::SequenceNumber]
            .parse()
            .expect("a sequence number"),
        group: system[&MessageSystemAttributeName::MessageGroupId].clone(),
        // Behind it may stand the body's digest.
        id: id.split('~').next().unwrap_or_default().to_owned(),
        source: source.to_owned(),
        head: serde_json::from_str(own["hookgate"]).expect("JSON"),
        body: message.body.clone().unwrap_or_default(),
    }
}

/// A gateway and its directory.
pub struct Member {
    /// Where its configuration and its log are.
    pub directory: TempDir,
    /// The process.
    pub gateway: Gateway,
}

impl Member {
    /// Delivers once on a connection of its own.
    pub async fn deliver(&self, signed: &Signed) -> Answer {
        deliver(self.gateway.ingress, signed).await
    }

    /// Delivers as a provider does until it has a 2xx. It may be a duplicate's: what was told to come again may
    /// have gone on meanwhile.
    pub async fn deliver_until_promised(&self, signed: &Signed) -> Answer {
        let (mut last, started) = (self.deliver(signed).await, tokio::time::Instant::now());
        while !last.is_promise() {
            assert!(last.retry_after.is_some(), "{last:?}");
            assert!(started.elapsed() < DEADLINE, "not accepted, but {last:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            last = self.deliver(signed).await;
        }
        last
    }
}

/// Delivers once on a connection of its own.
pub async fn deliver(to: SocketAddr, signed: &Signed) -> Answer {
    let answer = timeout(DEADLINE, Connection::to(to).deliver(signed)).await;
    answer.expect("an answer in time").expect("an answer")
}

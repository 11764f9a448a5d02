//! What the queue says of itself: how deep it is, how long it keeps messages, and whether it is one that
//! events may be sent to.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesError;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use serde::Deserialize;

use super::{SqsQueue, is_missing};
use crate::aws::{self, Failure};
use crate::backend::Finding;
use crate::queue::{Depth, QueueError, Retention};

/// What the queue says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFacts {
    /// How long messages stay, its dead-letter queue's included.
    pub retention: Retention,
    /// How many messages it holds.
    pub depth: Depth,
    /// The most bytes of a message.
    pub max_message: usize,
}

type Attributes = HashMap<QueueAttributeName, String>;

/// The redrive policy's JSON, as far as it is of interest.
#[derive(Deserialize)]
struct Redrive {
    #[serde(rename = "deadLetterTargetArn")]
    dead_letters: String,
}

impl SqsQueue {
    /// What the queue says of itself, and everything that would lose, double or delay events. Changes nothing.
    pub async fn check(&self) -> (Option<QueueFacts>, Vec<Finding>) {
        let attributes = match self.attributes(&self.url).await {
            Ok(attributes) => attributes,
            Err(error) => return (None, vec![self.unreadable(&error)]),
        };
        let mut findings = self.shape(&attributes);
        let mut is_known = true;
        let dead_letters = match self.dead_letters(&attributes).await {
            Ok(None) => {
                let what = format!("the queue {} has no dead-letter queue", self.url);
                findings.push(Finding::warning(what).hint(
                    "give it one (a FIFO queue too), or one message that no consumer can take holds up its group \
                     until it expires",
                ));
                None
            }
            Ok(Some(retention)) => Some(retention),
            Err(finding) => {
                findings.push(finding);
                is_known = false;
                None
            }
        };
        if !findings.iter().any(Finding::is_error) {
            findings.extend(self.may_send().await);
        }
        if !is_known {
            return (None, findings);
        }
        let facts = facts(&attributes, dead_letters);
        if facts.is_none() {
            let what = format!(
                "the queue {} does not say how long it keeps messages",
                self.url
            );
            findings.push(Finding::error(what));
        }
        (facts, findings)
    }

    /// How many messages it holds: visible, in flight and delayed.
    pub async fn depth(&self) -> Result<Depth, QueueError> {
        let attributes = self.attributes(&self.url).await;
        let attributes = attributes.map_err(|error| match aws::failure(&error) {
            Failure::Refused(text) => QueueError::Refused(text),
            Failure::Busy(text) => QueueError::Busy(text),
            Failure::Ambiguous(text) => QueueError::Ambiguous(text),
        })?;
        Ok(depth(&attributes))
    }

    async fn attributes(
        &self,
        url: &str,
    ) -> Result<Attributes, SdkError<GetQueueAttributesError, HttpResponse>> {
        let read = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(QueueAttributeName::All)
            .send()
            .await?;
        Ok(read.attributes.unwrap_or_default())
    }

    fn unreadable(&self, error: &SdkError<GetQueueAttributesError, HttpResponse>) -> Finding {
        let url = &self.url;
        let code = error.code().unwrap_or_default();
        if is_missing(code) {
            let region = self.client.config().region();
            let region = region.map_or_else(|| "the default region".into(), ToString::to_string);
            return Finding::error(format!("there is no queue {url} in {region}")).hint(
                "check `queue.sqs.url` and `aws.region`, which must be the queue's; for a stand-in, \
                 `hookgate dev create-tables` makes the queue",
            );
        }
        aws::unusable(
            &format!("read the attributes of the queue {url}"),
            &aws::failure(error),
        )
    }

    fn shape(&self, attributes: &Attributes) -> Vec<Finding> {
        let url = &self.url;
        let is = |name, value| attributes.get(&name).is_some_and(|found| found == value);
        if !is(QueueAttributeName::FifoQueue, "true") {
            let what = format!(
                "the queue {url} is a standard queue, which keeps neither order nor one copy"
            );
            return vec![Finding::error(what).hint(
                "make a FIFO queue (its name ends in .fifo); a standard queue cannot become one",
            )];
        }
        let mut findings = Vec::new();
        if is(QueueAttributeName::ContentBasedDeduplication, "true") {
            let what = format!(
                "the queue {url} has content-based deduplication on, which nothing here needs"
            );
            findings.push(Finding::note(what));
        }
        let scoped = is(QueueAttributeName::DeduplicationScope, "messageGroup")
            && is(QueueAttributeName::FifoThroughputLimit, "perMessageGroupId");
        if !scoped {
            let what = format!(
                "the queue {url} is not in high-throughput mode: SQS throttles it at 300 requests/s"
            );
            findings.push(Finding::warning(what).hint(
                "set DeduplicationScope = messageGroup and FifoThroughputLimit = perMessageGroupId",
            ));
        }
        let delay = number(attributes, &QueueAttributeName::DelaySeconds).unwrap_or(0);
        if delay > 0 {
            findings.push(Finding::note(format!(
                "the queue {url} delays every message by {delay} s"
            )));
        }
        findings
    }

    /// How long the dead-letter queue keeps messages; none where there is no such queue.
    async fn dead_letters(&self, attributes: &Attributes) -> Result<Option<Duration>, Finding> {
        let Some(policy) = attributes.get(&QueueAttributeName::RedrivePolicy) else {
            return Ok(None);
        };
        let unread =
            |failure: &Failure| aws::unusable("read the dead-letter queue's attributes", failure);
        let arn = serde_json::from_str::<Redrive>(policy).map(|policy| policy.dead_letters);
        let arn = arn.map_err(|error| unread(&Failure::Refused(error.to_string())))?;
        // arn:aws:sqs:REGION:ACCOUNT:NAME
        let mut parts = arn.rsplit(':');
        let (name, account) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let url = self.client.get_queue_url().queue_name(name);
        let url = url.queue_owner_aws_account_id(account).send().await;
        let url = url.map_err(|error| unread(&aws::failure(&error)))?;
        let attributes = self.attributes(url.queue_url().unwrap_or_default()).await;
        let attributes = attributes.map_err(|error| unread(&aws::failure(&error)))?;
        Ok(retention(&attributes))
    }

    /// Whether messages may be sent, found by one that SQS never takes: its body holds a character that no
    /// message may have.
    async fn may_send(&self) -> Option<Finding> {
        let probe = SendMessageBatchRequestEntry::builder()
            .id("probe")
            .message_group_id("~check")
            .message_deduplication_id("~check")
            .message_body("\u{1}")
            .build()
            .ok()?;
        let sent = self
            .client
            .send_message_batch()
            .queue_url(&self.url)
            .entries(probe)
            .send()
            .await;
        let failure = aws::failure(&sent.err()?);
        let is_contents = matches!(&failure, Failure::Refused(text)
            if text.contains("InvalidMessageContents") || text.contains("InvalidParameterValue"));
        (!is_contents)
            .then(|| aws::unusable(&format!("call sqs:SendMessage on {}", self.url), &failure))
    }
}

impl SqsQueue {
    /// Makes the queue and its dead-letter queue as Terraform does, for stand-ins; harmless where they exist.
    pub async fn create_queues(&self) -> Result<(), String> {
        let name = self.url.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".fifo").unwrap_or(name);
        let dead = self.create(&format!("{name}-dead.fifo"), None).await?;
        let arn = self.attributes(&dead).await;
        let arn = arn.map_err(|error| aws::failure(&error).to_string())?;
        let arn = arn.get(&QueueAttributeName::QueueArn);
        let policy = serde_json::json!({ "deadLetterTargetArn": arn, "maxReceiveCount": 3 });
        let policy = policy.to_string();
        self.create(&format!("{name}.fifo"), Some(policy)).await?;
        Ok(())
    }

    /// A queue's URL. One that exists with other attributes is an error, and stays as it is.
    async fn create(&self, name: &str, redrive: Option<String>) -> Result<String, String> {
        let create = self
            .client
            .create_queue()
            .queue_name(name)
            .attributes(QueueAttributeName::FifoQueue, "true")
            .attributes(QueueAttributeName::DeduplicationScope, "messageGroup")
            .attributes(QueueAttributeName::FifoThroughputLimit, "perMessageGroupId");
        let create = match redrive {
            Some(policy) => create.attributes(QueueAttributeName::RedrivePolicy, policy),
            None => create,
        };
        let created = create.send().await;
        let created = created.map_err(|error| aws::failure(&error).to_string())?;
        Ok(created.queue_url.unwrap_or_default())
    }
}

fn number(attributes: &Attributes, name: &QueueAttributeName) -> Option<u64> {
    attributes.get(name)?.parse().ok()
}

fn retention(attributes: &Attributes) -> Option<Duration> {
    number(attributes, &QueueAttributeName::MessageRetentionPeriod).map(Duration::from_secs)
}

fn depth(attributes: &Attributes) -> Depth {
    let of = |name| number(attributes, &name).unwrap_or(0);
    Depth {
        visible: of(QueueAttributeName::ApproximateNumberOfMessages),
        in_flight: of(QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
        delayed: of(QueueAttributeName::ApproximateNumberOfMessagesDelayed),
    }
}

fn facts(attributes: &Attributes, dead_letters: Option<Duration>) -> Option<QueueFacts> {
    let max_message = number(attributes, &QueueAttributeName::MaximumMessageSize)?;
    Some(QueueFacts {
        retention: Retention {
            queue: retention(attributes)?,
            dead_letters,
        },
        depth: depth(attributes),
        max_message: usize::try_from(max_message).ok()?,
    })
}

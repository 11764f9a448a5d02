//! Claims in a table of DynamoDB, one item each, under the key `pk`.
//!
//! A claim is one conditional write, whose refusal brings the record that refused it: one trip for a new
//! event, a duplicate and one in flight, two for a takeover. What a refusal means is decided by the same
//! [`rules`] as everywhere; the conditions only guard against a record that changed in between. Expiry is in
//! every condition: DynamoDB deletes expired items days late.

mod item;
mod table;

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use super::{
    Claim, ClaimRequest, ClaimStore, Claimed, Release, Settlement, StoreError, Token, rules,
};
use crate::aws::{self, AwsSettings, Compared, Connections, Failure};
use crate::clock::SharedClock;
use item::{Item, number, text};

/// How often a claim follows a record that changes under it before it asks to be called later.
const ROUNDS: usize = 4;

/// Where the table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamoSettings {
    /// Where AWS is.
    pub aws: AwsSettings,
    /// The table's name.
    pub table: String,
    /// How long one call may take.
    pub timeout: Duration,
}

/// Claims in DynamoDB.
pub struct DynamoStore {
    client: Client,
    table: String,
    clock: SharedClock,
}

/// A write that its condition refused, with the record that refused it, or a failure.
enum Unwritten {
    Condition(Option<Item>),
    Failed(StoreError),
}

impl DynamoStore {
    /// A store in this table. Nothing is called yet.
    pub fn new(shared: &SdkConfig, settings: &DynamoSettings, compared: Compared) -> Self {
        let clock = SharedClock::clone(&compared.1);
        let config = aws_sdk_dynamodb::config::Builder::from(shared)
            .http_client(Connections::client(settings.timeout, Some(compared)))
            .build();
        Self {
            client: Client::from_conf(config),
            table: settings.table.clone(),
            clock,
        }
    }

    /// Writes a whole record where none is, or where it has expired, or where `unless` does not hold.
    async fn put(
        &self,
        key: &str,
        claim: &Claim,
        over: Option<u32>,
        now: u64,
    ) -> Result<(), Unwritten> {
        let mut put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item::of(key, claim)))
            .expression_attribute_values(":now", number(now / 1000))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut condition = "attribute_not_exists(pk) OR expires_at <= :now".to_owned();
        if let Some(generation) = over {
            condition += " OR (#state = :processing AND generation <= :generation)";
            put = put
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":processing", text(item::PROCESSING))
                .expression_attribute_values(":generation", number(generation));
        }
        let put = put.condition_expression(condition).send().await;
        put.map(drop)
            .map_err(|error| match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refusal)) => {
                    Unwritten::Condition(refusal.item.clone())
                }
                _ => Unwritten::Failed(failed(&error)),
            })
    }

    /// Makes the delivery the owner of a record whose token was `seen`. Group, queue, generation and the first
    /// claim's time stay as they are.
    async fn take_over(&self, key: &str, seen: Token, taken: &Claim) -> Result<(), Unwritten> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", text(key))
            .update_expression(
                "SET #token = :mine, lease_until = :lease_until, expires_at = :expires_at",
            )
            .condition_expression("#token = :seen AND #state = :processing")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":mine", item::token(taken.token))
            .expression_attribute_values(":seen", item::token(seen))
            .expression_attribute_values(":processing", text(item::PROCESSING))
            .expression_attribute_values(":lease_until", number(taken.lease_until))
            .expression_attribute_values(":expires_at", number(taken.expires_at))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        update.map(drop).map_err(|error| unwritten(&error))
    }

    async fn delete(&self, key: &str, token: Token) -> Result<(), StoreError> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("pk", text(key))
            .condition_expression("#token = :mine AND #state = :processing")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":mine", item::token(token))
            .expression_attribute_values(":processing", text(item::PROCESSING))
            .send()
            .await;
        deleted
            .map(drop)
            .or_else(|error| match error.as_service_error() {
                Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(failed(&error)),
            })
    }

    async fn end_lease(&self, key: &str, token: Token) -> Result<(), StoreError> {
        let ended = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", text(key))
            .update_expression("SET lease_until = :over")
            .condition_expression("#token = :mine AND #state = :processing")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":over", number(0_u64))
            .expression_attribute_values(":mine", item::token(token))
            .expression_attribute_values(":processing", text(item::PROCESSING))
            .send()
            .await;
        match ended.map_err(|error| unwritten(&error)) {
            Ok(_) | Err(Unwritten::Condition(_)) => Ok(()),
            Err(Unwritten::Failed(error)) => Err(error),
        }
    }
}

impl ClaimStore for DynamoStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS {
            let now = self.clock.wall_ms();
            let (claimed, write) = rules::claim(found.clone(), request, now);
            let Some(record) = write else {
                return Ok(claimed);
            };
            let written = match &found {
                // A call that met its own write is the owner by it, whatever that one made of the lease.
                Some(mine) if mine.token == request.token => return Ok(claimed),
                Some(other) if !other.is_expired(now) => {
                    self.take_over(&request.key, other.token, &record).await
                }
                _ => self.put(&request.key, &record, None, now).await,
            };
            found = match written {
                Ok(()) => return Ok(claimed),
                Err(Unwritten::Condition(item)) => item.as_ref().map(item::claim).transpose()?,
                Err(Unwritten::Failed(error)) => return Err(error),
            };
        }
        Err(StoreError::Busy("the record keeps changing".into()))
    }

    async fn settle(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let (claim, now) = (&settlement.claim, self.clock.wall_ms());
        let over = Some(claim.generation);
        match self.put(&settlement.key, claim, over, now).await {
            Ok(()) | Err(Unwritten::Condition(_)) => Ok(()),
            Err(Unwritten::Failed(error)) => Err(error),
        }
    }

    async fn release(&self, key: &str, token: Token, how: Release) -> Result<(), StoreError> {
        match how {
            Release::Delete => self.delete(key, token).await,
            Release::EndLease => self.end_lease(key, token).await,
        }
    }

    async fn forget(&self, key: &str, generation: u32) -> Result<bool, StoreError> {
        let now = self.clock.wall_ms();
        let forgotten = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("pk", text(key))
            .update_expression(
                "SET #state = :processing, #token = :new, lease_until = :over, first_at = :now_ms, \
                 generation = :next REMOVE accepted_at, #response",
            )
            .condition_expression(
                "#state = :accepted AND generation = :generation AND expires_at > :now",
            )
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#response", "response")
            .expression_attribute_values(":processing", text(item::PROCESSING))
            .expression_attribute_values(":accepted", text(item::ACCEPTED))
            .expression_attribute_values(":new", item::token(Token::new()))
            .expression_attribute_values(":over", number(0_u64))
            .expression_attribute_values(":now_ms", number(now))
            .expression_attribute_values(":now", number(now / 1000))
            .expression_attribute_values(":generation", number(generation))
            .expression_attribute_values(":next", number(generation.saturating_add(1)))
            .send()
            .await;
        match forgotten.map_err(|error| unwritten(&error)) {
            Ok(_) => Ok(true),
            Err(Unwritten::Condition(_)) => Ok(false),
            Err(Unwritten::Failed(error)) => Err(error),
        }
    }

    async fn look(&self, key: &str) -> Result<Option<Claim>, StoreError> {
        let read = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("pk", text(key))
            .consistent_read(true)
            .send()
            .await;
        let read = read.map_err(|error| failed(&error))?;
        let claim = read.item.as_ref().map(item::claim).transpose()?;
        let now = self.clock.wall_ms();
        Ok(claim.filter(|claim| !claim.is_expired(now)))
    }
}

fn unwritten(error: &SdkError<UpdateItemError, HttpResponse>) -> Unwritten {
    match error.as_service_error() {
        Some(UpdateItemError::ConditionalCheckFailedException(refusal)) => {
            Unwritten::Condition(refusal.item.clone())
        }
        _ => Unwritten::Failed(failed(error)),
    }
}

fn failed<E>(error: &SdkError<E, HttpResponse>) -> StoreError
where
    E: aws_sdk_dynamodb::error::ProvideErrorMetadata + std::error::Error + 'static,
{
    match aws::failure(error) {
        Failure::Refused(why) => StoreError::Refused(why),
        Failure::Busy(why) => StoreError::Busy(why),
        Failure::Ambiguous(why) => StoreError::Ambiguous(why),
    }
}

//! The table itself: what a claim store demands of it, and one for stand-ins that have none yet.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    TableDescription, TimeToLiveSpecification, TimeToLiveStatus,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use super::DynamoStore;
use super::item::text;
use crate::aws::{self, Failure};
use crate::backend::Finding;

/// A key that no event has: names never begin with `~`, and hashed ones are longer.
const PROBE: &str = "~check";

/// What a condition cannot be: a write under it changes nothing and shows that it is allowed.
const NEVER: &str = "attribute_exists(pk) AND attribute_not_exists(pk)";

impl DynamoStore {
    /// Everything about the table that would lose or keep claims wrongly. Changes nothing.
    pub async fn check(&self) -> Vec<Finding> {
        let described = self
            .client
            .describe_table()
            .table_name(&self.table)
            .send()
            .await;
        let mut findings = match described {
            Ok(described) => described.table.map_or(Vec::new(), |table| shape(&table)),
            Err(error) => vec![self.unreadable(&error)],
        };
        if !findings.iter().any(Finding::is_error) {
            findings.extend(self.deletion().await);
            findings.extend(Box::pin(self.permissions()).await);
        }
        findings
    }

    fn unreadable(&self, error: &SdkError<DescribeTableError, HttpResponse>) -> Finding {
        let table = &self.table;
        if let Some(DescribeTableError::ResourceNotFoundException(_)) = error.as_service_error() {
            let region = self.client.config().region();
            let region = region.map_or_else(|| "the default region".into(), ToString::to_string);
            return Finding::error(format!("there is no table `{table}` in {region}")).hint(
                "check `store.dynamodb.table` and `aws.region`; for a stand-in, `hookgate dev create-tables` \
                 makes the table",
            );
        }
        aws::unusable(
            &format!("read the description of the table `{table}`"),
            &aws::failure(error),
        )
    }

    /// Whether DynamoDB deletes what has expired. Conditions do not rely on it; the bill does.
    async fn deletion(&self) -> Option<Finding> {
        let read = self
            .client
            .describe_time_to_live()
            .table_name(&self.table)
            .send()
            .await;
        let description = match read {
            Ok(read) => read.time_to_live_description,
            Err(error) => {
                let what = format!("read the time to live of the table `{}`", self.table);
                return Some(aws::unusable(&what, &aws::failure(&error)));
            }
        };
        let attribute = description.as_ref().and_then(|ttl| ttl.attribute_name());
        let status = description
            .as_ref()
            .and_then(|ttl| ttl.time_to_live_status());
        let is_on = matches!(
            status,
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
        );
        (!is_on || attribute != Some("expires_at")).then(|| {
            Finding::warning(format!(
                "the table `{}` does not delete expired claims: its time to live is not on `expires_at`",
                self.table
            ))
            .hint("set the table's time to live to the attribute `expires_at`, or it grows for ever")
        })
    }

    /// What the credentials may not do, found by calls that change nothing.
    async fn permissions(&self) -> Vec<Finding> {
        let (client, table) = (&self.client, &self.table);
        let get = client
            .get_item()
            .table_name(table)
            .key("pk", text(PROBE))
            .send();
        let put = client.put_item().table_name(table).item("pk", text(PROBE));
        let put = put.condition_expression(NEVER).send();
        let update = client
            .update_item()
            .table_name(table)
            .key("pk", text(PROBE));
        let update = update.condition_expression(NEVER).send();
        let delete = client
            .delete_item()
            .table_name(table)
            .key("pk", text(PROBE));
        let delete = delete.condition_expression(NEVER).send();
        let (get, put, update, delete) = tokio::join!(get, put, update, delete);
        let tried = [
            ("GetItem", get.err().and_then(|error| refused(&error))),
            ("PutItem", put.err().and_then(|error| refused(&error))),
            ("UpdateItem", update.err().and_then(|error| refused(&error))),
            ("DeleteItem", delete.err().and_then(|error| refused(&error))),
        ];
        let refused = tried
            .into_iter()
            .filter_map(|(action, failure)| Some((action, failure?)));
        refused
            .map(|(action, failure)| {
                aws::unusable(&format!("call dynamodb:{action} on `{table}`"), &failure)
            })
            .collect()
    }

    /// Makes the table as Terraform does, for stand-ins; harmless where it exists.
    pub async fn create_table(&self) -> Result<(), String> {
        let key = KeySchemaElement::builder()
            .attribute_name("pk")
            .key_type(KeyType::Hash);
        let attribute = AttributeDefinition::builder()
            .attribute_name("pk")
            .attribute_type(ScalarAttributeType::S);
        let build = |error: aws_sdk_dynamodb::error::BuildError| error.to_string();
        let created = self
            .client
            .create_table()
            .table_name(&self.table)
            .key_schema(key.build().map_err(build)?)
            .attribute_definitions(attribute.build().map_err(build)?)
            .billing_mode(BillingMode::PayPerRequest)
            .send()
            .await;
        if let Err(error) = created
            && error.code() != Some("ResourceInUseException")
        {
            return Err(aws::failure(&error).to_string());
        }
        let ttl = TimeToLiveSpecification::builder()
            .attribute_name("expires_at")
            .enabled(true);
        let set = self.client.update_time_to_live().table_name(&self.table);
        let set = set
            .time_to_live_specification(ttl.build().map_err(build)?)
            .send()
            .await;
        match set {
            Ok(_) => Ok(()),
            // Where it is on already, AWS says so as an error.
            Err(error) if error.code() == Some("ValidationException") => Ok(()),
            Err(error) => Err(aws::failure(&error).to_string()),
        }
    }
}

fn refused<E>(error: &SdkError<E, HttpResponse>) -> Option<Failure>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let is_condition = error.code() == Some("ConditionalCheckFailedException");
    (!is_condition).then(|| aws::failure(error))
}

fn shape(table: &TableDescription) -> Vec<Finding> {
    let name = table.table_name().unwrap_or("?");
    let keys: Vec<_> = table
        .key_schema()
        .iter()
        .map(KeySchemaElement::attribute_name)
        .collect();
    let is_text = table.attribute_definitions().iter().any(|attribute| {
        attribute.attribute_name() == "pk" && *attribute.attribute_type() == ScalarAttributeType::S
    });
    if keys == ["pk"] && is_text {
        return Vec::new();
    }
    let found = keys.join("`, `");
    vec![
        Finding::error(format!(
            "the table `{name}` has the key `{found}`, but claims need `pk` alone, of type S"
        ))
        .hint("a table's key cannot be changed: name another table in `store.dynamodb.table`"),
    ]
}

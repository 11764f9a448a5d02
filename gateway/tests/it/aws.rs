//! DynamoDB and SQS beyond the contract, against stand-ins: what is asked of a table and a queue, and what
//! each failure is taken for.

pub mod bench;
mod dynamodb;
mod sqs;

//! Gateways that share a remote claim store and a queue of SQS: the real binary on real Redis servers and on
//! the stand-in for AWS, told apart only by what a proxy between them breaks.

mod chaos;
mod copies;
mod herd;
mod letters;
mod outage;
mod site;
mod stale;
mod story;

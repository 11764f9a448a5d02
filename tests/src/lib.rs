//! What the end-to-end tests and the demo are made of: the real binary as a process that can be killed, a
//! provider that signs, delivers and retries, and configurations made of published signatures.
//!
//! Knows the gateway from outside only: its command line, its configuration, HTTP.

pub mod gateway;
pub mod provider;
pub mod published;
pub mod sign;

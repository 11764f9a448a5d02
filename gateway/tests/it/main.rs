//! The gateway's integration tests: one binary, so that everything is linked once.
//!
//! The delivery protocol's examples, each a test named after its outcome: the lease's clock in
//! `src/clock.rs`; definite and ambiguous failures, and the flag of a possible duplicate, in
//! `src/pipeline/tests.rs`; what settling meets, in `contract/store.rs`; lease and takeover for each
//! provider, in `src/config/policy/tests.rs`; ids, in `src/delivery/identity/tests.rs`; a duplicate's answer,
//! in `src/outcome/tests.rs`; copies through two instances, in `chaos/stories.rs`.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

mod aws;
mod chaos;
mod contract;
mod differential;
mod model;
mod plugins;
mod presets;
mod providers;
mod redis;
mod samples;

//! The gateway's integration tests: one binary, so that everything is linked once.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

mod chaos;
mod contract;
mod plugins;

//! Hookgate.

pub mod backend;
pub mod cli;
pub mod clock;
pub mod crypto;
pub mod delivery;
pub mod embedded;
pub mod encoding;
pub mod failpoint;
pub mod http;
pub mod outcome;
pub mod pipeline;
pub mod plugin;
pub mod queue;
pub mod store;
pub mod telemetry;
pub mod tenants;
pub mod vectors;

//! Hookgate.

pub mod config;
pub mod crypto;
pub mod delivery;
pub mod encoding;
pub mod plugin;
pub mod clock;
pub mod queue;
pub mod store;
pub mod telemetry;
pub mod tenants;
pub mod backend;
pub mod outcome;
pub mod pipeline;
pub mod failpoint;
pub mod http;

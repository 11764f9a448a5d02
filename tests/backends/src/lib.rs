//! Backends for tests: real servers as processes of their own on free ports, and a proxy between the gateway
//! and any of them that breaks what it is told to break.
//!
//! Knows nothing of the gateway. A server that is not installed is an error that says how to install it, and
//! never a test that is left out.

pub mod aws;
pub mod process;
pub mod proxy;
pub mod redis;

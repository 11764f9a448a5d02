//! The gateway's integration tests: one binary, so that everything is linked once.

mod plugins;

//! The command line's subcommands: what each reads, does and prints.

pub mod plugin;

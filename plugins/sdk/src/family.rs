//! What the generic plugins share: providers that are described by the source's options alone.
//!
//! Each plugin adds what it verifies with (a MAC, a public key, a token); what is signed, where the facts of an
//! event are and how a handshake is answered is read here.

pub mod challenge;
pub mod locator;
pub mod options;
pub mod signed;
pub mod template;

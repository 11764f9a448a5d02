//! The interface's types and functions, generated from `wit/`.
//!
//! Nothing here is written by hand and nothing else in the SDK knows how a value crosses the border.
//! Plugins see the parts that the other modules re-export; the export macro needs the rest public.
#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "generated code"
)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "provider",
    pub_export_macro: true,
    export_macro_name: "export_provider",
    default_bindings_module: "hookgate_sdk::bindings",
});

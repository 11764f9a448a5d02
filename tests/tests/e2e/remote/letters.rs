//! A source by Standard Webhooks, `letters`: its provider comes again after 5 s, so that its leases are short,
//! and a delivery in flight is told to come again.

use std::os::unix::fs::symlink;
use std::path::Path;

use data_encoding::{BASE64, HEXLOWER};
use hookgate::clock::{Clock as _, SystemClock};
use hookgate_tests::provider::Signed;
use hookgate_tests::sign;

use super::site::SECRET;
use crate::world;

/// Its part of a tenant's configuration.
pub fn source(tenant: &str) -> String {
    format!(
        "\n[tenants.{tenant}.sources.letters]\nplugin = \"standard-webhooks\"\n\
         secrets.secret = [\"env:LETTERS\"]\n"
    )
}

/// Its secret as its provider shows it.
pub fn secret() -> String {
    format!("whsec_{}", BASE64.encode(SECRET.as_bytes()))
}

/// Puts its plugin into a gateway's directory.
pub fn add_plugin(directory: &Path) {
    let name = "standard-webhooks";
    let link = directory.join("plugins").join(name).with_extension("wasm");
    symlink(world::plugin(name), link).expect("a link");
}

/// A delivery to it, signed now.
pub fn letter(tenant: &str, id: &str, contact: &str) -> Signed {
    let body =
        format!(r#"{{"type":"contact.created","data":{{"id":"{contact}"}},"event":"{id}"}}"#);
    let at = (SystemClock.wall_ms() / 1000).to_string();
    let pieces = [id, ".", &at, ".", &body].map(str::as_bytes);
    let signature = sign::hmac_sha256_hex(SECRET, &pieces);
    let signature = HEXLOWER.decode(signature.as_bytes()).expect("hexadecimal");
    let signature = format!("v1,{}", BASE64.encode(&signature));
    let headers = [
        ("content-type", "application/json"),
        ("webhook-id", id),
        ("webhook-timestamp", &at),
        ("webhook-signature", &signature),
    ];
    Signed::post(&format!("{tenant}/letters"), &headers, body)
}

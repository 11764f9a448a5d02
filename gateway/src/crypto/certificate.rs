//! X.509 certificates as providers publish them beside their signatures (RFC 5280).
//!
//! A certificate is read once, when it is fetched, and is good for what the manifest says it must be: its
//! names, and either a chain up to an authority that is trusted or the host that it came from. When it is valid
//! is asked at every use. Fetches nothing.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

use super::{PublicKey, PublicKeyError};

/// A certificate's key, and when it may be used.
#[derive(Debug)]
pub struct Certificate {
    /// The key.
    pub key: PublicKey,
    /// Its DNS names, and its common name.
    pub names: Vec<String>,
    /// When it begins to be valid, in seconds since 1970.
    not_before: i64,
    /// The last second in which it is valid.
    not_after: i64,
    /// Itself, then what else was at its URL.
    chain: Vec<CertificateDer<'static>>,
}

/// Why a document is no certificate that a signature may be verified with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not PEM.
    #[error("it is not a certificate as PEM")]
    NotPem,
    /// Not X.509.
    #[error("it is not an X.509 certificate")]
    NotX509,
    /// Its key is none that anything is verified with.
    #[error("its key: {0}")]
    Key(#[from] PublicKeyError),
    /// Not signed by anybody who is trusted.
    #[error("nobody who is trusted vouches for it: {0}")]
    Chain(String),
}

impl Certificate {
    /// Reads the first certificate of a PEM document.
    pub fn read(pem: &[u8]) -> Result<Self, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|_| CertificateError::NotPem)?;
        let first = chain.first().ok_or(CertificateError::NotPem)?;
        let (rest, leaf) = parse_x509_certificate(first).map_err(|_| CertificateError::NotX509)?;
        if !rest.is_empty() {
            return Err(CertificateError::NotX509);
        }
        Ok(Self {
            key: PublicKey::of_der(leaf.public_key().raw)?,
            names: names(&leaf),
            not_before: leaf.validity().not_before.timestamp(),
            not_after: leaf.validity().not_after.timestamp(),
            chain,
        })
    }

    /// Whether it is valid at `now`, in ms since 1970.
    pub fn is_valid_at(&self, now: u64) -> bool {
        let now = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        (self.not_before..=self.not_after).contains(&now)
    }

    /// Whether those at the same URL lead from it to one of `roots`, for `name`, at `now`, in ms since 1970.
    pub fn check_chain(
        &self,
        roots: &Arc<RootCertStore>,
        name: &str,
        now: u64,
    ) -> Result<(), CertificateError> {
        let refused = |what: &dyn std::fmt::Display| CertificateError::Chain(what.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), provider);
        let verifier = verifier.build().map_err(|error| refused(&error))?;
        let name = ServerName::try_from(name).map_err(|error| refused(&error))?;
        let [leaf, rest @ ..] = self.chain.as_slice() else {
            return Err(CertificateError::NotPem);
        };
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_millis(now));
        let verified = verifier.verify_server_cert(leaf, rest, &name, &[], now);
        verified.map(|_| ()).map_err(|error| refused(&error))
    }
}

fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let alternative = leaf.subject_alternative_name().ok().flatten();
    let alternative = alternative.map(|names| &names.value.general_names);
    let alternative = alternative
        .into_iter()
        .flatten()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
    let common = leaf.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok().map(str::to_owned));
    alternative.chain(common).collect()
}

//! The keys by URL that sources share: who vouches for the hosts that they are fetched from.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::Loaded;
use super::problem::{KeyPath, Problem, Problems};
use crate::clock::SharedClock;
use crate::keys::Keys;
use crate::keys::https::Https;
use crate::telemetry::SharedTelemetry;

impl Loaded {
    /// What fetches keys by URL; none where no source does.
    pub fn keys(
        &self,
        clock: &SharedClock,
        telemetry: &SharedTelemetry,
    ) -> (Option<Arc<Keys>>, Problems) {
        let mut problems = self.problems.none();
        if self.settings.sources.iter().all(|s| s.key_hosts.is_empty()) {
            return (None, problems);
        }
        let fetch = &self.settings.fetch;
        let (roots, found) = match &fetch.certificate_authorities {
            Some(path) => read(path),
            None => system(),
        };
        problems.add_all(found);
        self.document.locate(&mut problems);
        let https = Https::new(roots.clone(), fetch.addresses.clone());
        let (clock, telemetry) = (Arc::clone(clock), Arc::clone(telemetry));
        (
            Some(Keys::new(Box::new(https), roots, clock, telemetry)),
            problems,
        )
    }
}

fn at() -> KeyPath {
    KeyPath::new(&["fetch", "certificate_authorities"])
}

fn read(path: &Path) -> (RootCertStore, Vec<Problem>) {
    let mut roots = RootCertStore::empty();
    let refused = |reason: &dyn std::fmt::Display| {
        let what = format!("cannot take authorities from {}: {reason}", path.display());
        Problem::error(at(), what).hint("it is a file of certificates as PEM")
    };
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = match certificates {
        Ok(certificates) => certificates,
        Err(error) => return (roots, vec![refused(&error)]),
    };
    match roots.add_parsable_certificates(certificates) {
        (0, _) => (roots, vec![refused(&"it holds none")]),
        _ => (roots, Vec::new()),
    }
}

fn system() -> (RootCertStore, Vec<Problem>) {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    match roots.add_parsable_certificates(found.certs) {
        (0, _) => {
            let what = "the system has no certificate authorities: no key can be fetched";
            let problem = Problem::warning(at(), what)
                .hint("install ca-certificates, or name a file of your own here");
            (roots, vec![problem])
        }
        _ => (roots, Vec::new()),
    }
}

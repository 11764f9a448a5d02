//! TLS by rustls, with ring: a certificate and its key, and HTTP/2 or HTTP/1.1 as the client prefers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The protocols that a client can ask for (RFC 7301), the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificate and its key are: in files, or in environment variables, each as `env:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those between it and the authority, as PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, as PEM.
    pub key: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: pem::Error,
    },
    /// An environment variable is not there.
    #[error(
        "the environment variable {name} is not set\n\
         hint: put the PEM's text into it for the gateway's process"
    )]
    Unset {
        /// Its name.
        name: String,
    },
    /// A file holds something else.
    #[error("{} holds no {what}\nhint: it has to be PEM: -----BEGIN {label}-----", path.display())]
    Without {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// The PEM label of that.
        label: &'static str,
    },
    /// The two do not fit.
    #[error(
        "the key {} is of no use for the certificate {}: {reason}",
        files.key.display(), files.certificate.display()
    )]
    Mismatch {
        /// The files.
        files: TlsFiles,
        /// What is wrong.
        reason: rustls::Error,
    },
}

/// Reads the certificate and its key.
pub fn load(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&pem(&files.key)?).map_err(|reason| match reason {
        pem::Error::NoItemsFound => without(&files.key, "private key", "PRIVATE KEY"),
        reason => TlsError::Read {
            path: files.key.clone(),
            reason,
        },
    })?;
    let mismatch = |reason| TlsError::Mismatch {
        files: files.clone(),
        reason,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(mismatch)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(mismatch)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason| TlsError::Read {
        path: path.to_owned(),
        reason,
    };
    let pem = pem(path)?;
    let all = CertificateDer::pem_slice_iter(&pem);
    let all = all.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if all.is_empty() {
        return Err(without(path, "certificate", "CERTIFICATE"));
    }
    Ok(all)
}

/// The environment variable that stands in a file's place.
pub fn variable(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix("env:")
}

fn pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    if let Some(name) = variable(path) {
        let value = std::env::var_os(name).map(OsString::into_encoded_bytes);
        return value.ok_or_else(|| TlsError::Unset { name: name.into() });
    }
    std::fs::read(path).map_err(|error| TlsError::Read {
        path: path.to_owned(),
        reason: pem::Error::Io(error),
    })
}

fn without(path: &Path, what: &'static str, label: &'static str) -> TlsError {
    TlsError::Without {
        path: path.to_owned(),
        what,
        label,
    }
}

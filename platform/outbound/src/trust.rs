//! Loads the certificates that clients with TLS trust: those of this system, or those in an operator's file.

use std::{path::Path, sync::Arc};

use platform_core::limit::ByteSize;
use platform_runtime::{file, report};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject as _},
    },
};

/// Largest file of CA certificates that is read.
const MAX_FILE: ByteSize = ByteSize::mib(4);

/// Reason why there is nothing to trust.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read, or is not PEM.
    #[error(transparent)]
    Unreadable(#[from] pem::Error),
    /// A certificate is not that of a CA.
    #[error(transparent)]
    Unusable(#[from] rustls::Error),
    /// No certificate is there.
    #[error("there are no CA certificates")]
    Empty,
}

/// Returns a configuration that trusts what this system trusts.
///
/// # Errors
/// [`TrustError::Empty`] if that is nothing, as in an empty image.
pub fn system() -> Result<ClientConfig, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(error = report::chain(error), "some of the system's CA certificates cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(usable = roots.len(), unusable, "read the system's CA certificates");
    only(roots)
}

/// Returns a configuration that trusts the CA certificates in the PEM file at `path`, and no others.
///
/// # Errors
/// If the file cannot be read, has none, or has one that cannot be used.
pub fn only_file(path: &Path) -> Result<ClientConfig, TrustError> {
    let mut roots = RootCertStore::empty();
    let text = file::text(path, MAX_FILE).map_err(pem::Error::Io)?;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate?)?;
    }
    only(roots)
}

/// Returns a configuration that trusts `roots`, and no others.
///
/// # Errors
/// [`TrustError::Empty`] if there are none.
pub fn only(roots: RootCertStore) -> Result<ClientConfig, TrustError> {
    if roots.is_empty() {
        return Err(TrustError::Empty);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}

//! Reads the CA certificates that gateways with TLS are verified by. Only an operator's file is read here; the bridge
//! handles the system's certificates.

use std::{path::Path, sync::Arc};

use platform_core::limit::ByteSize;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::Error;

/// Largest file of CA certificates that is read.
const MAX_FILE: ByteSize = ByteSize::mib(4);

/// Returns a TLS configuration that trusts the CA certificates in `file`, and no others.
pub(super) fn trust_only(file: &Path) -> Result<Arc<ClientConfig>, Error> {
    let invalid = || Error::NotOne { what: "CA certificate that can be used", path: file.to_owned() };
    let mut roots = RootCertStore::empty();
    let unread = |source| Error::File { what: "the CA certificates", path: file.to_owned(), source };
    let text = platform_runtime::file::text(file, MAX_FILE).map_err(unread)?;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.map_err(|_error| invalid())?).map_err(|_error| invalid())?;
    }
    if roots.is_empty() {
        return Err(invalid());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|_error| invalid())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

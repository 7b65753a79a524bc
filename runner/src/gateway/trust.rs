//! Whose certificates are trusted with gateways that are spoken to in TLS. Only a file of an operator's is read here; the system's
//! are the bridge's business.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::Error;

/// TLS that trusts the CA certificates in `file`, and no others.
pub(super) fn only(file: &Path) -> Result<Arc<ClientConfig>, Error> {
    let not_one = || Error::NotOne { what: "CA certificate that can be used", path: file.to_owned() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|_error| not_one())? {
        roots.add(certificate.map_err(|_error| not_one())?).map_err(|_error| not_one())?;
    }
    if roots.is_empty() {
        return Err(not_one());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|_error| not_one())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

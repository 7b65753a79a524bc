//! Reads the settings of the HTTP API of `sluice up`.

use std::{net::SocketAddr, path::PathBuf};

use platform_core::id::AccountId;

use super::{IpNetwork, Scheme, WebOrigin};
use crate::config::{Section, settings};

settings! {
    /// `[api]`
    #[derive(Debug, Clone)]
    pub struct Api read from section {
        /// Address for applications, which `sluice up` serves; nowhere if absent. Off the loopback it needs TLS, and a
        /// token of each client.
        pub listen: Option<SocketAddr> => optional(),
        /// Certificate and key of the listener; plain HTTP if absent.
        pub tls: Option<ApiTls> = read_tls(section),
        /// Origins of pages that may act with a browser's session, such as `https://sluice.example`; only the API's own
        /// address if absent. Their hosts are names at which the API is called, so off the loopback the certificate has
        /// to be for them.
        pub origins: Option<Vec<WebOrigin>> => at_least(&1u64).list(),
        /// Addresses and networks of proxies in front of the API, such as `10.0.0.0/8`. Only what they forward counts
        /// for the address in `X-Forwarded-For`; else all their clients count as one.
        pub trusted_proxies: Vec<IpNetwork> => list_or(Vec::new()),
        /// Account that pays for runs which clients order without a token; if absent, ordering and reading runs needs a
        /// token of `sluice principals add`. On the loopback only.
        pub anonymous_account: Option<AccountId> => optional(),
    }
}

/// Files of the listener's TLS identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiTls {
    /// PEM file of the certificate, followed by those that lead to its CA.
    pub certificate: PathBuf,
    /// PEM file of the certificate's private key.
    pub key: PathBuf,
}

impl Api {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let settings = Self::read(section);
        settings.reject_exposure(section);
        settings.reject_insecure_origins(section);
        settings
    }

    /// Returns the scheme of the listener.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }

    /// Returns the address of the listener if it is off the loopback.
    fn public_address(&self) -> Option<SocketAddr> {
        self.listen.filter(|address| !address.ip().is_loopback())
    }

    /// Rejects an address off the loopback without what keeps the tokens and runs of others safe there.
    fn reject_exposure(&self, section: &Section<'_>) {
        let Some(address) = self.public_address() else { return };
        if self.tls.is_none() {
            let problem = format!(
                "{address} is not on the loopback, so tokens would be sent in clear: set `tls_certificate` and `tls_key`, or listen on the loopback, such as `127.0.0.1:4180`"
            );
            section.reject("listen", problem);
        }
        if self.anonymous_account.is_some() {
            let problem = format!(
                "every host that reaches {address} could spend the account's money: leave it out and give each client a token (`sluice principals add`), or listen on the loopback"
            );
            section.reject("anonymous_account", problem);
        }
        if address.ip().is_unspecified() && self.origins.is_none() {
            let problem = format!(
                "{address} is not a name that clients call: set `origins` to the names in the certificate, such as `[\"https://sluice.example:{}\"]`",
                address.port()
            );
            section.reject("listen", problem);
        }
    }

    /// Rejects origins with pages that would get the session's cookie in clear, although the listener has TLS.
    fn reject_insecure_origins(&self, section: &Section<'_>) {
        let mut origins = self.origins.iter().flatten();
        if let Some(origin) = origins.find(|origin| self.tls.is_some() && !origin.is_secure()) {
            section.reject("origins", format!("`{origin}` is without TLS, and the API has TLS: `https://`"));
        }
    }
}

/// Returns the files of the TLS identity; rejects one without the other.
fn read_tls(section: &Section<'_>) -> Option<ApiTls> {
    let doc = "PEM file of the certificate for `listen`, followed by those that lead to its CA. It and the key are read again at SIGHUP to `sluice up`.";
    let certificate = section.field("tls_certificate", doc).optional();
    let doc = "PEM file of the certificate's private key; closed to other users.";
    let key = section.field("tls_key", doc).optional();
    match (certificate, key) {
        (Some(certificate), Some(key)) => Some(ApiTls { certificate, key }),
        (Some(_), None) => {
            section.reject("tls_certificate", "it needs its private key: set `tls_key`".to_owned());
            None
        }
        (None, Some(_)) => {
            section.reject("tls_key", "it needs its certificate: set `tls_certificate`".to_owned());
            None
        }
        (None, None) => None,
    }
}

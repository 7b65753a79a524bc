//! Reads the settings of the HTTP API of `sluice up`.

use std::net::SocketAddr;

use platform_core::id::AccountId;

use crate::config::Section;

/// `[api]`
#[derive(Debug, Clone)]
pub struct Api {
    /// Address of the listener; none if absent. Always on this host's loopback, because the API has no TLS.
    pub listen: Option<SocketAddr>,
    /// Account that pays for runs of clients without a token; without it, each client needs one.
    pub anonymous_account: Option<AccountId>,
}

impl Api {
    pub(super) fn section(section: &Section<'_>) -> Self {
        const LISTEN: &str = "listen";
        let doc = "Address for applications on this host, which `sluice up` serves; nowhere if absent. Loopback only: tokens would be sent in clear.";
        let listen: Option<SocketAddr> = section.field(LISTEN, doc).optional();
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback()) {
            section.reject(LISTEN, format!("{address} is not on the loopback: such as `127.0.0.1:4180`"));
        }
        let doc = "Account that pays for runs which clients order without a token; if absent, ordering and reading runs needs a token of `sluice principals add`.";
        let anonymous_account = section.field("anonymous_account", doc).optional();
        Self { listen, anonymous_account }
    }
}

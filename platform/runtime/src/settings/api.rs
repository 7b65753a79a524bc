//! Reads the settings of the HTTP API of `sluice up`.

use std::net::SocketAddr;

use crate::config::Section;

/// `[api]`
#[derive(Debug, Clone)]
pub struct Api {
    /// Address of the listener; none if absent. Always on this host's loopback, because the API has no authentication.
    pub listen: Option<SocketAddr>,
}

impl Api {
    pub(super) fn section(section: &Section<'_>) -> Self {
        const LISTEN: &str = "listen";
        let doc = "Address for applications on this host, which `sluice up` serves; nowhere if absent. Loopback only: it does not authenticate clients.";
        let listen: Option<SocketAddr> = section.field(LISTEN, doc).optional();
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback()) {
            section.reject(LISTEN, format!("{address} is not on the loopback: such as `127.0.0.1:4180`"));
        }
        Self { listen }
    }
}

//! Knows the origins of the API's own pages, and the names at which clients call it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::http::HeaderValue;
use platform_runtime::settings::{self, WebOrigin};

/// Origins of the API's own pages, and its host names. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    list: Arc<[WebOrigin]>,
    names: HostNames,
}

/// Host names at which clients call the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HostNames {
    /// Those of the loopback, and those of the origins.
    Loopback,
    /// Only those of the origins, which the certificate is for.
    #[default]
    OfOrigins,
}

impl Origins {
    /// Returns the origins under `settings` of an API that listens on `address`.
    pub(crate) fn of(settings: &settings::Api, address: SocketAddr) -> Self {
        let own = || vec![WebOrigin::of(settings.scheme(), address)];
        let names = if address.ip().is_loopback() { HostNames::Loopback } else { HostNames::OfOrigins };
        Self { list: settings.origins.clone().unwrap_or_else(own).into(), names }
    }

    /// Returns whether a header `Origin` is exactly one of these.
    pub(crate) fn contain(&self, header: &HeaderValue) -> bool {
        self.list.iter().any(|origin| header.as_bytes() == origin.to_string().as_bytes())
    }

    /// Returns whether `host`, with or without a port, can only mean this API.
    pub(crate) fn have_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_of_loopback = || {
            name.eq_ignore_ascii_case("localhost")
                || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        };
        self.list.iter().any(|origin| origin.host().eq_ignore_ascii_case(name))
            || self.names == HostNames::Loopback && is_of_loopback()
    }

    /// Returns whether all pages come by TLS, so that a cookie need never be sent without it.
    pub(crate) fn are_secure(&self) -> bool {
        self.list.iter().all(WebOrigin::is_secure)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use platform_runtime::config::Sources;

    use super::*;

    /// Returns the origins of an API at `address`, with these settings beside.
    pub(crate) fn origins(address: &str, settings: &str) -> Origins {
        let text = format!("[api]\nlisten = '{address}'\n{settings}");
        let sources = Sources { file: Some(("s.toml".into(), text)), ..Sources::default() };
        let settings = settings::Settings::read(&sources).unwrap();
        Origins::of(&settings.api, address.parse().unwrap())
    }

    const TLS: &str = "tls_certificate = '/c'\ntls_key = '/k'\n";

    #[test]
    fn only_this_hosts_own_names_are_answered() {
        let loopback = origins("127.0.0.1:4180", "");
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:4180", true),
            ("127.0.0.1:4180", true),
            ("[::1]:4180", true),
            ("[::1]", true),
            ("127.0.0.2:4180", true),
            ("10.0.0.1", false),
            ("", false),
            ("localhost.attacker.example", false),
            ("127.0.0.1.attacker.example:4180", false),
            ("attacker.example", false),
            ("localhost:x", false),
        ] {
            assert_eq!(loopback.have_host(host), expected, "{host}");
        }
    }

    #[test]
    fn off_the_loopback_names_are_those_of_origins() {
        let named = format!("{TLS}origins = ['https://sluice.example', 'https://10.0.0.1:4180']");
        let public = origins("0.0.0.0:4180", &named);
        for (host, expected) in [
            ("sluice.example", true),
            ("SLUICE.example:4180", true),
            ("10.0.0.1:4180", true),
            ("10.0.0.2:4180", false),
            ("localhost:4180", false),
            ("127.0.0.1:4180", false),
            ("0.0.0.0:4180", false),
            ("attacker.example", false),
            ("sluice.example.attacker.example", false),
        ] {
            assert_eq!(public.have_host(host), expected, "{host}");
        }
        let unnamed = origins("10.0.0.1:4180", TLS);
        assert!(unnamed.have_host("10.0.0.1:4180") && !unnamed.have_host("localhost"));
        let behind_proxy = origins("127.0.0.1:4180", "origins = ['https://sluice.example']");
        assert!(behind_proxy.have_host("sluice.example") && behind_proxy.have_host("localhost"));
    }

    #[test]
    fn an_origin_is_compared_exactly() {
        for (origins, own) in [
            (origins("127.0.0.1:4180", ""), "http://127.0.0.1:4180"),
            (origins("127.0.0.1:4180", TLS), "https://127.0.0.1:4180"),
            (origins("[::1]:4180", ""), "http://[::1]:4180"),
            (origins("0.0.0.0:1", &format!("{TLS}origins = ['https://a.example']")), "https://a.example"),
        ] {
            assert!(origins.contain(&HeaderValue::from_static(own)), "{own}");
            for other in [
                "http://127.0.0.1:3000",
                "http://localhost:4180",
                "https://a.example:4180",
                "https://a.example.attacker.example",
                "null",
                "",
            ] {
                assert!(!origins.contain(&HeaderValue::from_static(other)), "{own}: {other}");
            }
        }
    }

    #[test]
    fn pages_are_secure_if_all_come_by_tls() {
        for (settings, expected) in [
            ("", false),
            (TLS, true),
            ("origins = ['https://a.example']", true),
            ("origins = ['https://a.example', 'http://b.example']", false),
        ] {
            assert_eq!(origins("127.0.0.1:4180", settings).are_secure(), expected, "{settings}");
        }
    }
}

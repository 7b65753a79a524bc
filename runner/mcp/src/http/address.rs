//! address decides which addresses are called: never those that are no server's, or that hand out credentials of a host.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use platform_outbound::{ByteStream, Dialer};
use platform_runtime::settings::BaseUrl;
use tokio::net::lookup_host;

use crate::{error::ServerError, text::quote};

/// Addresses at which clouds hand out credentials and settings of their machines, besides those of the link.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Returns whether `host`, a name or an address of the settings, means this host.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Opens a connection to `base` at an address that may be called. The caller limits the time.
pub(super) async fn open(dialer: &Dialer, base: &BaseUrl) -> Result<Box<dyn ByteStream>, ServerError> {
    let unreachable = |error: io::Error| ServerError::Unreachable { problem: quote(&error.to_string()) };
    let found = lookup_host((base.host.as_str(), base.port)).await.map_err(unreachable)?;
    dialer.open_at(choose(&base.host, found)?, &base.host).await.map_err(unreachable)
}

/// Returns the first of `found`, the addresses of `host`, if all of them may be called.
///
/// # Errors
/// [`ServerError::Address`] for the first that may not; [`ServerError::Unreachable`] if the host has no address.
fn choose(host: &str, found: impl IntoIterator<Item = SocketAddr>) -> Result<SocketAddr, ServerError> {
    let may_be_loopback = is_loopback(host);
    let mut first = None;
    for address in found {
        let ip = address.ip().to_canonical();
        if is_refused(ip) || (ip.is_loopback() && !may_be_loopback) {
            return Err(ServerError::Address { address: ip });
        }
        first.get_or_insert(address);
    }
    first.ok_or_else(|| ServerError::Unreachable { problem: format!("{host} has no address") })
}

fn is_refused(ip: IpAddr) -> bool {
    let is_special = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast() || ip.octets()[0] == 0,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    is_special || ip.is_unspecified() || ip.is_multicast() || METADATA.contains(&ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_no_server_are_refused() {
        let chosen = |host: &str, ips: &[&str]| {
            choose(host, ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 443)))
        };
        for ip in [
            "169.254.169.254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "0.0.0.0",
            "::",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "168.63.129.16",
            "fd00:ec2::254",
        ] {
            assert!(matches!(chosen("a.example", &[ip]), Err(ServerError::Address { .. })), "{ip}");
            assert!(chosen("a.example", &["203.0.113.5", ip]).is_err(), "{ip} is one of two");
        }
        // The controls.
        for (host, ip) in [
            ("a.example", "203.0.113.5"),
            ("a.example", "10.0.0.5"),
            ("localhost", "127.0.0.1"),
            ("::1", "::1"),
        ] {
            assert!(chosen(host, &[ip]).is_ok(), "{host} {ip}");
        }
        assert!(matches!(chosen("a.example", &[]), Err(ServerError::Unreachable { .. })));
    }
}

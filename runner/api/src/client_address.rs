//! Finds the address of a request's client, behind proxies that are trusted to name it.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use platform_runtime::settings::IpNetwork;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the address for which `peer` sends a request with `headers`. Each proxy adds its own client's address behind
/// those that it got, so the last one that is not a trusted proxy counts: what stands before it is hearsay.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNetwork]) -> IpAddr {
    let is_trusted = |address: IpAddr| proxies.iter().any(|network| network.contains(address));
    let mut client = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev().map(|line| line.to_str().unwrap_or_default());
    for text in lines.flat_map(|line| line.rsplit(',')) {
        if !is_trusted(client) {
            break;
        }
        let Some(address) = parse(text.trim()) else { break };
        client = address;
    }
    client
}

/// Reads an address, which some proxies write with its port.
fn parse(text: &str) -> Option<IpAddr> {
    text.parse().or_else(|_with_port| text.parse::<SocketAddr>().map(|address| address.ip())).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_trusted_proxies_name_a_client() {
        let proxies = ["127.0.0.1", "10.0.0.0/8"].map(|text| text.parse().unwrap());
        for (peer, lines, expected) in [
            ("192.0.2.1", vec!["192.0.2.9"], "192.0.2.1"),
            ("127.0.0.1", vec![], "127.0.0.1"),
            ("127.0.0.1", vec!["192.0.2.9"], "192.0.2.9"),
            ("127.0.0.1", vec!["192.0.2.8, 192.0.2.9"], "192.0.2.9"),
            ("127.0.0.1", vec!["192.0.2.8", "192.0.2.9"], "192.0.2.9"),
            ("127.0.0.1", vec!["192.0.2.9, 10.1.1.1,10.2.2.2"], "192.0.2.9"),
            ("127.0.0.1", vec!["192.0.2.9:4711"], "192.0.2.9"),
            ("127.0.0.1", vec!["[2001:db8::1]:4711"], "2001:db8::1"),
            ("127.0.0.1", vec!["192.0.2.9, unknown"], "127.0.0.1"),
            ("127.0.0.1", vec!["192.0.2.9, unknown, 10.1.1.1"], "10.1.1.1"),
            ("127.0.0.1", vec![""], "127.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
            }
            let found = client_address(peer.parse().unwrap(), &headers, &proxies);
            assert_eq!(found.to_string(), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn without_proxies_the_header_is_ignored() {
        let headers = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static(FORWARDED_FOR),
            HeaderValue::from_static("192.0.2.9"),
        )]);
        let peer = "127.0.0.1".parse().unwrap();
        assert_eq!(client_address(peer, &headers, &[]), peer);
    }
}

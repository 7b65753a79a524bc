//! Refuses requests that a browser sends for the page of another site.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue,
        header::{HOST, ORIGIN},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::error::Error;

/// Header with the origin of a browser's request (Fetch Metadata, W3C).
const FETCH_SITE: &str = "sec-fetch-site";

/// Passes on requests that name this host by one of its own names, and that no other site's page sent.
pub(crate) async fn require_own_host(request: Request, next: Next) -> Response {
    match check_headers(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Checks the name of the host and the origin of the request.
fn check_headers(headers: &HeaderMap) -> Result<(), Error> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if is_own_name(host) => {}
        _ => return Err(Error::Host),
    }
    let is_own_origin = |origin: &HeaderValue| {
        let host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        host.is_some_and(|(_, host)| is_own_name(host))
    };
    // Browsers name the origin of the sending page. Browsers that omit it for a GET send this header instead.
    let is_cross_site = headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site");
    if is_cross_site || !headers.get_all(ORIGIN).iter().all(is_own_origin) {
        Err(Error::Site)
    } else {
        Ok(())
    }
}

/// Returns whether `host`, with or without a port, can only mean this host.
fn is_own_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_hosts_own_names_are_answered() {
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
            assert_eq!(is_own_name(host), expected, "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for (name, value, accepted) in [
            ("accept", "*/*", true),
            ("origin", "http://localhost:3000", true),
            ("origin", "https://attacker.example", false),
            ("origin", "null", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "cross-site", false),
        ] {
            let host = (HOST, HeaderValue::from_static("127.0.0.1:4180"));
            let headers = [host, (name.parse().unwrap(), HeaderValue::from_static(value))];
            assert_eq!(check_headers(&headers.into_iter().collect()).is_ok(), accepted, "{name}: {value}");
        }
    }
}

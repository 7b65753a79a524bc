//! Refuses requests that a browser sends for the page of another origin.
//!
//! A request with a token is exempt from the check of its origin. No browser adds a token by itself. Nor may a page of
//! another origin add one: this API has no CORS headers that would allow it.

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, Method,
        header::{HOST, ORIGIN},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    credentials::has_bearer, dashboard::CSP_REPORTS, error::Error, origins::Origins, own_page::FETCH_SITE,
};

/// Headers with which a browser says what it asks for.
const FETCH_MODE: &str = "sec-fetch-mode";
const FETCH_DEST: &str = "sec-fetch-dest";

/// Passes on requests that name the API by one of its names, and that no page of another origin sent.
pub(crate) async fn require_own_host(
    State(origins): State<Origins>,
    request: Request,
    next: Next,
) -> Response {
    // Browsers name no origin in reports about pages without referrers: that route looks at the sender itself.
    let checked = match request.uri().path() {
        CSP_REPORTS => check_host(request.headers(), &origins),
        _ => check_headers(request.headers(), &origins),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Checks the name of the host.
fn check_host(headers: &HeaderMap, origins: &Origins) -> Result<(), Error> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if origins.have_host(host) => Ok(()),
        _ => Err(Error::Host),
    }
}

/// Checks a request for a page or its files. A link of another site may lead to a page, in its own window: the page
/// has no data, and its requests come without the cookie's help of that site.
pub(crate) fn check_page_headers(
    method: &Method,
    headers: &HeaderMap,
    origins: &Origins,
) -> Result<(), Error> {
    check_host(headers, origins)?;
    let is = |name: &str, word: &str| headers.get(name).is_some_and(|value| value == word);
    let is_followed_link = method.is_safe() && is(FETCH_MODE, "navigate") && is(FETCH_DEST, "document");
    if is_followed_link { Ok(()) } else { check_headers(headers, origins) }
}

/// Checks the name of the host and the origin of the request.
fn check_headers(headers: &HeaderMap, origins: &Origins) -> Result<(), Error> {
    check_host(headers, origins)?;
    // Browsers name the origin of the sending page. Browsers that omit it for a GET send the other header instead.
    let is_cross_site = headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site");
    let is_own = !is_cross_site && headers.get_all(ORIGIN).iter().all(|origin| origins.contain(origin));
    if is_own || has_bearer(headers) { Ok(()) } else { Err(Error::Site) }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, header::AUTHORIZATION};

    use super::*;
    use crate::origins::tests::origins;

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:4180".parse().unwrap());
        for (name, value) in list {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_link_of_another_site_leads_to_a_page() {
        let own = origins("127.0.0.1:4180", "");
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        let check = |method: &Method, list: &[(&str, &str)]| check_page_headers(method, &headers(list), &own);
        assert!(check(&Method::GET, &link).is_ok());
        assert!(matches!(check_headers(&headers(&link), &own), Err(Error::Site)), "control: not to the API");
        for refused in [
            (Method::POST, link),
            (Method::GET, [link[0], link[1], ("sec-fetch-dest", "iframe")]),
            (Method::GET, [link[0], ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")]),
        ] {
            assert!(check(&refused.0, &refused.1).is_err(), "{refused:?}");
        }
        let mut rebound = headers(&link);
        rebound.insert(HOST, "attacker.example".parse().unwrap());
        assert!(matches!(check_page_headers(&Method::GET, &rebound, &own), Err(Error::Host)));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let own = origins("127.0.0.1:4180", "");
        for (name, value, accepted) in [
            ("accept", "*/*", true),
            ("origin", "http://127.0.0.1:4180", true),
            ("origin", "http://127.0.0.1:3000", false),
            ("origin", "http://localhost:3000", false),
            ("origin", "https://attacker.example", false),
            ("origin", "null", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "cross-site", false),
        ] {
            let mut headers = headers(&[(name, value)]);
            assert_eq!(check_headers(&headers, &own).is_ok(), accepted, "{name}: {value}");
            headers.insert(AUTHORIZATION, "Bearer x".parse().unwrap());
            assert!(check_headers(&headers, &own).is_ok(), "a token is exempt: {name}: {value}");
            headers.insert(AUTHORIZATION, "Basic x".parse().unwrap());
            assert_eq!(
                check_headers(&headers, &own).is_ok(),
                accepted,
                "browsers add these: {name}: {value}"
            );
        }
        let mut rebound = headers(&[("authorization", "Bearer x")]);
        assert!(check_headers(&rebound, &own).is_ok(), "control");
        rebound.insert(HOST, "attacker.example".parse().unwrap());
        assert!(matches!(check_headers(&rebound, &own), Err(Error::Host)));
    }
}

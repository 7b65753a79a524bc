//! Checks that a page of the API itself sent a request that a cookie identifies.
//!
//! Browsers add a cookie to what other pages send, too. It has no port, so a page from another port of the host is as
//! near as the API's own.

use axum::http::{HeaderMap, Method, header::ORIGIN};

use crate::{body::is_json, error::Error, origins::Origins};

/// Header with the relation of a browser's page to the API (Fetch Metadata, W3C).
pub(crate) const FETCH_SITE: &str = "sec-fetch-site";

/// Checks that a page of the API itself sent the request, if it changes something.
pub(crate) fn require_own_page(method: &Method, headers: &HeaderMap, origins: &Origins) -> Result<(), Error> {
    if method.is_safe() {
        return Ok(());
    }
    let mut sent = headers.get_all(ORIGIN).iter();
    let is_own = matches!((sent.next(), sent.next()), (Some(origin), None) if origins.contain(origin));
    let mut relations = headers.get_all(FETCH_SITE).iter();
    if !is_own || !relations.all(|site| site == "same-origin" || site == "none") {
        return Err(Error::Origin);
    }
    // Forms of other pages cannot send this type.
    if is_json(headers) { Ok(()) } else { Err(Error::MediaType) }
}

#[cfg(test)]
pub(crate) mod tests {
    use axum::http::{HeaderName, header::CONTENT_TYPE};

    use super::*;
    use crate::origins::tests::origins;

    const OWN: (&str, &str) = ("origin", "http://127.0.0.1:4180");
    const JSON: (&str, &str) = ("content-type", "application/json");

    /// Returns headers with these names and values, in this order.
    pub(crate) fn headers(list: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn with_a_cookie_only_an_own_page_changes_things() {
        let own = origins("127.0.0.1:4180", "");
        for accepted in [vec![OWN, JSON], vec![OWN, JSON, ("sec-fetch-site", "same-origin")]] {
            require_own_page(&Method::POST, &headers(&accepted), &own).unwrap();
        }
        for refused in [
            vec![JSON],
            vec![JSON, ("origin", "http://127.0.0.1:3000")],
            vec![JSON, ("origin", "http://localhost:4180")],
            vec![JSON, ("origin", "https://127.0.0.1:4180")],
            vec![JSON, ("origin", "null")],
            vec![OWN, OWN, JSON],
            vec![OWN, JSON, ("sec-fetch-site", "same-site")],
            vec![OWN, JSON, ("sec-fetch-site", "cross-site")],
        ] {
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let checked = require_own_page(&method, &headers(&refused), &own);
                assert!(matches!(checked, Err(Error::Origin)), "{method} {refused:?}");
            }
            require_own_page(&Method::GET, &headers(&refused), &own).unwrap();
        }
    }

    #[test]
    fn with_a_cookie_a_form_changes_nothing() {
        let own = origins("127.0.0.1:4180", "");
        for form in ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""] {
            let mut headers = headers(&[OWN]);
            headers.insert(CONTENT_TYPE, form.parse().unwrap());
            let checked = require_own_page(&Method::POST, &headers, &own);
            assert!(matches!(checked, Err(Error::MediaType)), "{form}");
        }
    }
}

//! admit: may this call pass at all. Decided from the head, before any of the body is read.
//!
//! Limits, models and fields will be decided here and in the body check; so far it is the route, and
//! whether run and journal are open.

use http::{Method, request::Parts};
use platform_core::{refusal::Refusal, route::Route};

/// The route of the call, if it is on the list. The query string takes no part: it is never forwarded.
pub(super) fn route(head: &Parts, path: &str) -> Result<Route, Refusal> {
    let origin_form = head.uri.authority().is_none();
    match (&head.method, Route::of_post(path)) {
        (&Method::POST, route) if origin_form && route != Route::Unknown => Ok(route),
        _ => Err(Refusal::RouteUnknown),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admitted(method: &str, uri: &str) -> Result<Route, Refusal> {
        let head = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
        route(&head, head.uri.path())
    }

    #[test]
    fn only_listed_routes_pass_and_only_by_post() {
        assert_eq!(admitted("POST", "/v1/chat/completions"), Ok(Route::ChatCompletions));
        assert_eq!(
            admitted("POST", "/v1/chat/completions?model=other&user=victim"),
            Ok(Route::ChatCompletions)
        );
        for (method, uri) in [
            ("GET", "/v1/chat/completions"),
            ("PUT", "/v1/chat/completions"),
            ("POST", "/key/generate"),
            ("POST", "/v1/mcp/server"),
            ("POST", "/v1/chat/completions/"),
            ("POST", "http://other/v1/chat/completions"),
            ("POST", "/v1/%63hat/completions"),
        ] {
            assert_eq!(admitted(method, uri), Err(Refusal::RouteUnknown), "{method} {uri}");
        }
    }
}

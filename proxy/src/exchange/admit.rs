//! Decides whether a call may pass at all, from its head, before any of the body is read.
//!
//! Then run and journal have to be open, and the limits have to leave room for another call. Models and fields are
//! checked with the body.

use http::{Method, Version, header, request::Parts};
use platform_core::{record::Identity, refusal::Refusal, route::Route, trace::Step};

use super::call::Exchange;
use crate::{
    budget::{self, Reservation},
    clock,
    refusal::Refused,
    server::Target,
};

/// Bytes of a head besides target, names and values: `POST  HTTP/1.1`, and the empty line.
const FRAME_BYTES: usize = 17;
/// Bytes of a header besides name and value: a colon, a blank, the end of the line.
const FRAME_BYTES_PER_HEADER: usize = 4;

/// Returns the bytes that `head` has in the usual spelling.
pub(super) fn size(head: &Parts) -> usize {
    let headers = head.headers.iter();
    let headers: usize =
        headers.map(|(name, value)| name.as_str().len() + value.len() + FRAME_BYTES_PER_HEADER).sum();
    FRAME_BYTES + headers + head.uri.path_and_query().map_or(0, |target| target.as_str().len())
}

/// Checks that every reader sees the same request in this head (RFC 9112, 3.2 and 6.1). What hyper refuses
/// itself is not checked again: two lengths, folded lines, malformed chunks. hyper drops a length beside
/// chunked, and closes the connection behind the answer. No target has a fragment.
pub(super) fn check_head(head: &Parts, target: Target) -> Result<(), Refusal> {
    let headers = &head.headers;
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_framed_once = match (encodings.next(), encodings.next()) {
        (None, _) => true,
        (Some(one), None) => one.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    let hosts = headers.get_all(header::HOST).iter().count();
    let is_addressed_once = hosts == 1 || (hosts == 0 && head.version < Version::HTTP_11);
    if is_framed_once && is_addressed_once && target == Target::Plain {
        Ok(())
    } else {
        Err(Refusal::HeadInvalid)
    }
}

/// Returns the call's route, if it is listed. The query string takes no part: it is never forwarded.
pub(super) fn find_route(head: &Parts, path: &str) -> Result<Route, Refusal> {
    let origin_form = head.uri.authority().is_none();
    match (&head.method, Route::of_post(path)) {
        (&Method::POST, route) if origin_form && route != Route::Unknown => Ok(route),
        (&Method::GET, Route::Responses) if origin_form && asks_for_websocket(head) => {
            Err(Refusal::WebsocketUnsupported)
        }
        (_, route) if origin_form && route.is_of_tools() => Err(Refusal::MethodNotAllowed),
        _ => Err(Refusal::RouteUnknown),
    }
}

/// Returns whether the client would speak the WebSocket protocol (RFC 6455, 4.1).
fn asks_for_websocket(head: &Parts) -> bool {
    let protocols = head.headers.get_all(header::UPGRADE).iter();
    let mut protocols = protocols.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

impl Exchange {
    /// Counts the call against the rates of its run and account, whatever becomes of it.
    pub(super) fn pace(&self) -> Result<(), Refused> {
        Ok(budget::pace(&self.run.spending, &self.run.account, clock::uptime(self.began))?)
    }

    /// Counts the call as in flight, if run and journal are open, and the limits of model calls leave room for it.
    pub(super) fn admit(&mut self, route: Route) -> Result<(), Refused> {
        self.open(route)?;
        self.reservation = Some(Reservation::enter(&self.run.spending, &self.run.account)?);
        self.trace(|| Step::Admitted { route });
        Ok(())
    }

    /// Counts the call as in flight, if run and journal are open.
    pub(super) fn open(&mut self, route: Route) -> Result<(), Refused> {
        self.route = route;
        self.note(|record| record.route = route);
        self.record_space = Some(self.context.journal.reserve_space().ok_or(Refusal::JournalUnavailable)?);
        self.in_flight = Some(self.run.enter()?);
        if self.run.is_expired(clock::now()) {
            return Err(Refusal::RunDeadlineExceeded.into());
        }
        // Checked again: the token may have been revoked between its check and the call's beginning, unseen by the code
        // that cuts calls.
        let is_by_token =
            self.builder.as_ref().is_some_and(|builder| builder.record.identity == Identity::Token);
        if is_by_token && self.run.is_revoked() {
            return Err(Refusal::TokenRevoked.into());
        }
        self.check_freezes(None)
    }

    /// Refuses the call if the balance of its account is below its floor, unless `model` costs nothing.
    pub(super) fn check_balance(&self, model: &str) -> Result<(), Refused> {
        if self.context.balances.passes(&self.run.grant.account, model) {
            Ok(())
        } else {
            Err(Refusal::BalanceExhausted.into())
        }
    }

    /// Refuses the call if an operator has frozen its account or `model`.
    pub(super) fn check_freezes(&self, model: Option<&str>) -> Result<(), Refused> {
        self.context.freezes.stop(&self.run.grant.account, model).map_or(Ok(()), |stop| Err(stop.into()))
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admitted(method: &str, uri: &str) -> Result<Route, Refusal> {
        let head = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
        find_route(&head, head.uri.path())
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
            ("POST", "/mcp/"),
            ("POST", "http://other/mcp"),
            ("GET", "http://other/mcp"),
            ("POST", "/v1/chat/completions/"),
            ("POST", "http://other/v1/chat/completions"),
            ("POST", "/v1/%63hat/completions"),
        ] {
            assert_eq!(admitted(method, uri), Err(Refusal::RouteUnknown), "{method} {uri}");
        }
    }

    #[test]
    fn routes_of_tools_take_post_alone() {
        assert_eq!(admitted("POST", "/mcp?run=r2"), Ok(Route::Mcp));
        assert_eq!(admitted("POST", "/tool/exec"), Ok(Route::ToolExec));
        for method in ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"] {
            for path in ["/mcp", "/tool/exec"] {
                assert_eq!(admitted(method, path), Err(Refusal::MethodNotAllowed), "{method} {path}");
            }
        }
    }

    #[test]
    fn a_websocket_is_refused_by_its_own_name() {
        let asked = |method: &str, uri: &str, protocol: &str| {
            let request = Request::builder().method(method).uri(uri).header("upgrade", protocol);
            let head = request.body(()).unwrap().into_parts().0;
            find_route(&head, head.uri.path())
        };
        for protocol in ["websocket", "WebSocket", "h2c, websocket"] {
            assert_eq!(asked("GET", "/v1/responses", protocol), Err(Refusal::WebsocketUnsupported));
        }
        for (method, uri, protocol) in [
            ("GET", "/v1/responses", "h2c"),
            ("GET", "/v1/responses", "websockets"),
            ("GET", "/v1/responses/", "websocket"),
            ("GET", "/v1/realtime", "websocket"),
            ("PUT", "/v1/responses", "websocket"),
            ("GET", "http://other/v1/responses", "websocket"),
        ] {
            assert_eq!(asked(method, uri, protocol), Err(Refusal::RouteUnknown), "{method} {uri} {protocol}");
        }
        assert_eq!(
            asked("POST", "/v1/responses", "websocket"),
            Ok(Route::Responses),
            "a call like any other"
        );
    }
}

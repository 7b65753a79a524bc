//! rewrite: what of a request goes on, and what Sluicegate adds.

mod body;
mod headers;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use platform_core::refusal::Refusal;

pub(super) use self::body::{Asked, discard, read_body};
pub(crate) use self::headers::Identification;
use super::settle::Exchange;

/// Whether `body` is one that may pass.
#[cfg(feature = "parts")]
pub(crate) fn body_is_good(body: &[u8]) -> bool {
    body::asked(body).is_ok()
}

/// The request that goes to the upstream.
pub(super) fn request(
    exchange: &mut Exchange,
    from: &HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Refusal> {
    let asked = body::asked(&body)?;
    exchange.asked(&asked);
    let path = exchange.route().upstream_path().ok_or(Refusal::RouteUnknown)?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    *request.headers_mut() = headers::passed(from);
    let identified = exchange.run().identification.add_to(request.headers_mut(), exchange.call_id());
    identified.map_err(|_error| Refusal::BodyInvalid)?;
    Ok(request)
}

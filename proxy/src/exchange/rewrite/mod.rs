//! rewrite: what of a request goes on, and what Sluicegate adds.

mod body;
mod headers;
mod receive;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use platform_core::refusal::Refusal;

pub(super) use self::body::Checked;
pub(super) use self::receive::{discard, is_plain, read_body};
pub(crate) use self::{
    body::{Policy, Reason, Rejection},
    headers::Identification,
};
use super::settle::Exchange;
use crate::{budget::Ask, pieces::Pieces, refusal::Refused, usage::estimate};

/// Whether `body` is one that may pass.
#[cfg(feature = "parts")]
pub(crate) fn body_is_good(body: &[u8]) -> bool {
    body::check(platform_core::route::Route::ChatCompletions, body, &Policy::default()).is_ok()
}

/// The request that goes to the upstream.
pub(super) fn request(
    exchange: &mut Exchange,
    from: &HeaderMap,
    body: &Bytes,
) -> Result<Request<Pieces>, Refused> {
    let run = Arc::clone(exchange.run());
    let route = exchange.route();
    let mut checked = body::check(route, body, &run.policy)?;
    exchange.asked(&checked)?;
    let granted = exchange.reserve(&Ask {
        input: estimate::most_input(body, checked.media, checked.letters),
        output: checked.sizes.output().unwrap_or(u64::MAX).clamp(1, run.grant.limits.output_tokens),
        answers: checked.sizes.answers(route),
        price: exchange.plane().snapshot.load().prices.of(&checked.model),
    })?;
    checked.limit_output(route, granted.output_each);
    let path = exchange.route().upstream_path().ok_or(Refusal::RouteUnknown)?;
    let mut request = Request::new(Pieces::from(checked.edits.pieces(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    *request.headers_mut() = headers::passed(from);
    let identified = exchange.run().identification.add_to(request.headers_mut(), exchange.call_id());
    identified.map_err(|_error| Refusal::BodyInvalid)?;
    Ok(request)
}

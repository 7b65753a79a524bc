//! Carries a call through its life, one file per phase, in this order:
//!
//! [`mod@identify`] → [`admit`] → [`rewrite`] → [`authorize`] → [`forward`] → [`observe`] or [`upstream_error`] → [`settle`]
//!
//! Calls of host tools branch off in [`serve`]: [`mod@tools`] leads through their phases.
//!
//! [`serve`] leads through them; `call` holds the call meanwhile. `crate::server` brings the requests. Knows nothing of
//! control: a call meets control only in its [`crate::run::Run`], which is closed under it, and in the [`Snapshot`],
//! which it loads once.

mod admit;
mod authorize;
mod body;
mod call;
mod context;
mod cost;
mod forward;
#[cfg(feature = "internals")]
pub(crate) mod fuzzing;
mod identify;
mod models;
mod observe;
mod passed;
mod record_builder;
mod redact;
mod rewrite;
mod serve;
mod settle;
mod silence;
mod tools;
mod upstream_error;

use bytes::Bytes;
use http::{HeaderValue, Response, header};

pub(crate) use self::context::{ServeContext, Snapshot};

/// Returns a response with a JSON document of our own, and status 200.
fn json_response(text: String) -> Response<Bytes> {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

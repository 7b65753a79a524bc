//! Serves the HTTP API of `sluice up`, for applications on this host.
//!
//! axum routes requests. This crate accepts connections itself, because `axum::serve` has no timeouts. The API has a
//! thread of its own, so that neither a slow client nor a slow query delays the worker. It has no TLS yet, so it listens
//! on the loopback alone. It refuses what a browser sends for another site's page, even if that site points its own name
//! at this host.
//!
//! A principal is identified by its token (`caller`), and each route names the role that it demands (`routes`). Runs of
//! other accounts do not exist for a caller that is no operator.
//!
//! Does not execute runs. Start reading at [`Api`], then `routes`.
//!
//! Invariants: only requests to this host's own names are answered. No route answers with a run of another account.

mod accounts;
mod agents;
mod body;
mod caller;
mod context;
mod data_plane;
mod error;
mod explanation;
mod freezes;
mod gateways;
mod own_host;
mod routes;
mod runs;
mod server;
mod stream_guard;
mod stream_permits;
mod stream_response;
mod trace_parent;

use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use serde::Serialize;

pub use self::{
    context::ApiContext,
    server::{Api, Unbound},
};

/// Returns an answer with `value` as JSON.
fn json_response(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_unserializable) => error::Error::Internal.into_response(),
    }
}

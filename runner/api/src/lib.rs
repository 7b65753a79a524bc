//! Serves the HTTP API of `sluice up`, for applications and browsers.
//!
//! axum routes requests. This crate accepts connections itself, because `axum::serve` has no timeouts and no bound
//! (`connection_table`: which connection gives way when the table is full). The API has its own thread, so that neither
//! a slow client nor a slow query delays the worker. Off the loopback it always has TLS (`tls`). It refuses what a
//! browser sends for another origin's page, even if that site points its own name at this host (`own_host`, `own_page`,
//! `origins`).
//!
//! A principal is identified by its token or a browser session (`caller`, `credentials`), and each route names the role
//! that it demands (`routes`). The table of routes is also the source of the OpenAPI document (`openapi`). Runs of other
//! accounts do not exist for a caller that is not an operator.
//!
//! Three modules take orders, and each order becomes a stored run: `runs`, `chat` in the AI SDK's protocol, and `openai`.
//! In the last one a model is an agent.
//!
//! Does not execute runs. Start reading at [`Api`], then `routes`.
//!
//! Invariants: only requests to the API's own names are answered. No route answers with a run of another account. With
//! a cookie, only a page of the API's own origins changes something.

mod accounts;
mod agent_draft;
mod agents;
mod answer_timeout;
mod approvals;
mod attachment;
mod attempts;
mod balances;
mod body;
mod browser_sessions;
mod callbacks;
mod caller;
mod chat;
mod chunk_stream;
mod client_address;
mod configuration_file;
mod connection_table;
mod connections;
mod context;
mod credentials;
mod csp_reports;
mod dashboard;
mod dashboard_config;
mod data_plane;
mod endpoint;
mod error;
mod fair_permits;
mod file_job;
mod foreign_error;
mod freezes;
mod gateways;
mod ingest;
mod message_page;
mod monitoring;
mod observed_body;
mod openai;
mod openapi;
mod operation;
mod origins;
mod overview;
mod own_host;
mod own_page;
mod pages;
mod paging;
mod problem;
mod problem_details;
mod proposals;
mod repos;
mod rfc3339;
mod routes;
mod runs;
mod server;
mod session_link;
mod sign_in_attempts;
mod socket_place;
mod stream_guard;
mod stream_permits;
mod stream_response;
mod system;
#[cfg(test)]
mod tests;
mod threads;
mod tls;
mod trace_parent;
mod waiters;

use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use serde::Serialize;

pub use self::{
    agents::{AgentListView, AgentView, BlockReasonView},
    callbacks::Callbacks,
    configuration_file::ConfigurationFile,
    context::ApiContext,
    proposals::ProposalView,
    routes::openapi_document,
    server::{Api, StartError},
    tls::{ReadIdentity, TlsError, TlsIdentity},
};

/// Returns an answer with `value` as JSON. Members of a [`serde_json::Value`] stand in the order of their names: some
/// answers are made into one first, because clients have known them in that order.
fn json_response(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_unserializable) => error::Error::Internal.into_response(),
    }
}

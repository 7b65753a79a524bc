//! Gives fuzzers access to the bodies that order runs.
//!
//! Compiled with the feature `internals` only; not for other programs.

use axum::http::HeaderMap;
use platform_core::id::{AccountId, RunId};
pub use runner_engine::order::RunOrder;

use crate::{body::read_fields, caller::Caller, chat, error::Error, openai, runs};

/// Account that orders.
pub const ACCOUNT: &str = "acct-1";

/// Route whose body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderRoute {
    /// `POST /api/v1/ai/chat`.
    Chat,
    /// `POST /v1/chat/completions`.
    Completions,
    /// `PUT /api/v1/runs/r1`.
    Runs,
}

/// Returns the order that `body` makes at `route`.
///
/// # Errors
/// The detail of the refusal.
pub fn order(route: OrderRoute, body: &[u8]) -> Result<RunOrder, String> {
    read(route, body).map_err(|error| error.to_string())
}

fn read(route: OrderRoute, body: &[u8]) -> Result<RunOrder, Error> {
    let caller = Caller::Anonymous(AccountId::parse(ACCOUNT).map_err(|_never| Error::Internal)?);
    let body = read_fields(body)?;
    match route {
        OrderRoute::Chat => chat::order_of(body, &caller),
        OrderRoute::Completions => openai::order_of(&body, &HeaderMap::new(), &caller),
        OrderRoute::Runs => {
            let run_id = RunId::parse("r1").map_err(|_never| Error::Internal)?;
            runs::order_of(run_id, body, &caller)
        }
    }
}

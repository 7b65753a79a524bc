//! Answers for a handler that takes too long.

use std::time::Duration;

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use crate::error::Error;

/// Longest time until an answer begins.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers in place of a handler that takes too long.
pub(crate) async fn answer_in_time(request: Request, next: Next) -> Response {
    timeout(ANSWER_TIMEOUT, next.run(request))
        .await
        .unwrap_or_else(|_elapsed| Error::TimedOut.into_response())
}

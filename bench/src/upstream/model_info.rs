//! Answers `GET /model/info`, where LiteLLM shows its deployments with their prices.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::StatusCode;

/// Answer that a test may set. Without one it is that of a provider, which has no such path. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelInfo(Arc<Mutex<Option<(StatusCode, Bytes)>>>);

impl ModelInfo {
    pub(super) fn set(&self, status: StatusCode, body: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((status, body));
    }

    /// Returns status and body of the answer.
    pub(super) fn answer(&self) -> (StatusCode, Bytes) {
        let set = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        set.unwrap_or((StatusCode::NOT_FOUND, Bytes::from_static(b"{\"detail\":\"Not Found\"}")))
    }
}

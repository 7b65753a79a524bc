//! Asks the data plane for a request, and waits no longer than a client would.

use std::time::Duration;

use runner_control_client::{DataPlane, Error as DataPlaneError};
use tokio::time::timeout;

use crate::{context::ApiContext, error::Error};

/// Longest wait for an answer of the data plane.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

impl ApiContext {
    /// Returns the answer of the data plane to `call`.
    ///
    /// # Errors
    /// [`Error::DataPlane`], also if it does not answer in time.
    pub(crate) async fn ask_data_plane<T>(
        &self,
        call: impl AsyncFnOnce(&DataPlane) -> Result<T, DataPlaneError>,
    ) -> Result<T, Error> {
        let answered = timeout(ANSWER_TIMEOUT, call(&self.data_plane)).await;
        Ok(answered.unwrap_or(Err(DataPlaneError::Silent))?)
    }
}

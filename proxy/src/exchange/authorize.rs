//! Adds the run's own key to the request for the upstream, if runs have one.

use std::sync::Arc;

use http::{Request, header};
use platform_core::refusal::Refusal;
use platform_runtime::report;

use super::call::Exchange;
use crate::{mask::Mask, pieces::Pieces, refusal::Refused};

impl Exchange {
    /// Replaces the credential of `request` by the run's own key. The first call of a run waits for its mint.
    ///
    /// # Errors
    /// If the run gets no key: nothing is sent.
    pub(super) async fn authorize(&self, request: &mut Request<Pieces>) -> Result<(), Refused> {
        let Some(admin) = self.context.snapshot.load().admin.clone() else { return Ok(()) };
        let minted = self.context.run_keys.key(&self.run, &self.context.upstream, &admin).await;
        let key = minted.map_err(|error| {
            let error = report::chain(&error);
            tracing::error!(call = %self.call_id, error, "call not sent: its run has no key of its own");
            Refusal::UpstreamUnavailable
        })?;
        request.headers_mut().insert(header::AUTHORIZATION, key.authorization.clone());
        Ok(())
    }

    /// Returns the mask of the secrets that its answer must not hold, the run's own key among them.
    pub(super) fn mask(&self) -> Arc<Mask> {
        let configured = Arc::clone(&self.context.snapshot.load().mask);
        match self.run.key.get() {
            Some(key) => Arc::new(key.mask.clone().with(&configured)),
            None => configured,
        }
    }
}

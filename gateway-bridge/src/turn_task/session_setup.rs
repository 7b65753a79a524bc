//! Sets a turn's session up: its directory, model and headers. Removes the headers afterwards.

use platform_runtime::report;

use super::{TurnTask, setup_failure};
use crate::{
    error::Error,
    outcome::{Code, TurnFailure},
    turn::Attribution,
    wire::{
        request::{ClearHeaders, HEADERS_CLEAR, HEADERS_SET, SetHeaders},
        transcript,
    },
};

impl TurnTask {
    /// Sets up the session before the turn.
    pub(super) async fn set_up_session(&mut self) -> Result<(), TurnFailure> {
        let limit = self.handle.shared.limits.call;
        let hello = &self.up.hello;
        // Each turn says it again: the gateway may have lost the session since the last one.
        if let Some(session) = self.turn.session_with_directory().filter(|_| hello.takes_directories()) {
            match self.handle.call("sessions.create", &session, limit).await {
                Ok(_created) => {}
                Err(error @ Error::Refused { .. }) => {
                    let run_id = &self.turn.run_id;
                    tracing::warn!(%run_id, error = report::chain(&error), "the session works in its agent's directory");
                }
                Err(error) => return Err(setup_failure(error)),
            }
        }
        let generation = hello.generation;
        let Some(patch) = self.turn.patch(generation, self.handle.shared.provider.as_ref()) else {
            return Ok(());
        };
        let patched = self.handle.call("sessions.patch", &patch, limit).await.map_err(setup_failure)?;
        if let Attribution::Plugin(headers) = &self.turn.attribution {
            let session_id = transcript::session_id(&patched)
                .map_err(|_malformed| TurnFailure::Refused { code: Code::new("malformed") })?;
            // From here on the headers must be removed again, whether or not the answer comes.
            self.headers_session = Some(session_id.clone());
            let params = SetHeaders { session_id: &session_id, headers };
            self.handle.call(HEADERS_SET, &params, limit).await.map_err(setup_failure)?;
        }
        Ok(())
    }

    /// Removes the session's headers again. A turn that ends without this has already sent the removal, or the gateway
    /// is gone.
    pub(super) async fn clear_session_headers(&mut self) {
        if let Some(session_id) = self.headers_session.take() {
            let limit = self.handle.shared.limits.abort;
            let cleared =
                self.handle.call(HEADERS_CLEAR, &ClearHeaders { session_id: &session_id }, limit).await;
            if let Err(error) = cleared {
                let run_id = &self.turn.run_id;
                tracing::warn!(%run_id, error = report::chain(&error), "headers of a session not removed");
            }
        }
    }
}

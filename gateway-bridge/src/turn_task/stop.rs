//! Stops a turn before its end.

use std::time::Duration;

use platform_core::id::RunId;
use platform_runtime::task;
use tokio::time::{sleep, timeout};

use super::TurnTask;
use crate::{
    handle::ConnectionHandle,
    outcome::{Ending, TurnFailure},
    session::SessionKey,
    wire::{answer, request::Abort, transcript},
};

/// Delay before an abort is repeated: a gateway that has just accepted a turn may not know yet that it can be aborted.
const ABORT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Time for which an unconfirmed abort is retried after the turn has ended for the caller.
const LATE_ABORT_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks a gateway to stop a turn that has ended for the caller already.
async fn stop_later(handle: ConnectionHandle, session: SessionKey, run_id: RunId) {
    let abort = Abort::new(&session, &run_id);
    // Without a connection, and with none to come, no abort can be sent.
    while handle.connected().await.is_ok() {
        if handle.call("chat.abort", &abort, handle.shared.limits.call).await.is_ok() {
            return;
        }
        sleep(ABORT_RETRY_DELAY).await;
    }
}

impl TurnTask {
    /// Aborts the turn and waits until the gateway confirms it, at most for the abort timeout. The ending is `why` in
    /// any case: for the caller the turn had ended when the abort began.
    pub(super) async fn stop(&mut self, why: TurnFailure) -> Ending {
        if self.may_run && timeout(self.handle.shared.limits.abort, self.abort_until_ended()).await.is_err() {
            tracing::warn!(run_id = %self.turn.run_id, "the gateway did not confirm the abort of a turn");
            let later = stop_later(self.handle.clone(), self.turn.session.clone(), self.turn.run_id.clone());
            drop(task::spawn("gateway abort", timeout(LATE_ABORT_TIMEOUT, later)));
        }
        Ending::Failed(why)
    }

    async fn abort_until_ended(&mut self) {
        let handle = self.handle.clone();
        loop {
            let abort = Abort::new(&self.turn.session, &self.turn.run_id);
            let aborted = handle.call("chat.abort", &abort, handle.shared.limits.abort).await;
            if aborted.is_ok_and(|payload| transcript::aborted(&payload)) {
                return;
            }
            tokio::select! {
                () = self.wait_until_ended() => return,
                () = sleep(ABORT_RETRY_DELAY) => {}
            }
        }
    }

    /// Waits until the turn has ended in any way.
    async fn wait_until_ended(&mut self) {
        let state = self.state.clone();
        let answers = &mut self.answers;
        let last_answer = async {
            while let Some(receiver) = answers {
                match receiver.recv().await {
                    Some(Ok(frame)) if matches!(answer::read(&frame), Ok(answer::TurnReply::Ended(_))) => {
                        return;
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => *answers = None,
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            _over = state.wait_for_conversation_end() => {}
            () = last_answer => {}
        }
    }
}

//! Stops a turn before its end.

use std::time::Duration;

use platform_core::id::RunId;
use platform_runtime::task;
use tokio::time::{sleep, timeout};

use super::Driver;
use crate::{
    link::Link,
    outcome::{Ending, Failure},
    session::SessionKey,
    wire::{answer, request::Abort, transcript},
};

/// Delay before an abort is repeated: a gateway that has just taken a turn may not know yet that it can be aborted.
const AGAIN: Duration = Duration::from_millis(200);

/// Time for which an unconfirmed abort is retried after the turn has ended for the caller.
const LATER: Duration = Duration::from_secs(120);

/// Asks a gateway to stop a turn that has ended for the caller already.
async fn stop_later(link: Link, session: SessionKey, turn: RunId) {
    let abort = Abort::new(&session, &turn);
    // Without a connection, and with none to come, no abort can be sent.
    while link.up().await.is_ok() {
        if link.call("chat.abort", &abort, link.shared.limits.call).await.is_ok() {
            return;
        }
        sleep(AGAIN).await;
    }
}

impl Driver {
    /// Aborts the turn and waits until the gateway confirms it, at most for the abort timeout. The ending is `why` in
    /// any case: for the caller the turn was over when the abort began.
    pub(super) async fn stop(&mut self, why: Failure) -> Ending {
        if self.may_run && timeout(self.link.shared.limits.abort, self.stopping()).await.is_err() {
            tracing::warn!(turn = %self.turn.id, "the gateway did not say that it stopped an aborted turn");
            let (link, session, turn) = (self.link.clone(), self.turn.session.clone(), self.turn.id.clone());
            drop(task::spawn("gateway abort", timeout(LATER, stop_later(link, session, turn))));
        }
        Ending::Failed(why)
    }

    async fn stopping(&mut self) {
        let link = self.link.clone();
        loop {
            let abort = Abort::new(&self.turn.session, &self.turn.id);
            let aborted = link.call("chat.abort", &abort, link.shared.limits.abort).await;
            if aborted.is_ok_and(|payload| transcript::aborted(&payload)) {
                return;
            }
            tokio::select! {
                () = self.settled() => return,
                () = sleep(AGAIN) => {}
            }
        }
    }

    /// Waits until the turn is over in any way.
    async fn settled(&mut self) {
        let live = self.live.clone();
        let answers = &mut self.answers;
        let last_answer = async {
            while let Some(receiver) = answers {
                match receiver.recv().await {
                    Some(Ok(said)) if matches!(answer::read(&said), Ok(answer::Reply::Over(_))) => return,
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => *answers = None,
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            _over = live.conversation_over() => {}
            () = last_answer => {}
        }
    }
}

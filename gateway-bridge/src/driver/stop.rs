//! Stopping a turn before its end.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Driver;
use crate::{
    outcome::{Ending, Failure},
    wire::{answer, request::Abort, transcript},
};

/// A gateway that has just taken a turn may not know yet that it can be aborted: it is told again.
const AGAIN: Duration = Duration::from_millis(200);

impl Driver {
    /// Aborts the turn and waits until the gateway says so, but not longer than it may take. The ending is `why` in any
    /// case: the turn was over for whoever asked when the abort began.
    pub(super) async fn stop(&mut self, why: Failure) -> Ending {
        if self.sent_to.is_some() && timeout(self.link.shared.limits.abort, self.stopping()).await.is_err() {
            tracing::warn!(turn = %self.turn.id, "the gateway did not say that it stopped an aborted turn");
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

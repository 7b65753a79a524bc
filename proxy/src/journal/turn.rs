//! Lets calls wait for the commit of what they handed in during one turn of their thread's event loop.

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use platform_runtime::{report, sync::Mutex};

use super::Error;

/// Value that is kept until a call's record is as durable as the settings require, and until the call has noticed that.
pub(super) type Held = Box<dyn Any + Send>;

/// Commit that the calls of one turn wait for.
#[derive(Default)]
pub(super) struct Turn(Mutex<State>);

enum State {
    /// Not committed yet.
    Pending { waiting: Vec<Waker>, held: Vec<Held> },
    /// Committed, or failed.
    Done(Commit),
}

/// Result of a commit.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// Result of writing the marks.
    pub(super) marks: Result<(), Arc<Error>>,
    /// Result of writing the lines.
    pub(super) lines: Result<(), Arc<Error>>,
}

/// Part of a commit that one call waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Its mark.
    Mark,
    /// Its line.
    Line,
}

/// Future that is ready when the written data is as durable as the settings require. Dropping it changes nothing.
#[must_use = "it may not be durable yet"]
pub(crate) enum Durable {
    /// Ready already: there is nothing to write.
    Now,
    /// Ready after the commit of a turn.
    After(CommitWait),
}

impl Durable {
    /// Waits until an answer of Sluicegate's own may be sent. A failed disk does not hold it back: it reports a failure
    /// anyway.
    pub(crate) async fn wait(self) {
        if let Err(error) = self.await {
            tracing::error!(error = report::chain(&error), "a record may not be on the disk");
        }
    }
}

/// Wait for a part of a commit.
pub(crate) struct CommitWait {
    turn: Arc<Turn>,
    part: Part,
    /// Dropped with the wait. Passed on to the turn if that has not ended by then.
    held: Option<Held>,
}

impl Default for State {
    fn default() -> Self {
        Self::Pending { waiting: Vec::new(), held: Vec::new() }
    }
}

impl Turn {
    /// Returns a future for `part` of the turn's commit. `held` is dropped with the future, or at the end of the turn if
    /// that is later.
    pub(super) fn wait(self: &Arc<Self>, part: Part, held: Option<Held>) -> Durable {
        Durable::After(CommitWait { turn: Arc::clone(self), part, held })
    }

    /// Keeps `held` until the turn has ended.
    fn hold(&self, held: Held) {
        if let State::Pending { held: all, .. } = &mut *self.0.lock() {
            all.push(held);
        }
    }

    /// Ends the turn, and wakes the calls that wait for it.
    pub(super) fn end(&self, commit: Commit) {
        let ended = std::mem::replace(&mut *self.0.lock(), State::Done(commit));
        if let State::Pending { waiting, held } = ended {
            drop(held);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl Commit {
    /// Returns the result that all parts share.
    pub(super) fn all(result: &Result<(), Arc<Error>>) -> Self {
        Self { marks: result.clone(), lines: result.clone() }
    }

    fn of(&self, part: Part) -> Result<(), Arc<Error>> {
        match part {
            Part::Mark => self.marks.clone(),
            Part::Line => self.lines.clone(),
        }
    }
}

impl Drop for CommitWait {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.turn.hold(held);
        }
    }
}

impl Future for Durable {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now => Poll::Ready(Ok(())),
            Self::After(CommitWait { turn, part, .. }) => match &mut *turn.0.lock() {
                State::Done(commit) => Poll::Ready(commit.of(*part).map_err(Error::Commit)),
                State::Pending { waiting, .. } => {
                    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            },
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "Now",
            Self::After(_) => "After",
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn commit() -> Commit {
        Commit { marks: Ok(()), lines: Ok(()) }
    }

    /// The held value keeps a run open. A run that closes cuts connections, also that of an answer with bytes to come.
    #[test]
    fn a_call_holds_on_until_it_knows_of_the_commit() {
        let (turn, held) = (Arc::<Turn>::default(), Arc::new(()));
        let is_held = || Arc::strong_count(&held) > 1;
        let mut durable = turn.wait(Part::Line, Some(Box::new(Arc::clone(&held))));
        assert!((&mut durable).now_or_never().is_none());
        turn.end(commit());
        assert!(is_held(), "its answer's last bytes are not sent");
        assert!((&mut durable).now_or_never().is_some());
        drop(durable);
        assert!(!is_held());
    }

    #[test]
    fn a_call_without_a_client_is_held_by_the_turn() {
        let (turn, held) = (Arc::<Turn>::default(), Arc::new(()));
        drop(turn.wait(Part::Line, Some(Box::new(Arc::clone(&held)))));
        assert_eq!(Arc::strong_count(&held), 2, "its record is not written");
        turn.end(commit());
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

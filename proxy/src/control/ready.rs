//! Whether calls would pass: for whoever sends work here, or restarts what does not work. Apart from whether we live.

use http::{Response, StatusCode};
use platform_core::control::{NotReady, Readiness};

use super::Control;

/// Everything that stands against it.
pub(super) fn look(control: &Control) -> Readiness {
    let stopped = (!control.journal.is_open()).then_some(NotReady::JournalStopped);
    let draining = control.stop.is_requested().then_some(NotReady::Draining);
    let mut reasons: Vec<_> = stopped.into_iter().chain(draining).collect();
    reasons.extend(control.runs.not_open());
    reasons.into()
}

/// `answer`, with the status that says the same.
pub(super) fn with_status<B>(readiness: &Readiness, mut answer: Response<B>) -> Response<B> {
    if !readiness.ready {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}

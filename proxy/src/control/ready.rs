//! Decides whether calls would pass, for load balancers and supervisors. Liveness is decided elsewhere.

use http::{Response, StatusCode};
use platform_core::control::{NotReady, Readiness, UpstreamState};

use super::Control;

/// Returns whether calls would pass, with all reasons if they would not.
pub(super) fn readiness(control: &Control) -> Readiness {
    let state = control.journal.state();
    let journal = (!state.is_open()).then_some(NotReady::Journal { state });
    let upstream = match control.upstream.target().circuit().state() {
        UpstreamState::Up => None,
        UpstreamState::Down { since, reason, .. } | UpstreamState::Probing { since, reason } => {
            Some(NotReady::Upstream { since, why: reason })
        }
    };
    let draining = control.stop.is_requested().then_some(NotReady::Draining);
    let mut reasons: Vec<_> = [journal, upstream, draining].into_iter().flatten().collect();
    reasons.extend(control.runs.not_open());
    reasons.into()
}

/// Sets the status of `answer` to match `readiness`.
pub(super) fn with_status<B>(readiness: &Readiness, mut answer: Response<B>) -> Response<B> {
    if !readiness.ready {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}

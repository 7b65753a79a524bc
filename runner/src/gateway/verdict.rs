//! What the end of a turn means: an answer, or who is to blame that there is none. Pure.
//!
//! Decided by what frames are and by what the proxy saw of the run's calls, never by the words of an answer. Gateways before 2026.4
//! report what an upstream refused as a success, with its error as the answer; newer ones name most failures alike.

use gateway_bridge::{Ending, Failure as Frames, Generation};
use platform_core::{event::RunErrorCode as Code, record::Outcome, refusal::Refusal};
use platform_runtime::settings::Agent;

use crate::{lifecycle::Failure, sandbox::KilledBy};

/// How a call of the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) outcome: Outcome,
    pub(crate) status: u16,
    pub(crate) refusal: Option<Refusal>,
}

impl Call {
    /// Whether a model answered.
    const fn succeeded(self) -> bool {
        matches!(self.outcome, Outcome::Complete) && self.status < 400
    }
}

/// What is known of the end of a turn besides its frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Why we ended it, if we did.
    pub(crate) killed_by: Option<KilledBy>,
    /// What the gateway speaks.
    pub(crate) generation: Generation,
    /// The run's last call that has ended, if one was seen.
    pub(crate) last: Option<Call>,
}

/// The answer, or why there is none.
pub(crate) fn judge(agent: &Agent, ending: Ending, seen: Seen) -> Result<String, Failure> {
    match seen.killed_by {
        Some(KilledBy::Timeout) => {
            return Err(Failure::new(Code::Timeout, format!("stopped after {}", agent.runtime)));
        }
        Some(KilledBy::Cancel) => return Err(Failure::new(Code::Cancelled, "cancelled")),
        Some(KilledBy::Disk) | None => {}
    }
    let failed = seen.last.filter(|call| !call.succeeded());
    let is_believed = seen.generation > Generation::Three || failed.is_none();
    match ending {
        Ending::Completed { text, .. } if is_believed => Ok(text),
        Ending::Completed { .. } => Err(of_call(failed).unwrap_or_else(no_answer)),
        Ending::Failed(failure) => Err(of_frames(&failure, failed)),
    }
}

fn of_frames(failure: &Frames, failed: Option<Call>) -> Failure {
    match failure {
        Frames::Aborted => {
            Failure::new(Code::GatewayFailed, "somebody else has ended the turn at the gateway")
        }
        Frames::Lost => Failure::new(
            Code::SessionLost,
            "the gateway was lost in the middle of the turn, and does not know it any more",
        ),
        Frames::Refused { .. } | Frames::TooLarge { .. } => {
            Failure::new(Code::GatewayFailed, failure.to_string())
        }
        Frames::Deadline | Frames::TimedOut | Frames::Upstream { .. } | Frames::NoAnswer => of_call(failed)
            .unwrap_or_else(|| match failure {
                Frames::NoAnswer => no_answer(),
                Frames::Deadline | Frames::TimedOut => {
                    Failure::new(Code::Timeout, "the gateway gave the turn up for taking too long")
                }
                _ => Failure::new(Code::GatewayFailed, failure.to_string()),
            }),
    }
}

fn no_answer() -> Failure {
    Failure::new(Code::NoAnswer, "the turn ended without an answer of a model")
}

/// What the failure of the last call is called.
fn of_call(failed: Option<Call>) -> Option<Failure> {
    let call = failed?;
    let code = match (call.refusal, call.outcome) {
        (Some(Refusal::ContextOverflow), _) => Code::ContextOverflow,
        (Some(Refusal::LimitUsedUp | Refusal::ModelUnpriced), _) => Code::LimitUsedUp,
        (Some(Refusal::UpstreamBusy | Refusal::TooFast | Refusal::TooManyAtOnce | Refusal::LimitHeld), _) => {
            Code::ModelBusy
        }
        (
            Some(
                Refusal::UpstreamUnreachable
                | Refusal::UpstreamDown
                | Refusal::UpstreamFailed
                | Refusal::UpstreamTimeout
                | Refusal::Draining
                | Refusal::JournalUnavailable,
            ),
            _,
        ) => Code::ModelAway,
        (Some(_), _) => Code::ModelRefused,
        (None, Outcome::Complete) if call.status == 429 || call.status >= 500 => Code::ModelBusy,
        (None, Outcome::Complete) => Code::ModelRefused,
        // The agent's side left: that is how it ends what it gives up.
        (None, Outcome::ClientGone | Outcome::RunClosed) => return None,
        (None, _) => Code::ModelAway,
    };
    let why =
        call.refusal.map_or_else(|| format!("status {}", call.status), |refusal| refusal.code().to_owned());
    let message = match code {
        Code::ContextOverflow => "the conversation is too long for the model".to_owned(),
        Code::LimitUsedUp => "a limit of the run or its account is used up".to_owned(),
        Code::ModelBusy => format!("the model API is too busy, or failed ({why})"),
        Code::ModelAway => format!("the model API could not be reached, or broke off ({why})"),
        _ => format!("the model API refused the run's last call ({why})"),
    };
    Some(Failure::new(code, message))
}

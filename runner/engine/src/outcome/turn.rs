//! Decides what the end of a turn means, by its frames. Gateways before 2026.4 report what an upstream refused as a
//! success, with its error as the answer. Newer ones name most failures alike.

use gateway_bridge::{Ending, Generation, TurnFailure};
use platform_core::{event::RunErrorCode as Code, record::CallEnd};
use platform_runtime::settings::Agent;
use runner_docker::KilledBy;
use runner_model::lifecycle::Failure;

use super::call;

/// End of a turn, and what is known of it besides its frames.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// Ending by the turn's frames.
    pub(crate) ending: Ending,
    /// Reason why this process ended it, if it did.
    pub(crate) killed_by: Option<KilledBy>,
    /// Generation of the gateway's protocol.
    pub(crate) generation: Generation,
    /// End of the run's last call, if there was one.
    pub(crate) last_call: Option<CallEnd>,
}

/// Returns whether the end of the last call affects what `ending` means.
pub(crate) fn is_open(ending: &Ending, generation: Generation) -> bool {
    !matches!(ending, Ending::Completed { .. }) || generation == Generation::Three
}

/// Returns the answer, or the reason why there is none.
pub(crate) fn judge(agent: &Agent, end: TurnEnd) -> Result<String, Failure> {
    match end.killed_by {
        Some(KilledBy::Timeout) => {
            return Err(Failure::new(Code::Timeout, format!("stopped after {}", agent.run_timeout)));
        }
        Some(KilledBy::Cancel) => return Err(Failure::new(Code::Cancelled, "cancelled")),
        Some(KilledBy::Disk) | None => {}
    }
    let failed = end.last_call.filter(|call| call.is_failure());
    let is_believed = end.generation > Generation::Three || failed.is_none();
    match end.ending {
        Ending::Completed { text, .. } if is_believed => Ok(text),
        Ending::Completed { .. } => Err(call::failure(failed).unwrap_or_else(no_answer)),
        Ending::Failed(failure) => Err(of_frames(&failure, failed)),
    }
}

fn of_frames(failure: &TurnFailure, failed: Option<CallEnd>) -> Failure {
    match failure {
        TurnFailure::Aborted => {
            Failure::new(Code::GatewayFailed, "another client has ended the turn at the gateway")
        }
        TurnFailure::Lost => Failure::new(
            Code::SessionLost,
            "the gateway was lost in the middle of the turn, and does not know it any more",
        ),
        TurnFailure::Refused { .. } | TurnFailure::TooLarge { .. } => {
            Failure::new(Code::GatewayFailed, failure.to_string())
        }
        TurnFailure::Deadline
        | TurnFailure::TimedOut
        | TurnFailure::Upstream { .. }
        | TurnFailure::NoAnswer => call::failure(failed).unwrap_or_else(|| match failure {
            TurnFailure::NoAnswer => no_answer(),
            TurnFailure::Deadline | TurnFailure::TimedOut => {
                Failure::new(Code::Timeout, "the gateway gave the turn up for taking too long")
            }
            _ => Failure::new(Code::GatewayFailed, failure.to_string()),
        }),
    }
}

fn no_answer() -> Failure {
    Failure::new(Code::NoAnswer, "the turn ended without an answer of a model")
}

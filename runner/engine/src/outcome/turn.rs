//! Derives the result of a run from the last frames of its turn. Gateways before 2026.4 report a refusal by the
//! upstream as a success, with the error as the answer. Newer gateways report most failures by one name.

use gateway_bridge::{Ending, Generation, TurnFailure};
use platform_core::{event::RunErrorCode as Code, record::CallEnd};
use platform_runtime::settings::Agent;
use runner_docker::KilledBy;
use runner_model::lifecycle::Failure;

use super::call;

/// End of a turn, with the facts that its frames do not contain.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// Ending according to the turn's frames.
    pub(crate) ending: Ending,
    /// Reason for which this process stopped the turn, if it did.
    pub(crate) killed_by: Option<KilledBy>,
    /// Generation of the gateway's protocol.
    pub(crate) generation: Generation,
    /// End of the run's last call, if there was one.
    pub(crate) last_call: Option<CallEnd>,
}

/// Returns whether the end of the last call affects the result of a turn with this `ending`.
pub(crate) fn depends_on_last_call(ending: &Ending, generation: Generation) -> bool {
    !matches!(ending, Ending::Completed { .. }) || generation == Generation::Three
}

/// Returns the answer, or the reason why it is missing.
pub(crate) fn judge(agent: &Agent, end: TurnEnd) -> Result<String, Failure> {
    match end.killed_by {
        Some(KilledBy::Timeout) => {
            return Err(Failure::new(Code::Timeout, format!("stopped after {}", agent.run_timeout)));
        }
        Some(KilledBy::Cancel) => return Err(Failure::new(Code::Cancelled, "cancelled")),
        Some(KilledBy::Disk) | None => {}
    }
    let failed_call = end.last_call.filter(|call| call.is_failure());
    let is_believed = end.generation > Generation::Three || failed_call.is_none();
    match end.ending {
        Ending::Completed { text, .. } if is_believed => Ok(text),
        Ending::Completed { .. } => Err(call::failure(failed_call).unwrap_or_else(no_answer)),
        Ending::Failed(failure) => Err(turn_failure(&failure, failed_call)),
    }
}

fn turn_failure(failure: &TurnFailure, failed_call: Option<CallEnd>) -> Failure {
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
        | TurnFailure::NoAnswer => call::failure(failed_call).unwrap_or_else(|| match failure {
            TurnFailure::NoAnswer => no_answer(),
            TurnFailure::Deadline | TurnFailure::TimedOut => {
                Failure::new(Code::Timeout, "the gateway timed the turn out")
            }
            _ => Failure::new(Code::GatewayFailed, failure.to_string()),
        }),
    }
}

fn no_answer() -> Failure {
    Failure::new(Code::NoAnswer, "the turn ended without an answer of a model")
}

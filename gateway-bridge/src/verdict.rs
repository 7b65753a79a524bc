//! Decides how a turn ended, from the structure of frames. Their prose decides nothing.
//!
//! Older gateways report that the upstream refused as an answer like any other. Its text is the upstream's error, no
//! model has used a token, and no piece of an answer was sent. Every other failure of the upstream is in the journal.

use crate::{
    outcome::{Code, Ending, TurnFailure, Usage},
    wire::{
        answer::{Cut, TurnReport, TurnStatus},
        run::{ConversationEnd, Hint},
    },
};

/// Evidence of a turn besides its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// True if the gateway sent a piece of an answer.
    pub(crate) answered: bool,
    /// Cause of a failure, as the gateway reported it.
    pub(crate) hint: Hint,
    /// True if the gateway began the run again after it had reported its end.
    pub(crate) retried: bool,
}

/// Decides the ending by the answer to the turn's call.
pub(crate) fn of_report(report: TurnReport, evidence: &Evidence) -> Ending {
    let hint = &evidence.hint;
    match (report.status, report.cut) {
        (TurnStatus::Timeout | TurnStatus::Error, Some(Cut::Aborted)) => Ending::Failed(TurnFailure::Aborted),
        (TurnStatus::Timeout, _) => Ending::Failed(TurnFailure::TimedOut),
        (TurnStatus::Error, _) => Ending::Failed(failed(&report, hint)),
        (TurnStatus::Ok, _) if report.has_error => Ending::Failed(failed(&report, hint)),
        (TurnStatus::Ok, Some(_)) => Ending::Failed(TurnFailure::TimedOut),
        (TurnStatus::Ok, None) if report.text.is_empty() || !(evidence.answered || used(report.usage)) => {
            Ending::Failed(TurnFailure::NoAnswer)
        }
        (TurnStatus::Ok, None) => {
            Ending::Completed { text: report.text, usage: report.usage, model: report.model }
        }
    }
}

/// Returns whether the model used tokens. A gateway that counts no tokens at all looks the same as one without an
/// answer: there only a piece of the answer counts.
fn used(usage: Option<Usage>) -> bool {
    usage.is_some_and(|usage| usage.input + usage.output > 0)
}

fn failed(report: &TurnReport, hint: &Hint) -> TurnFailure {
    if report.cut == Some(Cut::TimedOut) || hint.timed_out {
        return TurnFailure::TimedOut;
    }
    if hint.empty {
        return TurnFailure::NoAnswer;
    }
    let by_answer = || {
        report
            .kind
            .clone()
            .or_else(|| report.error.as_ref().map(super::wire::gateway_error::GatewayError::exact))
    };
    let code = hint.code.clone().or_else(by_answer);
    TurnFailure::Upstream { code: code.unwrap_or_else(|| Code::new("error")) }
}

/// Decides the ending by what the conversation reports.
pub(crate) fn of_conversation(end: &ConversationEnd, evidence: &Evidence) -> Ending {
    match end {
        ConversationEnd::Final(Some(text)) if !text.is_empty() => {
            Ending::Completed { text: text.clone(), usage: None, model: None }
        }
        ConversationEnd::Final(_) if evidence.hint.timed_out => Ending::Failed(TurnFailure::TimedOut),
        ConversationEnd::Final(_) => Ending::Failed(TurnFailure::NoAnswer),
        ConversationEnd::Aborted => Ending::Failed(TurnFailure::Aborted),
        ConversationEnd::Failed(hint) => {
            let code = hint.code.clone().or_else(|| evidence.hint.code.clone());
            Ending::Failed(if hint.timed_out || evidence.hint.timed_out {
                TurnFailure::TimedOut
            } else if evidence.hint.empty {
                TurnFailure::NoAnswer
            } else {
                TurnFailure::Upstream { code: code.unwrap_or_else(|| Code::new("error")) }
            })
        }
    }
}

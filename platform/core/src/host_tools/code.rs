//! Defines the codes of calls without a result, and what each means for its caller. Pure.
//!
//! The control plane answers with these codes, and the data plane with its refusals. The programs of agents exit as a
//! code means.

use super::ToolOutcome;
use crate::refusal::Refusal;

/// Meaning of a code for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeMeaning {
    /// The tool ran and has no result, or the call was not one that it takes.
    Failed,
    /// The tool may have had its effect.
    Unknown,
    /// The call may not be made, and nothing ran.
    Denied,
    /// Nothing ran, and the call may be made later.
    Unavailable,
}

impl CodeMeaning {
    /// Returns the meaning of a code; `None` if neither control plane nor data plane has it.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        let own = ToolCode::ALL.into_iter().find(|known| known.word() == code).map(ToolCode::meaning);
        let refusal = || Refusal::ALL.into_iter().find(|known| known.code() == code).map(of_refusal);
        own.or_else(refusal)
    }

    /// Returns the outcome of a call with a code that means this.
    #[must_use]
    pub const fn outcome(self) -> ToolOutcome {
        match self {
            Self::Failed => ToolOutcome::Failed,
            Self::Unknown => ToolOutcome::Unknown,
            Self::Denied | Self::Unavailable => ToolOutcome::Denied,
        }
    }
}

/// Returns the meaning of a refusal of the data plane.
const fn of_refusal(refusal: Refusal) -> CodeMeaning {
    match refusal {
        Refusal::NotGranted
        | Refusal::ModelNotGranted
        | Refusal::TokenMissing
        | Refusal::TokenMalformed
        | Refusal::TokenExpired
        | Refusal::TokenInvalid
        | Refusal::TokenRevoked
        | Refusal::RunUnknown
        | Refusal::IdentityConflict
        | Refusal::Unattributed
        | Refusal::QuotaExhausted
        | Refusal::BalanceExhausted
        | Refusal::RunDeadlineExceeded
        | Refusal::Frozen
        | Refusal::RunClosed
        | Refusal::PolicyDenied
        | Refusal::RunMismatch => CodeMeaning::Denied,
        Refusal::RateLimited
        | Refusal::ConcurrencyLimited
        | Refusal::QuotaReserved
        | Refusal::BodyMemoryExhausted
        | Refusal::TooManyConnections
        | Refusal::Draining
        | Refusal::JournalUnavailable
        | Refusal::ToolsUnavailable => CodeMeaning::Unavailable,
        Refusal::ToolTimeout | Refusal::OutcomeUnknown | Refusal::ToolAnswerTooLarge => CodeMeaning::Unknown,
        _ => CodeMeaning::Failed,
    }
}

/// Declares the codes of the control plane: variant, word and meaning of each.
macro_rules! tool_codes {
    ($($(#[$doc:meta])* $code:ident = $word:literal, $meaning:ident;)+) => {
        /// Code of a call that has no result, as the control plane gives it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ToolCode {
            $($(#[$doc])* $code,)+
        }

        impl ToolCode {
            /// All codes, in the order in which they are declared.
            pub const ALL: [Self; [$(Self::$code),+].len()] = [$(Self::$code),+];

            /// Returns the code as a word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$code => $word,)+ }
            }

            /// Returns the meaning of the code.
            #[must_use]
            pub const fn meaning(self) -> CodeMeaning {
                match self { $(Self::$code => CodeMeaning::$meaning,)+ }
            }
        }
    };
}

tool_codes! {
    /// The run may not call the tool.
    PolicyDenied = "policy_denied", Denied;
    /// The body names another tool than the data plane has allowed.
    ToolMismatch = "tool_mismatch", Denied;
    /// The tool does not exist.
    ToolUnknown = "tool_unknown", Denied;
    /// The tool cannot be used with these settings, or its server is not there.
    ToolUnavailable = "tool_unavailable", Unavailable;
    /// A third-party server describes the tool otherwise than when it was accepted.
    ToolChanged = "tool_changed", Denied;
    /// The run does not exist.
    RunUnknown = "run_unknown", Denied;
    /// The run does not run.
    RunEnded = "run_ended", Denied;
    /// The body names another run than the one that calls.
    RunMismatch = "run_mismatch", Denied;
    /// There are too many calls at the same time.
    TooManyCalls = "too_many_calls", Unavailable;
    /// The same call is being executed.
    CallInProgress = "call_in_progress", Unavailable;
    /// The id belongs to another call.
    CallIdReused = "call_id_reused", Denied;
    /// A person has denied the call.
    ApprovalDenied = "approval_denied", Denied;
    /// No person has decided in time.
    ApprovalTimeout = "approval_timeout", Denied;
    /// The process in which the call waited for a person is gone.
    ApprovalAbandoned = "approval_abandoned", Denied;
    /// A person would have to approve the call, and cannot be shown its arguments.
    ArgumentsTooLong = "arguments_too_long", Denied;
    /// The store fails.
    StoreUnavailable = "store_unavailable", Unavailable;
    /// The installation has no connections.
    ConnectionNotConfigured = "connection_not_configured", Denied;
    /// The secret of the connection cannot be read.
    ConnectionUnopened = "connection_unopened", Denied;
    /// The account has no connection.
    ConnectionMissing = "connection_missing", Denied;
    /// A person has to authorise the connection anew.
    ConnectionNeedsAuthorisation = "connection_needs_authorisation", Denied;
    /// The token of the connection has expired.
    ConnectionExpired = "connection_expired", Denied;
    /// The provider gives no credential at the moment.
    ProviderUnavailable = "provider_unavailable", Unavailable;
    /// The provider refuses the credential.
    ProviderRefused = "provider_refused", Denied;
    /// The settings lack the provider of the connection.
    ProviderUnknown = "provider_unknown", Denied;
    /// The request is not a call.
    InvalidRequest = "invalid_request", Failed;
    /// The request is too large.
    RequestTooLarge = "request_too_large", Failed;
    /// The arguments break a rule of the tool's schema.
    InvalidArguments = "invalid_arguments", Failed;
    /// The tool did not end in time.
    TimedOut = "timed_out", Failed;
    /// The client left, or the run ended.
    Cancelled = "cancelled", Failed;
    /// The result of a tool that reads is too large.
    ResultTooLarge = "result_too_large", Failed;
    /// The call was done earlier, and its result is not kept any more.
    ResultRemoved = "result_removed", Failed;
    /// The object that the arguments name does not exist.
    NotFound = "not_found", Failed;
    /// The run has no repository in which the tool could act.
    NoRepository = "no_repository", Failed;
    /// The tool failed.
    ToolFailed = "tool_failed", Failed;
    /// The tool may have had its effect.
    OutcomeUnknown = "outcome_unknown", Unknown;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_word_and_one_meaning() {
        for (at, code) in ToolCode::ALL.into_iter().enumerate() {
            assert!(ToolCode::ALL[..at].iter().all(|other| other.word() != code.word()), "{code:?}");
            assert_eq!(CodeMeaning::of_code(code.word()), Some(code.meaning()));
            // A refusal of the data plane with the same word means the same.
            let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code.word());
            assert!(refusal.is_none_or(|refusal| of_refusal(refusal) == code.meaning()), "{code:?}");
        }
        assert_eq!(CodeMeaning::of_code("anything"), None);
    }

    /// Codes in which data plane, connections, servers and approvals say that nothing ran.
    #[test]
    fn nothing_ran_where_a_call_was_denied() {
        for code in
            ["tool_changed", "connection_missing", "provider_refused", "run_mismatch", "frozen", "run_closed"]
        {
            assert_eq!(CodeMeaning::of_code(code), Some(CodeMeaning::Denied), "{code}");
        }
        for code in ["too_many_calls", "provider_unavailable", "tools_unavailable", "rate_limited"] {
            assert_eq!(CodeMeaning::of_code(code), Some(CodeMeaning::Unavailable), "{code}");
        }
        for (meaning, outcome) in [
            (CodeMeaning::Denied, ToolOutcome::Denied),
            (CodeMeaning::Unavailable, ToolOutcome::Denied),
            (CodeMeaning::Failed, ToolOutcome::Failed),
            (CodeMeaning::Unknown, ToolOutcome::Unknown),
        ] {
            assert_eq!(meaning.outcome(), outcome);
        }
    }
}

//! Defines the reasons for a missing result, their codes, and the exit code of each.

use std::io;

use platform_core::host_tools::CodeMeaning;
use serde_json::json;

/// Reason for a missing result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line, its arguments or the environment cannot be used. Nothing was sent.
    #[error("{0}; `cogni-tool --help` has examples")]
    Usage(String),
    /// The gateway answered with a reason.
    #[error("{message}")]
    Answered {
        /// Meaning for the caller.
        meaning: CodeMeaning,
        /// The gateway's code.
        code: String,
        /// The gateway's message.
        message: String,
        /// The call, if it was one.
        call_id: Option<String>,
    },
    /// The gateway could not be reached. Nothing was sent.
    #[error("no connection to the gateway at {endpoint}: {source}")]
    Unreachable {
        /// Address that was tried.
        endpoint: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A request was sent, and no answer that can be read came back.
    #[error("{}", no_answer(reason, call_id.as_deref()))]
    NoAnswer {
        /// Fault of the connection or the answer.
        reason: String,
        /// The call, if it was one.
        call_id: Option<String>,
    },
    /// Standard output took no result.
    #[error("the result could not be printed: {0}")]
    Output(io::Error),
}

fn no_answer(reason: &str, call_id: Option<&str>) -> String {
    match call_id {
        None => reason.to_owned(),
        Some(id) => format!(
            "{reason}; the call may have had its effect. `cogni-tool exec --call-id {id}` with the same arguments says \
             how it ended; a tool that writes runs if it has not run yet"
        ),
    }
}

impl Error {
    /// Returns the exit code of the program.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Answered { meaning: CodeMeaning::Denied, .. } => 3,
            Self::Answered { meaning: CodeMeaning::Unavailable, .. } | Self::Unreachable { .. } => 4,
            // A list has no effect, so its absence says no more than that the gateway is not there.
            Self::NoAnswer { call_id: None, .. } => 4,
            Self::Answered { meaning: CodeMeaning::Failed | CodeMeaning::Unknown, .. }
            | Self::NoAnswer { .. }
            | Self::Output(_) => 1,
        }
    }

    fn code(&self) -> &str {
        match self {
            Self::Usage(_) => "usage",
            Self::Answered { code, .. } => code,
            Self::Unreachable { .. } | Self::NoAnswer { call_id: None, .. } => "gateway_unavailable",
            Self::NoAnswer { .. } => "outcome_unknown",
            Self::Output(_) => "output",
        }
    }

    /// Returns the error as a line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let mut line = json!({ "code": self.code(), "message": self.to_string() });
        if let Self::Answered { call_id: Some(id), .. } | Self::NoAnswer { call_id: Some(id), .. } = self {
            line["callId"] = json!(id);
        }
        line.to_string()
    }
}

//! error defines why a server has no answer.

use platform_core::host_tools::ToolCode;

/// Reason why a server has no answer. Texts of the server in it are bounded, and cannot control a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The server is not in the settings.
    #[error("there is no server {name} in the settings")]
    Unknown {
        /// Name that was asked for.
        name: String,
    },
    /// The container could not be started.
    #[error("it cannot be started: {problem}")]
    NotStarted {
        /// Failure of Docker or of the host.
        problem: String,
    },
    /// The server broke off a moment ago.
    #[error("it broke off, and is started again in {wait_s} s at the earliest; before: {reason}")]
    Restarting {
        /// Seconds until it may be started.
        wait_s: u64,
        /// Reason of its end.
        reason: Box<ServerError>,
    },
    /// All instances have calls in flight.
    #[error("all {count} instances of it are in use: try again later")]
    Busy {
        /// Number of instances.
        count: u32,
    },
    /// The session ended before the message was sent, or the server knows it no more.
    #[error("its session ended before the call: try again")]
    NotSent,
    /// The server's program ended.
    #[error("its program ended{}", said(.stderr))]
    Ended {
        /// Last words on standard error.
        stderr: String,
    },
    /// This process ended the session.
    #[error("its session was ended here")]
    Stopped,
    /// The server sent what is not of the protocol.
    #[error("it broke the protocol: {problem}")]
    Protocol {
        /// Description of what it sent.
        problem: String,
    },
    /// The server speaks another version.
    #[error("it speaks version `{found}` of the protocol, and none of {known}")]
    Version {
        /// Version of the server.
        found: String,
        /// Versions of this program.
        known: String,
    },
    /// The server sent too much that was not asked for.
    #[error("it sent more than {limit} that were not asked for")]
    Flood {
        /// Bound that was exceeded.
        limit: &'static str,
    },
    /// A message of the server was too long.
    #[error("a message of it has more than {limit} bytes")]
    TooLarge {
        /// Bound of a message.
        limit: usize,
    },
    /// The server did not answer in time.
    #[error("it did not answer within {seconds} s")]
    TimedOut {
        /// Time that it had.
        seconds: u64,
    },
    /// The server refused a request by the protocol.
    #[error("it refused: {message} ({code})")]
    Refused {
        /// Code of the protocol.
        code: i64,
        /// The server's words.
        message: String,
    },
    /// The server answered with the address of another one.
    #[error("it redirected the request (status {status}), and no redirect is followed")]
    Redirected {
        /// Status of the answer.
        status: u16,
    },
    /// The server answered with an error of HTTP.
    #[error("it answered with status {status}")]
    Status {
        /// Status of the answer.
        status: u16,
    },
    /// The host of the server has an address that is never called.
    #[error("its host has the address {address}, which is never called")]
    Address {
        /// The address.
        address: std::net::IpAddr,
    },
    /// The server cannot be reached.
    #[error("it cannot be reached: {problem}")]
    Unreachable {
        /// Failure of the connection.
        problem: String,
    },
    /// The server sent the account's credential back.
    #[error("its answer has the account's credential in it, and is not passed on")]
    CredentialEchoed,
    /// The account has no credential for the server.
    #[error("{detail}")]
    Credential {
        /// Code of the call.
        code: ToolCode,
        /// Description for an agent.
        message: String,
        /// Description for an operator, with its causes.
        detail: String,
    },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its last words: {stderr}") }
}

impl ServerError {
    /// Returns the error for an agent. It has no name, address or failure of this host: the operator's log has them.
    #[must_use]
    pub fn for_agent(&self) -> String {
        match self {
            Self::Restarting { wait_s, reason } => {
                format!("it is started again in {wait_s} s at the earliest; before: {}", reason.for_agent())
            }
            Self::NotStarted { .. } => "it cannot be started: the operator's log says why".to_owned(),
            Self::Unreachable { .. } | Self::Address { .. } => {
                "it cannot be reached: the operator's log says why".to_owned()
            }
            Self::Credential { message, .. } => message.clone(),
            error => error.to_string(),
        }
    }

    /// Returns whether a call that failed so may have had its effect.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        match self {
            Self::Unknown { .. }
            | Self::NotStarted { .. }
            | Self::Restarting { .. }
            | Self::Busy { .. }
            | Self::NotSent
            | Self::Version { .. }
            | Self::Refused { .. }
            | Self::Redirected { .. }
            | Self::Address { .. }
            | Self::Unreachable { .. }
            | Self::Credential { .. } => false,
            Self::Status { status } => *status >= 500,
            Self::Ended { .. }
            | Self::Stopped
            | Self::Protocol { .. }
            | Self::Flood { .. }
            | Self::TooLarge { .. }
            | Self::CredentialEchoed
            | Self::TimedOut { .. } => true,
        }
    }

    pub(crate) fn protocol(problem: impl Into<String>) -> Self {
        Self::Protocol { problem: problem.into() }
    }
}

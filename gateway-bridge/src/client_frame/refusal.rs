//! Says why a frame of a client is refused.

/// Reason why what a client sent is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FrameRefusal {
    /// Cause, on which clients act.
    pub cause: RefusalCause,
    /// The cause in words.
    pub message: String,
}

/// Cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    /// The text is malformed, or another kind of frame.
    Frame,
    /// A parameter is unknown, missing or of another kind.
    Params,
    /// Client and gateway speak no version of the protocol in common.
    Protocol,
    /// The message is empty.
    MessageEmpty,
    /// The message is too long.
    MessageTooLong,
    /// The message has a command that does not pass.
    Command,
}

impl RefusalCause {
    /// Returns the stable code.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Frame => "INVALID_FRAME",
            Self::Params => "INVALID_PARAMS",
            Self::Protocol => "PROTOCOL_MISMATCH",
            Self::MessageEmpty => "MESSAGE_EMPTY",
            Self::MessageTooLong => "MESSAGE_TOO_LONG",
            Self::Command => "COMMAND_REFUSED",
        }
    }

    /// Returns the refusal for this cause.
    pub(super) fn with(self, message: impl Into<String>) -> FrameRefusal {
        FrameRefusal { cause: self, message: message.into() }
    }
}

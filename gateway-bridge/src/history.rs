//! Describes the messages of a conversation, and the end of a turn that no client followed.

use crate::outcome::TurnFailure;

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Author of the message.
    pub role: MessageRole,
    /// Text of the message, without its other parts.
    pub text: String,
}

/// Kind of author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The person or program that talks to the agent.
    User,
    /// The agent.
    Assistant,
    /// Any other author: tools, the gateway.
    Other,
}

/// State of a turn, as a gateway reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The turn has not ended, or the gateway does not know it: gateways do not say which.
    Unknown,
    /// The turn has ended well, as far as the gateway reports.
    Completed {
        /// Answer, if the gateway gives it here; otherwise it is in the history.
        text: Option<String>,
    },
    /// The turn has failed.
    Failed(TurnFailure),
}

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
    /// The turn is not over, or the gateway does not know it: gateways do not say which.
    Unknown,
    /// The turn is over and went well, as far as the gateway says.
    Completed {
        /// Answer, if the gateway gives it here; otherwise it is in the history.
        text: Option<String>,
    },
    /// The turn is over and failed.
    Failed(TurnFailure),
}

//! What was said in a conversation, and what became of a turn that nobody followed.

use crate::outcome::Failure;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// Its text, without what is no text.
    pub text: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Whoever talks to the agent.
    User,
    /// The agent.
    Assistant,
    /// Anybody else: tools, the gateway.
    Other,
}

/// What became of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// It is not over, or the gateway does not know it: gateways do not say which.
    Unknown,
    /// It is over and went well, as far as the gateway says.
    Completed {
        /// The answer, if the gateway says it here; else it is in the history.
        text: Option<String>,
    },
    /// It is over and failed.
    Failed(Failure),
}

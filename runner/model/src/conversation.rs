//! Defines the conversation that an agent is given: the messages before its turn.

use serde::{Deserialize, Serialize};

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Role of the message's author.
    pub role: Role,
    /// Text of the message.
    pub content: String,
}

/// Author of a message in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The author of the instructions.
    System,
    /// A person.
    User,
    /// A model.
    Assistant,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Assistant];

    /// Returns the role's name, as programs and people read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

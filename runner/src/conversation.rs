//! What an agent is given: the messages before its turn.

use serde::{Deserialize, Serialize};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Who said it.
    pub(crate) role: Role,
    /// The text.
    pub(crate) content: String,
}

/// Who says something in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Whoever set the scene.
    System,
    /// A person.
    User,
    /// A model.
    Assistant,
}

impl Role {
    /// Its name, as programs and people read it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

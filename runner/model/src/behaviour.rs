//! Names the files that say how an agent behaves, as OpenClaw and other coding agents read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Texts of an agent's behaviour files.
pub type BehaviourFiles = BTreeMap<BehaviourFile, String>;

/// File in an agent's workspace that says how the agent behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BehaviourFile {
    /// Instructions.
    #[serde(rename = "AGENTS.md")]
    Agents,
    /// Personality.
    #[serde(rename = "SOUL.md")]
    Soul,
    /// Facts about its user.
    #[serde(rename = "USER.md")]
    User,
    /// Notes on tools.
    #[serde(rename = "TOOLS.md")]
    Tools,
    /// Name of the agent.
    #[serde(rename = "IDENTITY.md")]
    Identity,
    /// Memory of the agent.
    #[serde(rename = "MEMORY.md")]
    Memory,
}

impl BehaviourFile {
    /// All files.
    pub const ALL: [Self; 6] =
        [Self::Agents, Self::Soul, Self::User, Self::Tools, Self::Identity, Self::Memory];

    /// Returns the file's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agents => "AGENTS.md",
            Self::Soul => "SOUL.md",
            Self::User => "USER.md",
            Self::Tools => "TOOLS.md",
            Self::Identity => "IDENTITY.md",
            Self::Memory => "MEMORY.md",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_stored_under_its_name() {
        for file in BehaviourFile::ALL {
            assert_eq!(serde_json::to_value(file).unwrap(), file.name());
        }
    }
}

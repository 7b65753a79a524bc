//! Names the files that say how an agent behaves, as OpenClaw and other coding agents read them.

use std::collections::BTreeMap;

use platform_core::{
    invalid::InvalidValue,
    invisible::{self, Invisible},
};
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

    /// Returns the file with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }

    /// Returns the file with this name, if OpenClaw takes it on request. It makes what else it needs of the agent's name
    /// (measured with OpenClaw 2026.9.6).
    #[must_use]
    pub fn of_gateway_agent(name: &str) -> Option<Self> {
        let taken = [Self::Agents, Self::Soul, Self::User, Self::Memory];
        taken.into_iter().find(|file| file.name() == name)
    }

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

/// Largest text of a behaviour file that people write for an agent of a gateway.
pub const MAX_TEXT: usize = 256 << 10;

/// Checks that people can read a text as it is.
///
/// # Errors
/// If it is longer than 256 KiB, or has a character that is not seen, or that turns the direction of text.
pub fn check_text(text: &str) -> Result<(), InvalidValue> {
    if text.len() > MAX_TEXT {
        return Err(InvalidValue::from(format!("it has {} bytes, and may have {MAX_TEXT}", text.len())));
    }
    let is_hidden = |c: char| {
        matches!(invisible::kind_of(c), Some(Invisible::Direction | Invisible::Hidden))
            || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
    };
    match text.lines().zip(1..).find(|(line, _)| line.chars().any(is_hidden)) {
        Some((_, line)) => Err(InvalidValue::from(format!(
            "line {line} has a character that is not seen, or that turns the direction of text"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_a_person_reads() {
        let largest = "x".repeat(MAX_TEXT);
        for text in ["", "Be kind.\r\n\t- \u{1f600}\u{200d}\u{1f9b0}\n", largest.as_str()] {
            assert_eq!(check_text(text), Ok(()), "{text:.20}");
        }
        let larger = "x".repeat(MAX_TEXT + 1);
        for (text, place) in [
            ("a\nb \u{202e}c\n", "line 2"),
            ("a\u{e0041}", "line 1"),
            ("\u{1b}[2K", "line 1"),
            (larger.as_str(), "262145 bytes"),
        ] {
            let refused = check_text(text).unwrap_err().to_string();
            assert!(refused.contains(place), "{refused}");
        }
    }

    #[test]
    fn a_file_is_stored_under_its_name() {
        for file in BehaviourFile::ALL {
            assert_eq!(serde_json::to_value(file).unwrap(), file.name());
        }
    }
}

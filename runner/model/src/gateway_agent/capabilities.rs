//! Defines what an agent in a gateway may do.

use std::{collections::BTreeSet, fmt};

use platform_core::{invalid::InvalidValue, invisible};
use serde::{Deserialize, Serialize};

/// Most commands that an agent may run without asking.
pub const MAX_ALLOWED_COMMANDS: usize = 200;
/// Most bytes of such a command.
const MAX_COMMAND: usize = 4 << 10;

/// Way in which an agent runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandMode {
    /// The agent runs none.
    Off,
    /// A person decides about each, unless it is allowed already.
    Ask,
    /// The agent runs any.
    Auto,
}

/// State of a capability that is there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The agent lacks it.
    Off,
    /// The agent has it.
    On,
}

/// Command that an agent may run without asking: this text and no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedCommand(String);

/// Capabilities of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Commands.
    pub commands: CommandMode,
    /// Access to the web.
    pub web: Switch,
    /// Tools that read and write files.
    pub files: Switch,
    /// Commands that a person has allowed for good. They count while `commands` is [`CommandMode::Ask`].
    pub allowed_commands: BTreeSet<AllowedCommand>,
}

/// A new agent may do everything.
impl Default for Capabilities {
    fn default() -> Self {
        Self {
            commands: CommandMode::Auto,
            web: Switch::On,
            files: Switch::On,
            allowed_commands: BTreeSet::new(),
        }
    }
}

impl CommandMode {
    /// All modes, from the strictest.
    pub const ALL: [Self; 3] = [Self::Off, Self::Ask, Self::Auto];

    /// Returns the mode as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ask => "ask",
            Self::Auto => "auto",
        }
    }

    /// Returns the mode that `word` names.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.word() == word)
    }
}

impl Switch {
    /// Returns the state as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }

    /// Returns the state that `word` names.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Off, Self::On].into_iter().find(|state| state.word() == word)
    }
}

impl AllowedCommand {
    /// Checks a command.
    ///
    /// # Errors
    /// If it is empty, longer than 4 KiB, or has a character that a person would not see.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        if text.trim().is_empty() {
            return Err("a command is empty".into());
        }
        if text.len() > MAX_COMMAND {
            return Err("a command is longer than 4 KiB".into());
        }
        let is_hidden = |c: char| invisible::is_invisible(c) || (c.is_control() && c != '\n' && c != '\t');
        if text.chars().any(is_hidden) {
            return Err("a command has a character that a person would not see".into());
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AllowedCommand {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        Self::parse(&text)
    }
}

impl From<AllowedCommand> for String {
    fn from(command: AllowedCommand) -> Self {
        command.0
    }
}

impl fmt::Display for AllowedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_a_person_sees() {
        let longest = "x".repeat(MAX_COMMAND);
        for text in ["ls -la", "echo 'a b' \\\n  | wc", longest.as_str()] {
            assert_eq!(AllowedCommand::parse(text).unwrap().as_str(), text);
        }
        let longer = "x".repeat(MAX_COMMAND + 1);
        for text in ["", "  ", "rm \u{202e}fr-", "ls\u{200b}", "ls\u{1b}[2K", longer.as_str()] {
            assert!(AllowedCommand::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn words_name_what_they_are_of() {
        for mode in CommandMode::ALL {
            assert_eq!(CommandMode::of_word(mode.word()), Some(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.word());
        }
        for state in [Switch::Off, Switch::On] {
            assert_eq!(Switch::of_word(state.word()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        assert_eq!(CommandMode::of_word("Auto"), None);
    }
}

//! Checks the names of agents in gateways, and makes their ids.

use std::fmt;

use platform_core::{id::GatewayAgentId, invisible};
use serde::{Deserialize, Serialize};

/// Most characters of a name, and of an avatar's seed.
const MAX_CHARS: usize = 64;
/// Id that OpenClaw keeps for itself in some versions.
const RESERVED: &str = "default";

/// Name of an agent, as people read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

/// Text from which an agent's picture is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AvatarSeed(String);

/// Reason why a text cannot be the name of an agent, or the seed of its avatar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAgentName {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is too long.
    #[error("it is longer than {MAX_CHARS} characters")]
    Long,
    /// The text begins or ends with a space.
    #[error("it begins or ends with a space")]
    Padded,
    /// The text has a character that people do not see, such as one that turns the direction of text.
    #[error("it has a character that people do not see")]
    Hidden,
    /// The name gives no id.
    #[error("it has no letter a-z and no digit, of which the agent's id is made")]
    NoId,
    /// The name gives an id that OpenClaw keeps for itself.
    #[error("its id would be `{RESERVED}`, which OpenClaw keeps for itself")]
    Reserved,
}

impl AgentName {
    /// Checks a name.
    ///
    /// # Errors
    /// If people could not read it as it is, or it gives no id.
    pub fn parse(text: &str) -> Result<Self, InvalidAgentName> {
        let name = Self(checked(text)?);
        match slug(text) {
            id if id.is_empty() => Err(InvalidAgentName::NoId),
            id if id == RESERVED => Err(InvalidAgentName::Reserved),
            _ => Ok(name),
        }
    }

    /// Returns the id of an agent with this name: `Research Bot` is `research-bot`. Names that differ in case, or in
    /// characters other than letters a-z and digits, may have the same.
    ///
    /// # Panics
    /// Never: the name was checked.
    #[must_use]
    pub fn id(&self) -> GatewayAgentId {
        GatewayAgentId::parse(&slug(&self.0)).expect("a slug of a checked name is an id")
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AvatarSeed {
    /// Checks a seed.
    ///
    /// # Errors
    /// If people could not read it as it is.
    pub fn parse(text: &str) -> Result<Self, InvalidAgentName> {
        checked(text).map(Self)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn checked(text: &str) -> Result<String, InvalidAgentName> {
    if text.is_empty() {
        return Err(InvalidAgentName::Empty);
    }
    if text.chars().count() > MAX_CHARS {
        return Err(InvalidAgentName::Long);
    }
    if text.trim() != text {
        return Err(InvalidAgentName::Padded);
    }
    if text.chars().any(|c| c.is_control() || invisible::is_invisible(c)) {
        return Err(InvalidAgentName::Hidden);
    }
    Ok(text.to_owned())
}

/// Returns the letters a-z and digits of `text` in lower case, with one `-` for all that is between them.
fn slug(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Declares that a checked text is stored as it is.
macro_rules! stored_as_text {
    ($($name:ident),+) => { $(
        impl TryFrom<String> for $name {
            type Error = InvalidAgentName;

            fn try_from(text: String) -> Result<Self, InvalidAgentName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(checked: $name) -> Self {
                checked.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+ };
}

stored_as_text!(AgentName, AvatarSeed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_ids() {
        for (name, id) in [
            ("Research Bot", "research-bot"),
            ("RESEARCH   bot!", "research-bot"),
            ("-- a_b --", "a-b"),
            ("Caf\u{e9} 2", "caf-2"),
            ("7", "7"),
        ] {
            assert_eq!(AgentName::parse(name).unwrap().id().as_str(), id, "{name}");
        }
        let longest = "x".repeat(MAX_CHARS);
        assert_eq!(AgentName::parse(&longest).unwrap().id().as_str(), longest);
    }

    #[test]
    fn unreadable_names_are_refused() {
        let long = "x".repeat(MAX_CHARS + 1);
        for (name, fault) in [
            ("", InvalidAgentName::Empty),
            (long.as_str(), InvalidAgentName::Long),
            (" a", InvalidAgentName::Padded),
            ("a\u{202e}b", InvalidAgentName::Hidden),
            ("a\u{200d}b", InvalidAgentName::Hidden),
            ("a\nb", InvalidAgentName::Hidden),
            ("\u{7814}\u{7a76}", InvalidAgentName::NoId),
            ("!?", InvalidAgentName::NoId),
            ("Default", InvalidAgentName::Reserved),
        ] {
            assert_eq!(AgentName::parse(name), Err(fault), "{name}");
        }
        // A foreign letter separates, as every other character does.
        assert_eq!(AgentName::parse("d\u{e9}fault").unwrap().id().as_str(), "d-fault");
        assert_eq!(AvatarSeed::parse("\u{7814}").unwrap().as_str(), "\u{7814}");
    }
}

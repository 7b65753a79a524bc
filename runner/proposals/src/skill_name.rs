//! Defines the names of skills.

use std::fmt;

use platform_core::invalid::InvalidValue;
use serde::{Deserialize, Serialize};

/// Most characters of a skill's name.
const MAX_NAME: usize = 64;

/// Name of a skill: lower-case letters, digits and `-`, so that it is one plain name of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillName(String);

impl SkillName {
    /// Reads a name.
    ///
    /// # Errors
    /// If it is more than one plain name of a directory.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=MAX_NAME).contains(&text.len())
            && text.bytes().all(is_plain)
            && !text.starts_with('-')
            && !text.ends_with('-');
        is_name.then(|| Self(text.to_owned())).ok_or_else(|| {
            format!(
                "expected 1 to {MAX_NAME} lower-case letters, digits and `-`, which is neither first nor last"
            )
            .into()
        })
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SkillName {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        Self::parse(&text)
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skills_name_is_one_plain_directory() {
        for name in ["greet", "a", "release-notes-2"] {
            assert_eq!(SkillName::parse(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(MAX_NAME + 1);
        for name in ["", "..", "../x", "a/b", "a\\b", ".git", "A", "-a", "a-", "a b", "ä", "a\n", &long] {
            assert!(SkillName::parse(name).is_err(), "{name}");
        }
    }
}

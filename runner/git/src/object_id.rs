//! object_id defines names of git's objects: the hash of their content, in hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Digits of a hash of SHA-1. Repositories with another hash are not supported.
const LENGTH: usize = 40;
/// Argument by which git makes a repository with that hash.
pub(crate) const SHA1: &str = "--object-format=sha1";

/// Name of an object in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(String);

/// Error for a text that names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a git object: it has 40 digits of 0-9 and a-f, and is not all zero")]
pub struct InvalidObjectId;

impl ObjectId {
    /// Reads a name. Git writes zeros for an object that does not exist, so they are not names.
    ///
    /// # Errors
    /// If the text is anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidObjectId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_name =
            text.len() == LENGTH && text.bytes().all(is_digit) && text.bytes().any(|byte| byte != b'0');
        if is_name { Ok(Self(text.to_owned())) } else { Err(InvalidObjectId) }
    }

    /// Reads a name that git printed, with spaces around it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidObjectId> {
        let text = std::str::from_utf8(bytes).or(Err(InvalidObjectId))?;
        Self::parse(text.trim())
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ObjectId {
    type Error = InvalidObjectId;

    fn try_from(text: String) -> Result<Self, InvalidObjectId> {
        Self::parse(&text)
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_hashes_are_object_names() {
        assert!(ObjectId::parse(&"a1".repeat(20)).is_ok());
        for text in [
            "",
            &"a1".repeat(32),
            "HEAD",
            "main",
            &"a1".repeat(19),
            &"A1".repeat(20),
            &"00".repeat(20),
            &"-1".repeat(20),
        ] {
            assert_eq!(ObjectId::parse(text), Err(InvalidObjectId), "{text}");
        }
    }
}

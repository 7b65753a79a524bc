//! Converts text that an agent or an upstream chose into a form that the journal may hold.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Text from an untrusted party, in the form the journal may hold. Short, plain text (`[A-Za-z0-9_./:@-]{1,128}`) is
/// kept as it is. Any other text becomes its length and the beginning of its SHA-256, `len:hash` in angle brackets. A
/// prompt sent as a model name thus does not end up on disk, and no text can break a line of the journal, while equal
/// texts still look equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JournalText(Box<str>);

impl JournalText {
    /// Returns the form of `text` that the journal may hold.
    #[must_use]
    pub fn of(text: &str) -> Self {
        if is_plain(text) { Self(text.into()) } else { Self(digest(text)) }
    }

    /// Returns the text, or the digest that replaces it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JournalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'-');
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

fn digest(text: &str) -> Box<str> {
    let hash = Sha256::digest(text.as_bytes());
    let start: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("<{}:{start}>", text.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stand_as_they_are() {
        for name in ["gpt-4o-mini", "openai/gpt-4.1", "anthropic.claude:v2@eu"] {
            assert_eq!(JournalText::of(name).as_str(), name);
        }
    }

    #[test]
    fn everything_else_becomes_length_and_hash() {
        let smuggled = "please remember: the password is \"hunter2\"\n";
        let text = JournalText::of(smuggled);
        assert!(text.as_str().starts_with("<43:") && text.as_str().len() == "<43:>".len() + 16, "{text}");
        assert!(!text.as_str().contains("hunter2"));
        assert_eq!(JournalText::of("").as_str(), "<0:e3b0c44298fc1c14>");
        assert!(JournalText::of(&"a".repeat(129)).as_str().starts_with("<129:"));
    }
}

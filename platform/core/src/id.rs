//! Defines ids. Each is checked where it enters, and trusted from then on.
//!
//! A parsed id may be put into a path, a header, a label or a JSON string without further checks. The exception is
//! [`ExternalId`], which is only free of control characters. This crate does not generate ids: that needs a clock and
//! randomness.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// Error for a text that does not follow the rule of its id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {kind}: expected {rule}")]
pub struct InvalidId {
    /// Kind of id that was expected, with its article: "a run id".
    pub kind: &'static str,
    /// Text that was given, cut to 80 characters and escaped.
    pub value: String,
    /// Rule that the text breaks, in words the reader can act on.
    pub rule: &'static str,
}

impl InvalidId {
    pub(crate) fn new(kind: &'static str, rule: &'static str, value: &str) -> Self {
        let value = value.chars().take(80).flat_map(char::escape_default).collect();
        Self { kind, value, rule }
    }
}

/// Declares an id that is a checked, cheaply cloned text.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` and keeps it.
            ///
            /// # Errors
            /// [`InvalidId`], which names the rule.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                if Self::accepts(text) { Ok(Self(text.into())) } else { Err(InvalidId::new($kind, $rule, text)) }
            }

            /// Returns whether `text` follows the rule, without keeping it.
            #[must_use]
            pub fn accepts(text: &str) -> bool {
                let check: fn(&str) -> bool = $check;
                check(text)
            }

            /// Returns the id as it was parsed.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    };
}

pub(crate) use text_id;

text_id! {
    /// Id of a run of an agent: the unit that is granted, billed and closed. Safe in a path, a label, a host name.
    RunId, "a run id",
    "1 to 63 characters, lower-case letters, digits and `-`, not starting with `-`",
    |text| (1..=63).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_run_byte)
}

text_id! {
    /// Id of the account that pays. It is sent in a header, so it is visible ASCII without quotes, commas or blanks.
    AccountId, "an account id",
    "1 to 128 characters of A-Z a-z 0-9 _ . / : @ + = | ~ -",
    |text| (1..=128).contains(&text.len()) && text.bytes().all(is_account_byte)
}

text_id! {
    /// Id of an entry in the agents registry, `family:name`. The specification calls it a graph id.
    AgentId, "an agent id",
    "`family:name`, each of lower-case letters, digits and `-`, at most 64 characters in all",
    |text| text.len() <= 64 && text.split_once(':').is_some_and(|(family, name)| is_agent_word(family) && is_agent_word(name))
}

text_id! {
    /// Name of one installation of Sluicegate on a Docker that several may share. Part of container names.
    InstallationId, "an installation id",
    "1 to 32 letters, digits, `_`, `.` or `-`, not starting with a sign",
    is_plain_name
}

text_id! {
    /// Name of a model, as the upstream knows it.
    ModelName, "a model's name",
    "1 to 256 visible ASCII characters without commas, quotes and backslashes",
    |text| (1..=256).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'"' | b'\\'))
}

text_id! {
    /// Id of a long-running gateway that serves sessions of many runs. Safe in a path, a label, a host name.
    GatewayId, "a gateway's id",
    "1 to 32 lower-case letters, digits and `-`, not starting with `-`",
    |text| (1..=32).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_run_byte)
}

text_id! {
    /// Name of a mirrored repository. Safe in a path, a label, and names of containers and volumes.
    RepoName, "the name of a repository",
    "1 to 32 lower-case letters, digits and `-`, not starting with `-`",
    |text| (1..=32).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_run_byte)
}

text_id! {
    /// Name under which an agent offers a tool to a model, or calls a host tool.
    ToolName, "a tool's name",
    "1 to 128 letters, digits, `_`, `.` or `-`",
    |text| (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

text_id! {
    /// Name of a third-party server of host tools. It is the part of their names before `__`, and safe in a label and in the
    /// name of a container.
    ToolServerName, "the name of a tool server",
    "1 to 24 lower-case letters, digits and `-`, the first a letter",
    |text| (1..=24).contains(&text.len()) && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(is_run_byte)
}

text_id! {
    /// Id that an agent chose for a call of a host tool.
    ToolCallId, "the id of a tool call",
    "1 to 64 letters, digits, `_`, `.` or `-`",
    |text| (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

text_id! {
    /// Id of an agent in a gateway's own configuration. Gateways rewrite any name that breaks this rule.
    GatewayAgentId, "the id of a gateway's agent",
    "1 to 64 of a-z, 0-9, `_` and `-`, the first a letter or digit",
    |text| (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|byte| is_run_byte(byte) || byte == b'_')
}

text_id! {
    /// Name of a provider in a gateway's own configuration.
    GatewayProvider, "a provider of a gateway",
    "1 to 64 lower-case letters, digits and `-`, not starting with `-`",
    |text| (1..=64).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_run_byte)
}

text_id! {
    /// Id that the application around Sluicegate assigned and only wants to see again: user, session, trace.
    ExternalId, "an external id",
    "1 to 256 bytes without control characters",
    |text| (1..=256).contains(&text.len()) && !text.chars().any(char::is_control)
}

text_id! {
    /// Note of an operator on a top-up.
    TopUpNote, "a note",
    "1 to 256 bytes without control characters",
    |text| (1..=256).contains(&text.len()) && !text.chars().any(char::is_control)
}

text_id! {
    /// Id of a principal: a person or a program that uses the HTTP API. It is the user of its runs.
    PrincipalId, "a principal's id",
    "1 to 64 letters, digits, `_`, `.`, `@` or `-`, the first a letter or digit",
    |text| (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'@' | b'-'))
}

text_id! {
    /// Id of a proposal to change the repository of the configuration.
    ProposalId, "a proposal's id",
    "`ap-` and 16 lower-case hexadecimal digits",
    |text| text.strip_prefix("ap-").is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

impl ProposalId {
    /// Returns the id of 64 random bits.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        Self(format!("ap-{bits:016x}").into())
    }
}

text_id! {
    /// Name of a run's socket directory. Random, so that knowing one reveals nothing about another.
    SocketDirName, "a socket directory name",
    "32 lower-case hexadecimal digits",
    |text| text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

text_id! {
    /// Id of a workspace. Differs from the run's id: a workspace may outlive its run, and knowing one id reveals
    /// nothing about another.
    WorkspaceId, "a workspace id",
    "32 lower-case hexadecimal digits",
    |text| SocketDirName::accepts(text)
}

text_id! {
    /// Id of a secret that signs run tokens. Identifies the secret where the secret itself must not be shown.
    SecretId, "an id of a secret",
    "1 to 32 letters, digits, `_`, `.` or `-`, not starting with a sign",
    is_plain_name
}

/// Lets a map with run ids as keys be queried with a text that was only checked: id and text compare and hash alike.
impl Borrow<str> for RunId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Lets a set of models be queried with a text that was not checked.
impl Borrow<str> for ModelName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

fn is_plain_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

const fn is_run_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

const fn is_account_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'+' | b'=' | b'|' | b'~' | b'-')
}

fn is_agent_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_run_byte)
}

impl SocketDirName {
    /// Returns the name that spells `bits`, which must come from the system's random source.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into())
    }
}

impl WorkspaceId {
    /// Returns the id that spells `bits`, which must come from the system's random source.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}").into())
    }
}

/// Id of a model call. Sluicegate assigns it before it sends anything, so that a call can be joined to the upstream's
/// records even when no answer came. Written as a UUID, version 7 (RFC 9562, 5.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId(u128);

impl CallId {
    /// Creates the id of a call that began `unix_ms` milliseconds after the epoch; 74 bits of `unique` are kept.
    #[must_use]
    pub const fn new(unix_ms: u64, unique: u128) -> Self {
        const VERSION_7: u128 = 0x7 << 76;
        const VARIANT: u128 = 0b10 << 62;
        let time = (unix_ms as u128 & 0xffff_ffff_ffff) << 80;
        let high = (unique >> 62 & 0xfff) << 64;
        let low = unique & ((1 << 62) - 1);
        Self(time | VERSION_7 | high | VARIANT | low)
    }

    /// Returns the id as 36 ASCII characters, without allocating.
    #[must_use]
    pub fn to_ascii(self) -> [u8; 36] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (index, byte) in self.0.to_be_bytes().into_iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 0xf)];
            at += 2;
        }
        text
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ascii().into_iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(byte)))
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallId({self})")
    }
}

impl FromStr for CallId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits: String = text.split('-').collect();
        u128::from_str_radix(&digits, 16)
            .ok()
            .map(Self)
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| InvalidId::new("a call id", "a lower-case UUID", text))
    }
}

impl TryFrom<String> for CallId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> String {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_follow_the_published_pattern() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "run-1", "a-", longest.as_str()] {
            assert_eq!(RunId::parse(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-a", "A", "a_b", "a/b", "..", "a.b", "a|b", "ä", "a\n", too_long.as_str()] {
            assert!(RunId::parse(bad).is_err(), "{bad:?} was taken for a run id");
        }
    }

    #[test]
    fn runs_are_found_by_their_checked_text() {
        let runs = std::collections::HashMap::from([(RunId::parse("r1").unwrap(), 1)]);
        assert_eq!((runs.get("r1"), runs.get("r2")), (Some(&1), None));
    }

    #[test]
    fn account_ids_are_safe_in_headers_and_strings() {
        assert!(AccountId::parse("auth0|user+tag@example.com").is_ok());
        for bad in ["", "a b", "a\"b", "a,b", "a;b", "a\\b", "a\r\nb", "é"] {
            assert!(AccountId::parse(bad).is_err(), "{bad:?} was taken for an account id");
        }
    }

    #[test]
    fn agent_ids_have_two_words() {
        assert!(AgentId::parse("sandbox:agent").is_ok());
        for bad in ["agent", ":agent", "sandbox:", "sandbox:a:b", "Sandbox:agent", "sandbox:-x"] {
            assert!(AgentId::parse(bad).is_err(), "{bad:?} was taken for an agent id");
        }
    }

    #[test]
    fn an_invalid_id_is_escaped_in_its_error() {
        let error = RunId::parse("bad\x1b[31m").unwrap_err().to_string();
        assert!(error.contains("is not a run id: expected 1 to 63 characters"), "{error}");
        assert!(!error.contains('\x1b'), "{error}");
    }

    #[test]
    fn call_ids_are_uuids_that_sort_by_time() {
        let id = CallId::new(0x0123_4567_89ab, u128::MAX);
        assert_eq!(id.to_string(), "01234567-89ab-7fff-bfff-ffffffffffff");
        assert_eq!(id.to_string().parse::<CallId>().unwrap(), id);
        assert!(CallId::new(1, 0) > CallId::new(0, u128::MAX));
        for bad in
            ["", "01234567", "01234567-89AB-7fff-bfff-ffffffffffff", "0123456789ab7fffbfffffffffffffff"]
        {
            assert!(bad.parse::<CallId>().is_err(), "{bad:?} was taken for a call id");
        }
    }

    #[test]
    fn ids_are_checked_when_they_are_read_from_json() {
        assert!(serde_json::from_str::<RunId>("\"ok\"").is_ok());
        assert!(serde_json::from_str::<RunId>("\"NOT OK\"").is_err());
    }
}

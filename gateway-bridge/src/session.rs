//! Builds the names of sessions on a gateway.
//!
//! Newer gateways write keys in lower case, and `:` separates the parts of a key. So this client spells its parts in
//! lower-case letters and digits. Two accounts or two state keys that differ in any byte are two sessions.

use std::fmt;

use platform_core::id::{AccountId, GatewayAgentId, InvalidId};
use sha2::{Digest, Sha256};

/// Longest spelling of one part; a longer one is replaced by its hash.
const MAX_PART_LENGTH: usize = 120;

/// Name of one conversation: `agent:<agent>:acct<account>:k<state key>`.
///
/// The fixed letters before account and key keep either from being a word that gateways give a meaning, such as
/// `subagent`, `cron` or `main`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    text: String,
    agent_end: usize,
}

/// Error for a session that cannot be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSession {
    /// The agent's id is one that gateways would change into another agent's.
    #[error(transparent)]
    Agent(#[from] InvalidId),
    /// The state key is empty; a conversation needs a name.
    #[error("the state key is empty")]
    EmptyKey,
}

impl SessionKey {
    /// Returns the session of `account` and its `key` with `agent`, which is an id in the gateway's own configuration.
    ///
    /// Two pairs of account and key that differ in any byte have two names. For long ones this is as certain as that
    /// two texts have two SHA-256 sums.
    ///
    /// # Errors
    /// [`InvalidSession`].
    pub fn new(agent: &str, account: &AccountId, key: &str) -> Result<Self, InvalidSession> {
        GatewayAgentId::parse(agent)?;
        if key.is_empty() {
            return Err(InvalidSession::EmptyKey);
        }
        let mut text = format!("agent:{agent}:acct");
        spell(account.as_str(), &mut text);
        text.push_str(":k");
        spell(key, &mut text);
        Ok(Self { text, agent_end: "agent:".len() + agent.len() })
    }

    /// Returns the whole name, as it is on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the agent's id.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.text["agent:".len()..self.agent_end]
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({})", self.text)
    }
}

/// Appends the spelling of `text`. Letters but `x`, and digits, stand for themselves; every other byte is `x` and two
/// hexadecimal digits. No spelling begins with `xx`: that marks a hash.
fn spell(text: &str, into: &mut String) {
    let plain = |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_lowercase() && byte != b'x');
    let length: usize = text.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum();
    if length > MAX_PART_LENGTH {
        into.push_str("xx");
        return Sha256::digest(text.as_bytes()).iter().for_each(|byte| push_hex(into, *byte));
    }
    for byte in text.bytes() {
        if plain(byte) {
            into.push(char::from(byte));
        } else {
            into.push('x');
            push_hex(into, byte);
        }
    }
}

fn push_hex(into: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        into.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(account: &str, key: &str) -> SessionKey {
        SessionKey::new("main", &AccountId::parse(account).unwrap(), key).unwrap()
    }

    #[test]
    fn a_simple_name_stays_readable() {
        assert_eq!(key("acct-1", "Team:42").as_str(), "agent:main:acctacctx2d1:kx54eamx3a42");
        assert_eq!(key("a", "b").agent(), "main");
    }

    #[test]
    fn pairs_that_gateways_would_mix_are_apart() {
        let long = "l".repeat(MAX_PART_LENGTH + 1);
        let longer = "l".repeat(MAX_PART_LENGTH + 2);
        let pairs = [
            ("acct", "key"),
            ("Acct", "key"),
            ("acct", "Key"),
            ("ACCT", "KEY"),
            ("acct:k", "ey"),
            ("acct", "k:ey"),
            ("acct:key", "key"),
            ("acct", "key:key"),
            ("acct", "straße"),
            ("acct", "STRASSE"),
            ("acct", "strasse"),
            ("acct", "é"),
            ("acct", "e\u{301}"),
            ("acct", "İ"),
            ("acct", "i"),
            ("acct", "ı"),
            ("acct", "K"),
            ("acct", "k"),
            ("acct", "\u{212a}"),
            ("acct", "x"),
            ("acct", "x78"),
            ("acct", "xx78"),
            ("acct", "key "),
            ("acct", "key\n"),
            ("acct", &long),
            ("acct", &longer),
        ];
        let mut seen = BTreeMap::new();
        for (account, name) in pairs {
            let session = key(account, name);
            let lower = session.as_str().to_lowercase();
            assert_eq!(lower, session.as_str(), "a gateway that lower-cases keys changes nothing");
            assert_eq!(seen.insert(lower, (account, name)), None, "{account} {name}");
        }
    }

    #[test]
    fn no_account_or_key_is_a_reserved_word() {
        for word in ["subagent", "cron", "acp", "main", "explicit", "heartbeat", "thread"] {
            let session = key(word, word);
            assert!(!session.as_str().split(':').skip(2).any(|part| part == word), "{session}");
        }
    }

    #[test]
    fn an_agent_is_one_a_gateway_keeps_as_it_is() {
        let account = AccountId::parse("a").unwrap();
        for bad in ["", "Main", "ma:in", "-main", "_main", "mäin", &"a".repeat(65)] {
            assert!(SessionKey::new(bad, &account, "k").is_err(), "{bad}");
        }
        assert_eq!(SessionKey::new("main", &account, ""), Err(InvalidSession::EmptyKey));
    }

    proptest! {
        #[test]
        fn two_texts_have_two_names(
            one in ("[A-Za-z0-9:@._-]{1,12}", "\\PC{1,12}"),
            other in ("[A-Za-z0-9:@._-]{1,12}", "\\PC{1,12}"),
        ) {
            let same = one == other;
            prop_assert_eq!(key(&one.0, &one.1) == key(&other.0, &other.1), same);
        }

        #[test]
        fn a_name_is_lower_case_and_bounded(
            account in "[A-Za-z0-9:@|~+=/._-]{1,128}",
            state in "(?s).{1,400}",
        ) {
            let session = key(&account, &state);
            let rest = session.as_str().strip_prefix("agent:main:").unwrap();
            let (account, state) = rest.split_once(':').unwrap();
            for part in [account, state] {
                prop_assert!(part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
                prop_assert!(part.len() <= MAX_PART_LENGTH + 4);
            }
        }
    }
}

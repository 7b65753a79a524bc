//! Defines connections: credentials of accounts at providers, which host tools use. Holds no credential.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::id::{InvalidId, text_id};

/// Scope that covers all others.
const EVERYTHING: &str = "*";

text_id! {
    /// Id of a connection.
    ConnectionId, "a connection's id",
    "`cn-` and 16 lower-case hexadecimal digits",
    |text| text.strip_prefix("cn-").is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

text_id! {
    /// Name of a provider, at which a connection has a credential: `github`, or a name of the operator's.
    ConnectionProvider, "a provider",
    "1 to 64 lower-case letters, digits, `_` and `-`, the first a letter or digit",
    |text| (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        })
}

text_id! {
    /// Scope of a connection at its provider, such as a repository. With `*` at its end it covers all that begin so.
    ConnectionScope, "a scope",
    "1 to 200 visible ASCII characters, with `*` only at the end",
    |text| (1..=200).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.find('*').is_none_or(|at| at + 1 == text.len())
}

/// Kind of a connection, with all about it that is not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConnectionKind {
    /// A token, which is used as it is.
    Token,
    /// Installation of a GitHub App; the App's private key gets tokens for an hour.
    #[serde(rename = "github_app")]
    GitHubApp {
        /// Number of the App.
        app_id: u64,
        /// Number of its installation.
        installation_id: u64,
    },
    /// OAuth 2 refresh token, which gets access tokens.
    #[serde(rename = "oauth")]
    OAuth,
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionState {
    /// The connection may be used.
    Active,
    /// The provider takes its refresh token no longer: a person has to authorise it again.
    NeedsAuthorisation,
}

impl ConnectionId {
    /// Returns the id that spells `bits`, which must come from the system's random source.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        Self(format!("cn-{bits:016x}").into())
    }
}

impl ConnectionScope {
    /// Returns the scope that covers all others.
    #[must_use]
    pub fn everything() -> Self {
        Self(EVERYTHING.into())
    }

    /// Returns whether a connection with this scope may be used for `wanted`. The case of letters does not matter: it
    /// does not in a name at GitHub, and another credential would act in place of the account's.
    #[must_use]
    pub fn covers(&self, wanted: &Self) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => {
                wanted.0.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
            }
            None => self.0.eq_ignore_ascii_case(&wanted.0),
        }
    }
}

impl ConnectionKind {
    /// Returns the name of the kind.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::GitHubApp { .. } => "github_app",
            Self::OAuth => "oauth",
        }
    }
}

impl ConnectionState {
    /// Returns the name of the state.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::NeedsAuthorisation => "needs_authorisation",
        }
    }

    /// Returns the state with this name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Active, Self::NeedsAuthorisation].into_iter().find(|state| state.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> ConnectionScope {
        ConnectionScope::parse(text).unwrap()
    }

    #[test]
    fn a_scope_covers_itself_or_a_beginning() {
        for (held, wanted, covers) in [
            ("acme/app", "acme/app", true),
            ("acme/app", "acme/app2", false),
            ("Acme/App", "acme/app", true),
            ("acme/*", "Acme/app", true),
            ("acme/*", "acme/app", true),
            ("acme/*", "acme", false),
            ("acme/*", "other/acme/app", false),
            ("*", "anything", true),
            ("*", "*", true),
            ("acme/app", "*", false),
        ] {
            assert_eq!(scope(held).covers(&scope(wanted)), covers, "{held} {wanted}");
        }
    }

    #[test]
    fn odd_names_are_refused() {
        for text in ["", "a b", "a*b", "**", "a\n", "ä", &"a".repeat(201)] {
            assert!(ConnectionScope::parse(text).is_err(), "{text}");
        }
        for text in ["", "GitHub", "-a", "a/b", "a\n", &"a".repeat(65)] {
            assert!(ConnectionProvider::parse(text).is_err(), "{text}");
        }
        for text in ["", "cn-", "cn-0123456789abcdeF", "cn-0123456789abcdef0", "0123456789abcdef"] {
            assert!(ConnectionId::parse(text).is_err(), "{text}");
        }
        assert!(ConnectionId::parse(ConnectionId::from_random(7).as_str()).is_ok(), "the control");
    }

    #[test]
    fn a_kind_keeps_its_form() {
        for (kind, text) in [
            (ConnectionKind::Token, r#"{"kind":"token"}"#),
            (
                ConnectionKind::GitHubApp { app_id: 1, installation_id: 2 },
                r#"{"kind":"github_app","app_id":1,"installation_id":2}"#,
            ),
            (ConnectionKind::OAuth, r#"{"kind":"oauth"}"#),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), text);
            assert_eq!(serde_json::from_str::<ConnectionKind>(text).unwrap(), kind);
        }
    }
}

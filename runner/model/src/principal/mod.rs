//! Defines the roles of principals, their tokens and their browser sessions.
//!
//! A principal is a person or a program that uses the HTTP API for one account. The store keeps principals; the API
//! decides by their role.

mod browser_session;
mod sign_in_code;
mod token;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

pub use self::{
    browser_session::{BrowserSessionHash, BrowserSessionId},
    sign_in_code::{SignInCode, SignInCodeHash},
    token::{ApiToken, KeyId, TokenHash},
};

/// Role of a principal. A greater role may do all that a smaller one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalRole {
    /// Reads the runs of its account.
    Viewer,
    /// Orders and cancels runs of its account.
    Member,
    /// Sees the runs of all accounts and the causes of failures.
    Operator,
    /// Gets no further right yet.
    Admin,
}

impl PrincipalRole {
    /// All roles, the smallest first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Operator, Self::Admin];

    /// Returns the name of the role.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for PrincipalRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role; there are: {list}", list = PrincipalRole::ALL.map(PrincipalRole::name).join(", "))]
pub struct UnknownRole(String);

impl FromStr for PrincipalRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let named = Self::ALL.into_iter().find(|role| role.name() == text);
        named.ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

//! branch defines the names of branches: one to begin from, and one below `sandbox/` to end on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most bytes of a branch to begin from.
const MAX_BASE: usize = 200;
/// Most bytes of a key.
const MAX_KEY: usize = 100;
/// Beginning of the name of every branch that a relay writes.
const SANDBOX: &str = "sandbox/";
/// Names, in lower case, that people and services give to branches of their own.
const RESERVED: [&str; 7] = ["head", "main", "master", "trunk", "default", "staging", "production"];
/// Beginnings of such names.
const RESERVED_BEGINNINGS: [&str; 1] = ["release"];
/// Ending that git uses for its locks.
const LOCK: &str = ".lock";

/// Reason why a text is not the name of a branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBranch {
    /// The name is empty or too long.
    #[error("a branch's name has 1 to {max} characters")]
    Length {
        /// Most bytes.
        max: usize,
    },
    /// Git takes no such name, or could take it for something else.
    #[error("git takes no branch called `{name}`")]
    Form {
        /// The name, made safe to print.
        name: String,
    },
    /// The name is that of a branch of people.
    #[error("`{name}` is reserved: agents write to branches of their own")]
    Reserved {
        /// The name.
        name: String,
    },
    /// The name is not below `sandbox/`.
    #[error("`{name}` is not below sandbox/")]
    Outside {
        /// The name, made safe to print.
        name: String,
    },
}

impl InvalidBranch {
    fn form(name: &str) -> Self {
        Self::Form { name: platform_runtime::terminal::safe(name).into_owned() }
    }
}

/// Branch of a remote from which an agent begins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseBranch(String);

impl BaseBranch {
    /// Reads a name, without `refs/heads/`.
    ///
    /// # Errors
    /// If git takes no such name for a branch.
    pub fn parse(name: &str) -> Result<Self, InvalidBranch> {
        if name.is_empty() || name.len() > MAX_BASE {
            return Err(InvalidBranch::Length { max: MAX_BASE });
        }
        let is_shown = |c: char| c.is_ascii_graphic() || c.is_alphanumeric();
        if name == "HEAD" || name.starts_with("refs/") || !name.chars().all(is_shown) || !is_branch(name) {
            return Err(InvalidBranch::form(name));
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name with all that stands before it.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

/// Name that tells the branches of agents apart: that of a work item, a thread or a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchKey(String);

impl BranchKey {
    /// Reads a key: letters, digits, `.`, `_` and `-`, and no slash, so that no key stands in the way of another.
    ///
    /// # Errors
    /// If git takes no such name, or if people have a branch of that name.
    pub fn parse(key: &str) -> Result<Self, InvalidBranch> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(InvalidBranch::Length { max: MAX_KEY });
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !key.chars().all(is_plain) || !is_branch(key) {
            return Err(InvalidBranch::form(key));
        }
        let folded = key.to_ascii_lowercase();
        let is_reserved = RESERVED.contains(&folded.as_str())
            || RESERVED_BEGINNINGS.iter().any(|beginning| folded.starts_with(beginning));
        if is_reserved {
            Err(InvalidBranch::Reserved { name: key.to_owned() })
        } else {
            Ok(Self(key.to_owned()))
        }
    }
}

/// Branch that a relay may write: `sandbox/` and a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxBranch(String);

impl SandboxBranch {
    /// Returns the branch of `key` in a repository where branch `base` belongs to people.
    ///
    /// # Errors
    /// If the key is called like `base`.
    pub fn of(key: &BranchKey, base: &BaseBranch) -> Result<Self, InvalidBranch> {
        let branch = format!("{SANDBOX}{}", key.0);
        if key.0.eq_ignore_ascii_case(&base.0) || branch.eq_ignore_ascii_case(&base.0) {
            return Err(InvalidBranch::Reserved { name: key.0.clone() });
        }
        Ok(Self(branch))
    }

    /// Reads a name with its `sandbox/`.
    ///
    /// # Errors
    /// If it begins with something else, or its key is malformed.
    pub fn parse(name: &str) -> Result<Self, InvalidBranch> {
        let outside = || InvalidBranch::Outside { name: platform_runtime::terminal::safe(name).into_owned() };
        let key = BranchKey::parse(name.strip_prefix(SANDBOX).ok_or_else(outside)?)?;
        Ok(Self(format!("{SANDBOX}{}", key.0)))
    }

    /// Returns the name with all that stands before it.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

/// Returns whether git takes `name` for a branch: the rules of `git check-ref-format --branch`.
fn is_branch(name: &str) -> bool {
    let is_odd_part = |part: &str| {
        part.is_empty() || part.starts_with('.') || part.ends_with(LOCK) || part.starts_with('-')
    };
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    !name.split('/').any(is_odd_part)
        && !name.chars().any(is_odd)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name != "@"
}

macro_rules! text_form {
    ($($name:ident),+) => {$(
        impl $name {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidBranch;

            fn try_from(text: String) -> Result<Self, InvalidBranch> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )+};
}

text_form!(BaseBranch, BranchKey, SandboxBranch);

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn plain_keys_are_accepted() {
        for key in ["run-1", "ISSUE_42", "a", "2026.11", "mainly", "headless", "stagings"] {
            let branch =
                SandboxBranch::of(&BranchKey::parse(key).unwrap(), &BaseBranch::parse("main").unwrap());
            assert_eq!(branch.unwrap().reference(), format!("refs/heads/sandbox/{key}"));
        }
    }

    #[test]
    fn other_keys_are_refused() {
        let long = "a".repeat(MAX_KEY + 1);
        let reserved =
            "HEAD head Main master trunk default staging Staging production release release-1 RELEASE.2";
        let odd =
            "a/b ../main a..b .a a. a.lock -a @ a@{1} a~1 a^ a:b a? a* a[ a\\b \u{202e}a ä refs/heads/x";
        let spaced = ["", &long, "a b", "a\nb", "a\u{0}"];
        for key in reserved.split(' ').chain(odd.split(' ')).chain(spaced) {
            assert!(BranchKey::parse(key).is_err(), "{key}");
        }
        let key = BranchKey::parse("develop").unwrap();
        assert!(SandboxBranch::of(&key, &BaseBranch::parse("Develop").unwrap()).is_err());
        assert!(SandboxBranch::of(&key, &BaseBranch::parse("sandbox/develop").unwrap()).is_err());
        for name in ["main", "sandbox", "sandbox/", "sandbox/HEAD", "sandbox/a/b", "other/a", "Sandbox/a"] {
            assert!(SandboxBranch::parse(name).is_err(), "{name}");
        }
        assert!(SandboxBranch::parse("sandbox/run-1").is_ok());
    }

    #[test]
    fn base_branches_are_those_that_git_takes() {
        let plain = "main release/1.0 a/b/c ünï a@b a.b a{b HEAD refs/heads/x -a a..b .a a/.b a.lock a.lock/b a/ /a a//b";
        let odd = "a~ a^ a: a? a* a[ a\\ @ a@{b a. a\u{7f} a\u{1}";
        for name in plain.split(' ').chain(odd.split(' ')).chain(["a b"]) {
            let mut git = Command::new("git");
            let git = git.args(["check-ref-format", "--branch", name]).output().unwrap().status.success();
            let own = BaseBranch::parse(name).is_ok();
            // Names that stand for others or look like options are refused although git knows a use for them.
            let is_stricter = ["HEAD", "refs/heads/x", "@"].contains(&name);
            assert!(own == git || (is_stricter && !own), "{name}: {own}, git says {git}");
        }
    }
}

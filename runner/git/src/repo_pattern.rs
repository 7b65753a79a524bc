//! repo_pattern defines the entries of lists of repositories: an address, or the beginning of addresses before `*`.
//!
//! Entries are compared by the identity of a repository, like the ownership of branches: neither case nor `.git` matters.

use std::{fmt, str::FromStr};

use crate::repo_url::{InvalidRepoUrl, RepoUrl};

/// Entry of a list of repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoPattern {
    text: String,
    matched: Matched,
}

/// Repositories that an entry names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Matched {
    /// The one with this identity.
    One(String),
    /// All with an identity that begins so.
    Beginning(String),
}

impl RepoPattern {
    /// Reads an entry.
    ///
    /// # Errors
    /// If it is neither the address of a repository nor its beginning before `*`.
    pub fn parse(text: &str) -> Result<Self, InvalidRepoUrl> {
        let matched = match text.strip_suffix('*') {
            Some(beginning) => Matched::Beginning(beginning_of_identity(beginning)),
            None => Matched::One(read(text)?.identity()),
        };
        Ok(Self { text: text.to_owned(), matched })
    }

    /// Returns the entry as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the entry names the repository at `url`.
    #[must_use]
    pub fn matches(&self, url: &RepoUrl) -> bool {
        match &self.matched {
            Matched::One(identity) => url.identity() == *identity,
            Matched::Beginning(beginning) => url.identity().starts_with(beginning),
        }
    }
}

impl RepoUrl {
    /// Returns whether one of the entries `listed` names this repository. An entry that cannot be read names none.
    #[must_use]
    pub fn is_listed(&self, listed: &[String]) -> bool {
        listed.iter().any(|entry| RepoPattern::parse(entry).is_ok_and(|entry| entry.matches(self)))
    }
}

impl fmt::Display for RepoPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for RepoPattern {
    type Err = InvalidRepoUrl;

    fn from_str(text: &str) -> Result<Self, InvalidRepoUrl> {
        Self::parse(text)
    }
}

fn read(text: &str) -> Result<RepoUrl, InvalidRepoUrl> {
    if text.starts_with("file://") { RepoUrl::parse_local(text) } else { RepoUrl::parse(text) }
}

/// Returns the beginning that the identities of addresses with this `beginning` have.
fn beginning_of_identity(beginning: &str) -> String {
    // One more character makes an address of a beginning that ends with a slash.
    match read(&format!("{beginning}x")) {
        Ok(url) => {
            let mut identity = url.identity();
            identity.pop();
            identity
        }
        // A beginning without a path names hosts.
        Err(_no_address) => beginning.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listed(listed: &[&str], url: &str) -> bool {
        let listed: Vec<_> = listed.iter().map(|&entry| entry.to_owned()).collect();
        read(url).unwrap().is_listed(&listed)
    }

    #[test]
    fn a_list_names_addresses_and_beginnings() {
        let listed = ["https://GitHub.com/acme/*", "https://git.example:443/a.git"];
        for url in [
            "https://github.com/acme/x",
            "https://github.com:443/Acme/x.git",
            "https://git.example/a",
            "https://git.example/A.git",
        ] {
            assert!(is_listed(&listed, url), "{url}");
        }
        for url in [
            "https://github.com/acme2/x",
            "https://git.example/ab",
            "https://git.example:444/a",
            "http://github.com/acme/x",
        ] {
            assert!(!is_listed(&listed, url), "{url}");
        }
    }

    #[test]
    fn directories_keep_their_case() {
        assert!(is_listed(&["file:///srv/Git/*"], "file:///srv/Git/app"));
        assert!(!is_listed(&["file:///srv/Git/*"], "file:///srv/git/app"));
    }

    #[test]
    fn an_entry_that_is_no_address_names_nothing() {
        assert!(is_listed(&["*"], "https://git.example/a"), "control");
        for entry in ["git.example/a", "", "https://git.example", "https://git.example/a b"] {
            assert!(!is_listed(&[entry], "https://git.example/a"), "{entry}");
            assert!(RepoPattern::parse(entry).is_err(), "{entry}");
        }
    }
}

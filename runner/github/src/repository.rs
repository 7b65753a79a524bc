//! repository defines the owner and name of a repository, as its address has them.

use std::fmt;

use platform_core::invalid::InvalidValue;
use platform_runtime::settings::ServiceUrl;
use runner_git::RepoUrl;

/// Most characters of an owner.
const MAX_OWNER: usize = 39;
/// Most characters of a name.
const MAX_NAME: usize = 100;
/// Ending that addresses of repositories may have.
const GIT: &str = ".git";

/// Owner and name of a repository, and the host that it is on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepositoryName {
    origin: String,
    owner: String,
    name: String,
}

/// Reason why an address is not that of a repository at GitHub.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRepositoryName {
    /// The path has not exactly an owner and a name.
    #[error("`{url}` is not https://HOST/OWNER/NAME")]
    Path {
        /// The address.
        url: String,
    },
    /// GitHub has no owner or repository that is called so.
    #[error("GitHub has no owner or repository called `{name}`")]
    Name {
        /// The name.
        name: String,
    },
    /// The host is odd, or plain HTTP leads to it over a network.
    #[error("`{url}` is not an address for a credential: {problem}")]
    Host {
        /// The address.
        url: String,
        /// Problem of the host.
        problem: String,
    },
}

impl RepositoryName {
    /// Reads the address of a repository, with or without `.git` at its end.
    ///
    /// # Errors
    /// If GitHub has no repository with such an address.
    pub fn of(url: &RepoUrl) -> Result<Self, InvalidRepositoryName> {
        let text = url.as_str();
        let no_path = || InvalidRepositoryName::Path { url: text.to_owned() };
        let slash = host_end(text);
        let host = |error: InvalidValue| InvalidRepositoryName::Host {
            url: text.to_owned(),
            problem: error.to_string(),
        };
        let origin = ServiceUrl::parse(&text[..slash]).map_err(host)?.origin();
        let parts: Vec<&str> = text[slash..].split('/').skip(1).collect();
        let &[owner, name] = parts.as_slice() else { return Err(no_path()) };
        let name = name.strip_suffix(GIT).unwrap_or(name);
        for (part, is_valid) in [(owner, is_owner(owner)), (name, is_name(name))] {
            if !is_valid {
                return Err(InvalidRepositoryName::Name { name: part.to_owned() });
            }
        }
        Ok(Self { origin, owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Reads the address of a repository, if it is on the host at `github`.
    pub(crate) fn on(github: &ServiceUrl, url: &RepoUrl) -> Result<Option<Self>, InvalidRepositoryName> {
        let text = url.as_str();
        let origin = ServiceUrl::parse(&text[..host_end(text)]);
        if origin.is_ok_and(|origin| origin.origin() == github.origin()) {
            Self::of(url).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Returns the owner: a user or an organisation.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the name without its owner.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the repository is on the host at `url`.
    #[must_use]
    pub fn is_at(&self, url: &ServiceUrl) -> bool {
        self.origin == url.origin()
    }

    /// Returns the path of the repository in the API.
    pub(crate) fn api_path(&self) -> String {
        format!("/repos/{}/{}", self.owner, self.name)
    }

    /// Returns the address of a pull request of this repository.
    pub(crate) fn pull_request_url(&self, number: u64) -> String {
        format!("{}/{}/{}/pull/{number}", self.origin, self.owner, self.name)
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.origin, self.owner, self.name)
    }
}

/// Returns the end of scheme, host and port in an address.
fn host_end(url: &str) -> usize {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    url[start..].find('/').map_or(url.len(), |at| start + at)
}

/// Returns whether GitHub may have an owner of this name. That of a managed user has an underscore.
fn is_owner(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=MAX_OWNER).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('-')
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain) && text != "." && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<RepositoryName, InvalidRepositoryName> {
        RepositoryName::of(&RepoUrl::parse(url).unwrap())
    }

    #[test]
    fn owner_and_name_are_in_the_address() {
        for (url, shown) in [
            ("https://github.com/octo/hello", "https://github.com/octo/hello"),
            ("https://GitHub.com:443/octo/hello.git/", "https://github.com/octo/hello"),
            ("https://git.example:8443/a_b/c.d-e", "https://git.example:8443/a_b/c.d-e"),
            ("http://127.0.0.1:3000/o/n", "http://127.0.0.1:3000/o/n"),
        ] {
            let repository = read(url).unwrap();
            assert_eq!(repository.to_string(), shown);
            assert_eq!(repository.pull_request_url(7), format!("{shown}/pull/7"));
        }
    }

    #[test]
    fn a_repository_is_at_one_host_only() {
        let url = |text| ServiceUrl::parse(text).unwrap();
        let repository = read("https://github.com/octo/hello").unwrap();
        assert!(repository.is_at(&url("https://github.com")));
        for other in ["https://github.com:8443", "https://github.com.example", "https://api.github.com"] {
            assert!(!repository.is_at(&url(other)), "{other}");
        }
        assert!(!read("http://localhost/o/n").unwrap().is_at(&url("https://localhost")));
    }

    #[test]
    fn other_addresses_are_no_repositories() {
        for url in [
            "https://github.com/octo",
            "https://github.com/octo/hello/pulls",
            "https://github.com/o~/hello",
            "https://github.com/octo/he~llo",
            "https://github.com/octo/.git",
            "http://github.com/octo/hello",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}

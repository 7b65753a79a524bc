//! repo_url defines the addresses of remotes: those that git can take for nothing else.

use std::{
    ffi::OsString,
    fmt,
    net::Ipv4Addr,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::transport::Transport;

/// Most bytes of an address.
const MAX_LENGTH: usize = 1024;
/// Most digits of a port.
const MAX_PORT_DIGITS: usize = 5;

/// Address of a repository: `https`, `http`, or, where the caller allows it, `file`. It holds no credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoUrl {
    text: String,
    transport: Transport,
}

/// Reason why a text is not the address of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRepoUrl {
    /// The text is empty or too long.
    #[error("an address of a repository has 1 to {MAX_LENGTH} characters")]
    Length,
    /// The scheme is missing or another one.
    #[error(
        "the address begins with https:// or http://, or with file:// where that is allowed, in lower case"
    )]
    Scheme,
    /// A character is not allowed.
    #[error(
        "the address has only letters, digits and `-._~/+` behind its host: no space, `%`, `?`, `#` or `\\`"
    )]
    Character,
    /// The address names a user.
    #[error("the address has no user and no password: they belong into the credential's file")]
    UserInfo,
    /// The host or its port is missing or odd.
    #[error("the address has a host, and at most one port behind it")]
    Host,
    /// The path is missing or leads upwards.
    #[error("the address has a path without empty, `.` and `..` parts")]
    Path,
}

impl RepoUrl {
    /// Reads an address of a repository on a server. So does a stored address.
    ///
    /// # Errors
    /// The first reason why the text is malformed.
    pub fn parse(text: &str) -> Result<Self, InvalidRepoUrl> {
        Self::read(text, &[("https://", Transport::Https), ("http://", Transport::Http)])
    }

    /// Reads an address of a directory on this host. The caller has decided that the directory may be read and written:
    /// it may be any.
    ///
    /// # Errors
    /// The first reason why the text is malformed.
    pub fn parse_local(text: &str) -> Result<Self, InvalidRepoUrl> {
        Self::read(text, &[("file://", Transport::File)])
    }

    fn read(text: &str, schemes: &[(&str, Transport)]) -> Result<Self, InvalidRepoUrl> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(InvalidRepoUrl::Length);
        }
        let scheme = |(name, transport): &(&str, Transport)| Some((*transport, text.strip_prefix(name)?));
        let (transport, rest) = schemes.iter().find_map(scheme).ok_or(InvalidRepoUrl::Scheme)?;
        let slash = rest.find('/').ok_or(InvalidRepoUrl::Path)?;
        let authority = &rest[..slash];
        match transport {
            Transport::File if authority.is_empty() => {}
            Transport::File => return Err(InvalidRepoUrl::Host),
            Transport::Http | Transport::Https => check_authority(authority)?,
        }
        check_path(&rest[slash + 1..])?;
        Ok(Self { text: text.trim_end_matches('/').to_owned(), transport })
    }

    /// Returns the address as git takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns one text for all spellings by which a server may know the repository: without `.git` and a default port,
    /// in lower case. Two repositories with paths that differ in case alone have the same.
    #[must_use]
    pub fn identity(&self) -> String {
        if self.transport == Transport::File {
            return self.text.clone();
        }
        let text = self.text.to_ascii_lowercase();
        let origin = self.origin();
        let path = text[origin.len()..].trim_end_matches('/');
        let path = path.trim_end_matches(".git");
        let origin = text[..origin.len()].to_owned();
        let port = if self.transport == Transport::Https { ":443" } else { ":80" };
        format!("{}{path}", origin.strip_suffix(port).unwrap_or(&origin))
    }

    /// Returns the only way over which git may reach the repository.
    pub(crate) const fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns scheme, host and port, which git shows when it asks for a credential.
    pub(crate) fn origin(&self) -> &str {
        let start = self.text.find("://").map_or(0, |at| at + "://".len());
        let path = self.text[start..].find('/').map_or(self.text.len(), |at| start + at);
        &self.text[..path]
    }

    /// Returns whether others on the way to the repository could read a credential: it goes in the clear to another host.
    pub(crate) fn shows_credentials(&self) -> bool {
        let authority = self.origin().trim_start_matches("http://");
        let host = authority.split(':').next().unwrap_or_default();
        let is_loopback = host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        self.transport == Transport::Http && !is_loopback && host != "localhost"
    }

    /// Returns the directory of a repository on this host.
    #[must_use]
    pub fn local_dir(&self) -> Option<&Path> {
        (self.transport == Transport::File).then(|| Path::new(&self.text["file://".len()..]))
    }
}

/// Returns the address of a directory that this program made. Git decodes `%` and two digits behind `file://`.
pub(crate) fn own_url(dir: &Path) -> OsString {
    let path = dir.as_os_str().as_bytes();
    let encoded = path.iter().flat_map(|byte| match byte {
        b'%' => b"%25".to_vec(),
        byte => vec![*byte],
    });
    OsString::from_vec([b"file://".to_vec(), encoded.collect()].concat())
}

fn check_authority(authority: &str) -> Result<(), InvalidRepoUrl> {
    if authority.contains('@') {
        return Err(InvalidRepoUrl::UserInfo);
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_host = host.starts_with(|c: char| c.is_ascii_alphanumeric()) && host.bytes().all(is_host_byte);
    let is_port = |port: &str| {
        port.len() <= MAX_PORT_DIGITS
            && port.parse::<u16>().is_ok_and(|number| number > 0)
            && !port.starts_with('+')
    };
    if is_host && port.is_none_or(is_port) { Ok(()) } else { Err(InvalidRepoUrl::Host) }
}

fn check_path(path: &str) -> Result<(), InvalidRepoUrl> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/+".contains(c);
    if path.contains('@') {
        return Err(InvalidRepoUrl::UserInfo);
    }
    if !path.chars().all(is_plain) {
        return Err(InvalidRepoUrl::Character);
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_odd = |part: &str| part.is_empty() || part == "." || part == ".." || part.starts_with('-');
    if path.split('/').any(is_odd) { Err(InvalidRepoUrl::Path) } else { Ok(()) }
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for RepoUrl {
    type Error = InvalidRepoUrl;

    fn try_from(text: String) -> Result<Self, InvalidRepoUrl> {
        Self::parse(&text)
    }
}

impl From<RepoUrl> for String {
    fn from(url: RepoUrl) -> Self {
        url.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_addresses_are_accepted() {
        for text in [
            "https://example.org/team/repo.git",
            "https://example.org:8443/repo",
            "http://127.0.0.1:3000/a/b.git",
            "https://example.org/~user/repo+x/",
        ] {
            assert!(RepoUrl::parse(text).is_ok(), "{text}");
        }
        let url = RepoUrl::parse("https://example.org:8443/a/b/").unwrap();
        assert_eq!(
            [url.as_str(), url.origin()],
            ["https://example.org:8443/a/b", "https://example.org:8443"]
        );
        let local = RepoUrl::parse_local("file:///srv/git").unwrap();
        assert_eq!(local.local_dir(), Some(Path::new("/srv/git")));
    }

    #[test]
    fn a_directory_is_taken_only_where_allowed() {
        use InvalidRepoUrl::{Host, Scheme};
        assert_eq!(RepoUrl::parse("file:///srv/git"), Err(Scheme));
        assert_eq!(serde_json::from_str::<RepoUrl>("\"file:///srv/git\"").ok(), None);
        assert_eq!(RepoUrl::parse_local("https://example.org/a"), Err(Scheme));
        assert_eq!(RepoUrl::parse_local("file://host/a"), Err(Host));
    }

    #[test]
    fn plain_http_to_other_hosts_shows_credentials() {
        for (text, shows) in [
            ("http://example.org/a", true),
            ("http://10.0.0.1:80/a", true),
            ("http://127.0.0.1.example.org/a", true),
            ("http://127.0.0.1:3000/a", false),
            ("http://localhost/a", false),
            ("https://example.org/a", false),
        ] {
            assert_eq!(RepoUrl::parse(text).unwrap().shows_credentials(), shows, "{text}");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        use InvalidRepoUrl::{Character, Host, Length, Path, Scheme, UserInfo};
        let long = format!("https://example.org/{}", "a".repeat(MAX_LENGTH));
        for (text, reason) in [
            ("", Length),
            (long.as_str(), Length),
            ("ext::sh -c payload", Scheme),
            ("--upload-pack=payload", Scheme),
            ("-https://example.org/a", Scheme),
            ("ssh://example.org/a", Scheme),
            ("git@example.org:a/b", Scheme),
            ("HTTPS://example.org/a", Scheme),
            ("/srv/git/repo", Scheme),
            ("https://user:word@example.org/a", UserInfo),
            ("https://token@example.org/a", UserInfo),
            ("https://example.org/a@b", UserInfo),
            ("https://example.org", Path),
            ("https:///a", Host),
            ("https://-h/a", Host),
            ("https://example.org:/a", Host),
            ("https://example.org:99999/a", Host),
            ("https://example.org:+80/a", Host),
            ("https://[::1]/a", Host),
            ("https://example.org/", Path),
            ("https://example.org//a", Path),
            ("https://example.org/a/../b", Path),
            ("https://example.org/-a", Path),
            ("https://example.org/a?b", Character),
            ("https://example.org/a#b", Character),
            ("https://example.org/a%00b", Character),
            ("https://example.org/a b", Character),
            ("https://example.org/a\nb", Character),
            ("https://example.org/a\\b", Character),
            ("https://example.org/\u{202e}a", Character),
        ] {
            assert_eq!(RepoUrl::parse(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn spellings_of_an_address_have_one_identity() {
        let identity = |text| RepoUrl::parse(text).unwrap().identity();
        for text in [
            "https://github.com/acme/app",
            "https://GitHub.com:443/Acme/App.git",
            "https://github.com/acme/app.git.git/",
        ] {
            assert_eq!(identity(text), "https://github.com/acme/app", "{text}");
        }
        assert_ne!(identity("https://github.com/acme/app2"), "https://github.com/acme/app");
        assert_ne!(identity("https://github.com:444/acme/app"), "https://github.com/acme/app");
    }
}

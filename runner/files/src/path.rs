//! Defines the path of an entry below a tree: relative, and unable to leave it.

use std::{
    ffi::OsStr,
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    file_name::is_git_dir,
    quote::{Quoting, quoted},
};

/// Most bytes of one name, as Linux file systems have it.
const MAX_NAME_LEN: usize = 255;
/// Most bytes of a path: those that Linux accepts in one call (`PATH_MAX` with its final zero).
const MAX_PATH_LEN: usize = 4095;

/// Bytes that mean more than themselves in a pattern. A blank at its end would be lost.
const GLOB_BYTES: &[u8] = b"*?[]{}\\ ";

/// Path below a tree: names joined by `/`, none of them empty, `.` or `..`. Its order is that of the names, so a
/// directory comes right before its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "EncodedPath", into = "EncodedPath")]
pub struct RelativePath(PathBuf);

/// Error for a path that is empty, absolute, too long, or could leave its tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not the path of a file below a directory: give one without `..`, such as `src/main.rs`")]
pub struct InvalidPath {
    /// The path, with escapes.
    pub path: String,
}

/// Path in JSON, which has no bytes: a text where it is UTF-8, and a list of bytes otherwise.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum EncodedPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl RelativePath {
    /// Checks `path` and keeps it.
    ///
    /// # Errors
    /// [`InvalidPath`], if the path breaks a rule of this type.
    pub fn parse(path: impl AsRef<OsStr>) -> Result<Self, InvalidPath> {
        let path = path.as_ref();
        let bytes = path.as_bytes();
        let is_name = |name: &[u8]| {
            !matches!(name, b"" | b"." | b"..") && name.len() <= MAX_NAME_LEN && !name.contains(&0)
        };
        if bytes.len() <= MAX_PATH_LEN && bytes.split(|byte| *byte == b'/').all(is_name) {
            Ok(Self(PathBuf::from(path)))
        } else {
            Err(InvalidPath { path: quoted(bytes, Quoting::Readable) })
        }
    }

    /// Returns the path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Returns the last name of the path.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.0.file_name().unwrap_or_default()
    }

    /// Returns the directory the path is in; `None` if that is the tree itself.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let parent = self.0.parent()?;
        (!parent.as_os_str().is_empty()).then(|| Self(parent.to_owned()))
    }

    /// Returns the names of the path, from the top.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.0.iter()
    }

    /// Returns whether the path is `other` or below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns whether the path is inside a repository's own directory, in any spelling of its name.
    #[must_use]
    pub fn is_in_git_dir(&self) -> bool {
        self.names().any(is_git_dir)
    }

    /// Returns a pattern that names only this path, as a shell takes it.
    pub(crate) fn shell_pattern(&self) -> String {
        let mut pattern = vec![b'/'];
        for byte in self.0.as_os_str().as_bytes() {
            if GLOB_BYTES.contains(byte) {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        let readable = quoted(&pattern, Quoting::Readable);
        match readable.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            // Shells know the same escapes in this form.
            Some(escaped) => format!("$'{}'", escaped.replace('\'', "\\'")),
            None if pattern.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(byte)) => {
                readable
            }
            None => format!("'{}'", readable.replace('\'', "'\\''")),
        }
    }

    /// Returns the path as git writes it in a diff, behind `prefix`.
    pub(crate) fn git_quoted(&self, prefix: &str) -> String {
        let mut bytes = prefix.as_bytes().to_vec();
        bytes.extend_from_slice(self.0.as_os_str().as_bytes());
        quoted(&bytes, Quoting::Git)
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&quoted(self.0.as_os_str().as_bytes(), Quoting::Readable))
    }
}

impl Ord for RelativePath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for RelativePath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::str::FromStr for RelativePath {
    type Err = InvalidPath;

    /// Parses an argument: one `/` at its end is left out, as shells complete it.
    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        Self::parse(text.strip_suffix('/').unwrap_or(text))
    }
}

impl TryFrom<EncodedPath> for RelativePath {
    type Error = InvalidPath;

    fn try_from(path: EncodedPath) -> Result<Self, InvalidPath> {
        match path {
            EncodedPath::Text(text) => Self::parse(text),
            EncodedPath::Bytes(bytes) => Self::parse(OsStr::from_bytes(&bytes)),
        }
    }
}

impl From<RelativePath> for EncodedPath {
    fn from(path: RelativePath) -> Self {
        encode(path.0)
    }
}

fn encode(path: PathBuf) -> EncodedPath {
    match path.into_os_string().into_string() {
        Ok(text) => EncodedPath::Text(text),
        Err(path) => EncodedPath::Bytes(path.into_vec()),
    }
}

/// Any path in JSON, such as the target of a link.
pub(crate) mod any_path {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{EncodedPath, encode};

    /// Writes `path`.
    pub(crate) fn serialize<S: Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
        encode(path.to_owned()).serialize(to)
    }

    /// Reads a path.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match EncodedPath::deserialize(from)? {
            EncodedPath::Text(text) => PathBuf::from(text),
            EncodedPath::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_leave_its_tree() {
        let long = "n".repeat(MAX_NAME_LEN + 1);
        for path in ["", ".", "..", "/etc", "a/../b", "a//b", "a/", "a/./b", "nul\0", &long] {
            assert!(RelativePath::parse(path).is_err(), "{path:?}");
        }
        let longest = "n".repeat(MAX_NAME_LEN);
        for path in ["a", "a/b", "...", "..a", ".git", "new\nline", "-rf", &longest] {
            assert_eq!(RelativePath::parse(path).unwrap().as_path(), Path::new(path), "control");
        }
    }

    #[test]
    fn a_pattern_for_a_shell_names_one_path() {
        for (name, pattern) in [
            (".github/ci.yml", "/.github/ci.yml"),
            (".claude/[x]*.md", "$'/.claude/\\\\[x\\\\]\\\\*.md'"),
            (".env;id", "'/.env;id'"),
            (".env'", "'/.env'\\'''"),
            (".env\nx'", "$'/.env\\nx\\''"),
        ] {
            let path = RelativePath::parse(name).unwrap();
            assert_eq!(path.shell_pattern(), pattern);
            let script = format!("printf %s {pattern}");
            let parsed = std::process::Command::new("bash").args(["-c", &script]).output().unwrap().stdout;
            let patterns = crate::Patterns::parse([String::from_utf8(parsed).unwrap()]).unwrap();
            assert!(patterns.matches(&path), "{name}");
            assert!(!patterns.matches(&RelativePath::parse(format!("sub/{name}")).unwrap()), "{name}");
        }
    }

    #[test]
    fn every_path_survives_json() {
        for bytes in [&b"a/b"[..], "ä/\u{202e}".as_bytes(), b"\xff\n"] {
            let path = RelativePath::parse(OsStr::from_bytes(bytes)).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RelativePath>(&json).unwrap(), path, "{json}");
        }
        assert!(serde_json::from_str::<RelativePath>("\"../x\"").is_err());
        assert!(serde_json::from_str::<RelativePath>("[46,46]").is_err());
    }

    #[test]
    fn a_directory_comes_before_its_content() {
        let mut paths = ["a.b", "a/b", "a", "a/b/c"].map(|path| RelativePath::parse(path).unwrap());
        paths.sort();
        assert_eq!(paths.map(|path| path.to_string()), ["a", "a/b", "a/b/c", "a.b"]);
    }
}

//! Defines which files of a directory a run receives, and how many at most.

use std::{fmt, path::Path};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use platform_core::limit::ByteSize;
use platform_runtime::settings::WorkspaceBounds;

use super::path::RelativePath;

/// Rules for the files that a run receives.
#[derive(Debug, Clone, Default)]
pub struct CopyRules {
    /// Treatment of files that git ignores.
    pub scope: Scope,
    /// Files that are copied although they may hold secrets, or although git ignores them.
    pub include: Patterns,
    /// Bounds of the copy.
    pub bounds: CopyBounds,
}

/// Treatment of files that git ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Files that `.gitignore`, `.ignore` or git's own exclude files name are left out.
    #[default]
    Tracked,
    /// Those files count like all others.
    All,
}

/// Bounds of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyBounds {
    /// Most files, links and directories.
    pub files: u64,
    /// Most bytes of all files together, by their apparent size.
    pub bytes: ByteSize,
}

/// Part of a workspace that the files of a run may fill: the agent needs space to work in.
const SHARE_DIVISOR: u64 = 2;

/// Files and directories that are counted, as a multiple of those that may be copied.
pub(crate) const COUNTED_FACTOR: u64 = 4;

impl CopyBounds {
    /// Returns the bounds of the files for a workspace with these bounds.
    #[must_use]
    pub const fn of_workspace(bounds: WorkspaceBounds) -> Self {
        Self { files: bounds.files / SHARE_DIVISOR, bytes: ByteSize(bounds.size.0 / SHARE_DIVISOR) }
    }
}

impl Default for CopyBounds {
    fn default() -> Self {
        Self { files: 50_000, bytes: ByteSize::mib(512) }
    }
}

/// Patterns that name files, in the syntax of `.gitignore`: `*.pem`, `/deploy.key`, `config/**`.
#[derive(Clone)]
pub struct Patterns {
    all: Gitignore,
    /// Each pattern by itself.
    each: Vec<Pattern>,
}

/// Pattern with its text.
#[derive(Clone)]
struct Pattern {
    text: String,
    rules: Gitignore,
}

/// Error for a text that is not a pattern.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a pattern of files, such as `*.pem` or `config/local.env`")]
pub struct InvalidPattern {
    /// Text that was given.
    pub pattern: String,
    /// Reason.
    #[source]
    source: ignore::Error,
}

impl Patterns {
    /// Parses each of `patterns`.
    ///
    /// # Errors
    /// [`InvalidPattern`], for the first malformed text.
    pub fn parse<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, InvalidPattern> {
        let mut all = builder();
        let mut each = Vec::new();
        for pattern in patterns {
            let text = pattern.as_ref();
            let invalid = |source| InvalidPattern { pattern: text.to_owned(), source };
            all.add_line(None, text).map_err(invalid)?;
            let mut one = builder();
            one.add_line(None, text).map_err(invalid)?;
            each.push(Pattern { text: text.to_owned(), rules: one.build().map_err(invalid)? });
        }
        let last = || each.last().map(|pattern| pattern.text.clone()).unwrap_or_default();
        let all = all.build().map_err(|source| InvalidPattern { pattern: last(), source })?;
        Ok(Self { all, each })
    }

    /// Returns whether there are no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether a pattern names `path` or a directory above it.
    #[must_use]
    pub fn matches(&self, path: &RelativePath) -> bool {
        names(&self.all, path)
    }

    /// Returns the first pattern that names none of `paths`. Exceptions, which begin with `!`, need not.
    pub(crate) fn unused<'p>(&self, paths: impl Iterator<Item = &'p RelativePath> + Clone) -> Option<&str> {
        let is_unused = |pattern: &&Pattern| {
            !pattern.text.starts_with('!') && !paths.clone().any(|path| names(&pattern.rules, path))
        };
        self.each.iter().find(is_unused).map(|pattern| pattern.text.as_str())
    }
}

fn builder() -> GitignoreBuilder {
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    builder
}

fn names(rules: &Gitignore, path: &RelativePath) -> bool {
    let matched = |path: &Path| rules.matched(path, true).is_ignore();
    path.as_path().ancestors().filter(|path| !path.as_os_str().is_empty()).any(matched)
}

impl Default for Patterns {
    fn default() -> Self {
        Self { all: Gitignore::empty(), each: Vec::new() }
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Patterns").field(&self.all.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files_and_their_directories() {
        let patterns = Patterns::parse(["*.pem", "/top.key", ".aws", "a/b.env"]).unwrap();
        let matches = |path: &str| patterns.matches(&RelativePath::parse(path).unwrap());
        for path in ["x.pem", "d/x.pem", "top.key", ".aws/credentials", "d/.aws/x/y", "a/b.env"] {
            assert!(matches(path), "{path}");
        }
        for path in ["x.pen", "d/top.key", "aws", "b.env", "c/a/b.env"] {
            assert!(!matches(path), "{path}");
        }
        assert!(!Patterns::default().matches(&RelativePath::parse("x.pem").unwrap()));
        assert!(Patterns::parse(["a[", "b"]).is_err());
    }
}

//! policy says what an agent's work may be: its limits, the paths that stay as they are, and the secrets to look for.

use std::path::PathBuf;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use platform_core::limit::ByteSize;
use runner_files::{folded_name, folded_text};

use super::secrets::SecretScan;

/// Patterns of paths that decide what runs at the remote, or who approves a change.
const DEFAULT_PROTECTED: [&str; 7] = [
    "/.github/workflows",
    "/.github/actions",
    "/.gitea/workflows",
    "/.forgejo/workflows",
    "/.gitlab-ci.yml",
    "CODEOWNERS",
    ".gitmodules",
];
/// Beginnings of the short names that NTFS gives to `.gitmodules`.
const MODULES_SHORT: [&str; 2] = ["gitmod~", "gi7eba~"];
/// Name of the file that lists submodules.
const MODULES: &str = ".gitmodules";

/// Limits of an agent's work. All count whatever the commits hold, also if a later one removes it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBounds {
    /// Most commits.
    pub commits: usize,
    /// Most new objects.
    pub objects: usize,
    /// Most paths that the commits change.
    pub files: usize,
    /// Largest content of one file.
    pub file: ByteSize,
    /// Largest content of all new files together.
    pub total: ByteSize,
    /// Most names in a path.
    pub depth: usize,
    /// Most bytes of a path.
    pub path: usize,
}

impl Default for WorkBounds {
    fn default() -> Self {
        Self {
            commits: 200,
            objects: 50_000,
            files: 2_000,
            file: ByteSize::mib(10),
            total: ByteSize::mib(64),
            depth: 40,
            path: 1_000,
        }
    }
}

/// Rules for one relay.
#[derive(Debug, Default)]
pub struct RelayPolicy {
    /// Limits.
    pub bounds: WorkBounds,
    /// Paths that stay as they are.
    pub protected: ProtectedPaths,
    /// Search for secrets.
    pub secrets: SecretScan,
}

/// Patterns of paths that an agent must not add, change or remove. Case does not matter.
#[derive(Debug)]
pub struct ProtectedPaths {
    paths: Gitignore,
    /// Directories that lead to them. A link in the place of one would lead elsewhere.
    above: Gitignore,
}

/// Error for a pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{glob}` is not a pattern as in .gitignore")]
pub struct InvalidGlob {
    /// The pattern.
    pub glob: String,
}

impl ProtectedPaths {
    /// Reads patterns in the form of `.gitignore`, added to those that protect workflows, owners and submodules. One
    /// that begins with `!` takes paths out again.
    ///
    /// # Errors
    /// The first pattern that cannot be read.
    pub fn with(globs: &[String]) -> Result<Self, InvalidGlob> {
        let globs = || DEFAULT_PROTECTED.into_iter().chain(globs.iter().map(String::as_str));
        let above: Vec<String> = globs().flat_map(directories_above).collect();
        Ok(Self { paths: patterns(globs())?, above: patterns(above.iter().map(String::as_str))? })
    }

    /// Returns the pattern that protects a directory in the place of the link at `path`, if there is one.
    pub(crate) fn pattern_below(&self, path: &str) -> Option<&str> {
        let found = self.above.matched(plain(path)?, false);
        if found.is_ignore() { found.inner().map(|glob| glob.original()) } else { None }
    }

    /// Returns the pattern that protects a path, if there is one.
    pub(crate) fn pattern_of(&self, path: &str) -> Option<&str> {
        let found = self.paths.matched_path_or_any_parents(plain(path)?, false);
        if found.is_ignore() { found.inner().map(|glob| glob.original()) } else { None }
    }
}

impl Default for ProtectedPaths {
    /// Returns the patterns that every relay has.
    fn default() -> Self {
        Self::with(&[])
            .unwrap_or_else(|_invalid| Self { paths: Gitignore::empty(), above: Gitignore::empty() })
    }
}

fn patterns<'g>(globs: impl Iterator<Item = &'g str>) -> Result<Gitignore, InvalidGlob> {
    let mut builder = GitignoreBuilder::new("");
    let invalid = |glob: &str| InvalidGlob { glob: glob.to_owned() };
    builder.case_insensitive(true).or(Err(invalid("")))?;
    for glob in globs {
        // Paths are compared in their folded form.
        let folded = if glob.is_ascii() { glob.to_owned() } else { folded_text(glob) };
        builder.add_line(None, &folded).map_err(|_error| invalid(glob))?;
    }
    builder.build().map_err(|_error| invalid(""))
}

/// Returns patterns for the directories that lead to what `glob` protects. One that takes paths out has none.
fn directories_above(glob: &str) -> Vec<String> {
    let glob = glob.trim();
    if glob.starts_with(['!', '#']) {
        return Vec::new();
    }
    let glob = glob.trim_matches('/');
    let ends = glob.match_indices('/').map(|(at, _)| &glob[..at]);
    // Any directory may lead to a pattern for any depth, and not each link is its.
    ends.filter(|above| !above.ends_with("**")).map(|above| format!("/{above}")).collect()
}

/// Returns a path as patterns see it. `None` stands for an empty one.
fn plain(path: &str) -> Option<PathBuf> {
    let names = path
        .split('/')
        .map(folded_name)
        .map(|name| if is_modules(&name) { MODULES.to_owned() } else { name });
    let plain: PathBuf = names.filter(|name| !name.is_empty()).collect();
    (!plain.as_os_str().is_empty()).then_some(plain)
}

/// Returns whether a folded name is a short name of `.gitmodules`.
fn is_modules(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    MODULES_SHORT.iter().any(|short| name.strip_prefix(short).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_paths_are_protected() {
        let protected = ProtectedPaths::default();
        for path in [
            ".github/workflows/ci.yml",
            ".GitHub/Workflows/ci.yml",
            ".github./workflows/ci.yml",
            ".g\u{200c}ithub/workflows/ci.yml",
            ".github/workflows/deep/ci.yml",
            ".github/actions/a/action.yml",
            ".github/workflows",
            ".github/workflow\u{17f}/ci.yml",
            ".gitmodule\u{17f}",
            "CODEOWNERS",
            "docs/CODEOWNERS",
            ".github/codeowners",
            ".gitmodules",
            "GITMOD~1",
            "gi7eba~1",
            ".gitlab-ci.yml",
            ".gitea/workflows/ci.yml",
            ".forgejo/workflows/deep/ci.yml",
        ] {
            assert!(protected.pattern_of(path).is_some(), "{path}");
        }
        for path in ["src/main.rs", ".github/ISSUE_TEMPLATE.md", "a/.github/workflows/ci.yml", "/", "..", ""]
        {
            assert_eq!(protected.pattern_of(path), None, "{path}");
        }
    }

    #[test]
    fn links_above_protected_paths_are_known() {
        let protected = ProtectedPaths::with(&["infra/prod/**".to_owned(), "**/keys/x".to_owned()]).unwrap();
        for path in [".github", ".GitHub", ".gitea", ".forgejo", "infra", "infra/prod", "a/b/keys"] {
            assert!(protected.pattern_below(path).is_some(), "{path}");
        }
        for path in ["src", "a/.github", ".github/x", "infra/x", "CODEOWNERS.md", ""] {
            assert_eq!(protected.pattern_below(path), None, "{path}");
        }
    }

    #[test]
    fn patterns_can_be_added_and_taken_out() {
        let globs = ["infra/**".to_owned(), "*.lock".to_owned(), "!docs/CODEOWNERS".to_owned()];
        let protected = ProtectedPaths::with(&globs).unwrap();
        assert_eq!(protected.pattern_of("infra/a/b"), Some("infra/**"));
        assert_eq!(protected.pattern_of("a/Cargo.lock"), Some("*.lock"));
        assert_eq!(protected.pattern_of("docs/CODEOWNERS"), None);
        assert!(protected.pattern_of("CODEOWNERS").is_some());
        assert!(ProtectedPaths::with(&["{a".to_owned()]).is_err());
        let protected = ProtectedPaths::with(&["/Größe/*".to_owned()]).unwrap();
        for path in ["Größe/a", "GRO\u{308}SSE/a", "gr\u{f6}\u{17f}se\u{a0}/a"] {
            assert!(protected.pattern_of(path).is_some(), "{path:?}");
        }
        assert_eq!(protected.pattern_of("Grosse/a"), None);
    }
}

//! Folds names as file systems do that take several spellings for one name.
//!
//! A name is folded by the rules of all of them at once:
//! * ext4 and f2fs with case folding (Linux, `fs/unicode`) compare the full case folding of the decomposed name: `ſ` is
//!   `s`, `ﬁ` is `fi`. They leave out what Unicode ignores by default.
//! * APFS (Apple File System Reference) compares the same folding.
//! * HFS+ (Technical Note 1150) decomposes, lowers case, and leaves out characters without a width.
//! * NTFS and exFAT map each character to its capital. Windows cuts off dots, blanks and the name of a stream.

use std::ffi::OsStr;

use platform_core::invisible::{Invisible, kind_of};
use unicode_normalization::UnicodeNormalization as _;

/// Name of a repository's own directory, or of the file that stands for it.
pub(crate) const GIT_DIR: &str = ".git";
/// Beginning of the short names that NTFS gives to such a directory.
const GIT_DIR_SHORT: &str = "git~";

/// Returns `name` in a form that all of its spellings have in common.
#[must_use]
pub fn folded_name(name: &str) -> String {
    let folded = folded_text(name);
    let without_stream = folded.split(':').next().unwrap_or_default();
    without_stream.trim_end_matches([' ', '.']).to_owned()
}

/// Returns `text`, such as a pattern of names, in the form that [`folded_name`] gives to each character. A blank of any
/// width becomes a space.
#[must_use]
pub fn folded_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let seen = text.nfd().filter_map(|c| match kind_of(c) {
        None => Some(c),
        Some(Invisible::Space) => Some(' '),
        Some(_) => None,
    });
    // Some letters have a capital in lower case alone, and some a small one in capitals alone.
    let lower = seen.flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

/// Returns whether some file system takes `name` for that of a repository's own directory. Windows takes `\` for `/`.
#[must_use]
pub fn is_git_dir(name: impl AsRef<OsStr>) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.as_ref().to_string_lossy();
    let mut parts = name.split('\\').map(folded_name);
    parts.any(|part| part == GIT_DIR || part.strip_prefix(GIT_DIR_SHORT).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_folded_alike() {
        for (name, spellings) in [
            (".gitmodules", &[".gitmodule\u{17f}", ".GITMODULES", ".gitmodules. .", ".g\u{131}tmodules"][..]),
            (".github", &[".github:x", ".g\u{200c}ithub", ".git\u{2065}hub", "\u{feff}.github"]),
            ("workflows", &["work\u{fb02}ow\u{17f}", "wor\u{212a}flows", "workflows\u{3000}"]),
            (".pre-commit-config.yaml", &[".pre-commit-con\u{fb01}g.yaml"]),
            (".husky", &[".hu\u{17f}\u{212a}y", ".h\u{34f}usky", ".hus\u{fe0f}ky"]),
            ("gro\u{308}sse", &["gr\u{f6}ße", "GR\u{d6}\u{1e9e}E", "gro\u{308}\u{17f}\u{17f}e"]),
            ("\u{3c3}\u{3c3}", &["\u{3a3}\u{3c2}"]),
            ("a b", &["a\u{a0}b", "A\u{202f}B", "a\u{2009}b"]),
        ] {
            for spelling in spellings {
                assert_eq!(folded_name(spelling), name, "{spelling:?}");
            }
            assert_eq!(folded_name(name), name, "a second time");
        }
    }

    #[test]
    fn other_names_stay_apart() {
        for (name, other) in [("ab", "a b"), ("a", "\u{e4}"), (".gitignore", ".git"), ("\u{ff41}", "a")] {
            assert_ne!(folded_name(name), folded_name(other), "{name} {other}");
        }
    }

    #[test]
    fn every_spelling_of_gits_directory_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".git ",
            ".git...",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{200d}",
            ".g\u{ad}it",
            ".g\u{131}t",
            ".git\u{a0}",
            "git~1",
            "GIT~1",
            "git~27",
            "a\\.git",
        ] {
            assert!(is_git_dir(name), "{name:?}");
        }
        for name in [
            "git",
            "git~",
            "git~x",
            ".github",
            ".gitignore",
            ".gitattributes",
            ".git2",
            "..git",
            "a.git",
            "agit~1",
        ] {
            assert!(!is_git_dir(name), "{name:?}");
        }
    }
}

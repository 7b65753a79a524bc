//! path judges the names of files: spellings of `.git`, hidden characters, depth, and where a link leads.
//!
//! File systems take several spellings for one name: case, Unicode characters that are ignored, and short names.

use platform_core::invisible::{Invisible, is_invisible, kind_of};
use runner_files::is_git_dir;

/// Longest name of a file.
const MAX_NAME: usize = 255;
/// Most bytes of a link's target.
const MAX_TARGET: usize = 1024;

/// Fault of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// The path has too many names.
    Deep,
    /// The path or a name is too long.
    Long,
    /// The path has bytes that hide it.
    Odd,
    /// The path leads into git's own directory.
    GitDirectory,
}

/// Limits of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathBounds {
    /// Most names.
    pub(crate) depth: usize,
    /// Most bytes.
    pub(crate) length: usize,
}

/// Returns all faults of a path.
pub(crate) fn faults(path: &[u8], bounds: PathBounds) -> Vec<PathFault> {
    let Ok(text) = std::str::from_utf8(path) else { return vec![PathFault::Odd] };
    let names: Vec<&str> = text.split('/').collect();
    let mut found = shape_faults(path, bounds);
    let is_odd_name = |name: &&str| ["", ".", ".."].contains(name) || is_odd_text(name);
    if names.iter().any(is_odd_name) {
        found.push(PathFault::Odd);
    }
    if names.iter().any(is_git_dir) {
        found.push(PathFault::GitDirectory);
    }
    found
}

/// Returns the faults of a path that are in its depth and length alone.
pub(crate) fn shape_faults(path: &[u8], bounds: PathBounds) -> Vec<PathFault> {
    let names = || path.split(|byte| *byte == b'/');
    let mut found = Vec::new();
    if names().count() > bounds.depth {
        found.push(PathFault::Deep);
    }
    if path.len() > bounds.length || names().any(|name| name.len() > MAX_NAME) {
        found.push(PathFault::Long);
    }
    found
}

/// Returns whether a path has characters that programs misread or that a reader does not see. Blanks of any width are seen
/// between other characters, and macOS writes such a one into the names of screenshots.
fn is_odd_text(path: &str) -> bool {
    let is_blank = |c: char| kind_of(c) == Some(Invisible::Space);
    let is_hidden = |c: char| is_invisible(c) && !is_blank(c);
    path.chars().any(|c| c.is_control() || c == '\\' || is_hidden(c))
        || path.split('/').any(|name| name.starts_with(is_blank) || name.ends_with(is_blank))
}

/// Returns the reason why a link at `path` must not lead to `target`, if there is one.
///
/// A target goes up first and down then: `..` behind another name could climb out through a link.
pub(crate) fn link_fault(path: &[u8], target: &[u8]) -> Option<&'static str> {
    let Ok(target) = std::str::from_utf8(target) else { return Some("its target is not UTF-8") };
    if target.is_empty() || target.len() > MAX_TARGET || is_odd_text(target) {
        return Some("its target is empty, too long or has hidden characters");
    }
    if target.starts_with('/') {
        return Some("its target is absolute");
    }
    let mut above = path.split(|byte| *byte == b'/').count() - 1;
    let mut goes_down = false;
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." if goes_down => return Some("its target goes up behind another name"),
            ".." if above == 0 => return Some("its target is outside the repository"),
            ".." => above -= 1,
            name if is_git_dir(name) => return Some("its target is in git's own directory"),
            _ => goes_down = true,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: PathBounds = PathBounds { depth: 8, length: 300 };

    #[test]
    fn every_spelling_of_git_is_known() {
        for name in
            [".git", ".GIT", ".git. .", "git~27", ".g\u{200c}it", ".g\u{131}t", ".git::$INDEX_ALLOCATION"]
        {
            for path in [name.to_owned(), format!("a/{name}/config")] {
                assert!(faults(path.as_bytes(), BOUNDS).contains(&PathFault::GitDirectory), "{path}");
            }
        }
        for name in [".gitignore", "git", "git~x", ".github", "a.git"] {
            assert_eq!(faults(name.as_bytes(), BOUNDS), [], "{name}");
        }
    }

    #[test]
    fn blanks_are_seen_between_other_characters() {
        for name in ["Screenshot 2026-11-29 at 9.41.12\u{202f}PM.png", "1\u{a0}000 a.csv", "漢\u{3000}字.txt"]
        {
            assert_eq!(faults(name.as_bytes(), BOUNDS), [], "{name:?}");
            assert_eq!(link_fault(b"link", name.as_bytes()), None, "{name:?}");
        }
    }

    #[test]
    fn odd_deep_and_long_paths_are_known() {
        let long = "a".repeat(256);
        for (path, fault) in [
            (&b"a/b/c/d/e/f/g/h/i"[..], PathFault::Deep),
            (long.as_bytes(), PathFault::Long),
            (b"a\xff", PathFault::Odd),
            (b"a\nb", PathFault::Odd),
            (b"a\r", PathFault::Odd),
            (b"a/../b", PathFault::Odd),
            (b"./a", PathFault::Odd),
            (b"a//b", PathFault::Odd),
            (b"a\\..\\b", PathFault::Odd),
            (b"a\xe2\x80\xaeb", PathFault::Odd),
            ("d/a\u{a0}".as_bytes(), PathFault::Odd),
            ("\u{202f}a/b".as_bytes(), PathFault::Odd),
            ("\u{3000}".as_bytes(), PathFault::Odd),
            ("a\u{34f}b".as_bytes(), PathFault::Odd),
            ("a\u{115f}b".as_bytes(), PathFault::Odd),
            ("a\u{2800}b".as_bytes(), PathFault::Odd),
            ("a\u{3164}b".as_bytes(), PathFault::Odd),
            ("a\u{fe0f}b".as_bytes(), PathFault::Odd),
            ("a\u{e0041}b".as_bytes(), PathFault::Odd),
        ] {
            assert_eq!(faults(path, BOUNDS), [fault], "{path:?}");
        }
    }

    #[test]
    fn links_stay_inside() {
        for (path, target) in
            [("a", "b"), ("d/a", "../b"), ("d/e/a", "../../b/c"), ("a", "./b"), ("d/a", ".."), ("a", "b/")]
        {
            assert_eq!(link_fault(path.as_bytes(), target.as_bytes()), None, "{path} -> {target}");
        }
        for (path, target) in [
            ("a", "/etc/passwd"),
            ("a", ".."),
            ("a", "../b"),
            ("d/a", "../../b"),
            ("a", "b/../../c"),
            ("a", "b/.."),
            ("a", ".git/config"),
            ("d/a", "../.GIT/hooks"),
            ("a", "git~1"),
            ("a", ""),
            ("a", "b\nc"),
        ] {
            assert!(link_fault(path.as_bytes(), target.as_bytes()).is_some(), "{path} -> {target}");
        }
    }

    proptest! {
        #[test]
        fn no_accepted_link_climbs_out(
            depth in 0_usize..4,
            target in proptest::collection::vec(prop_oneof![Just(".."), Just("."), Just("x"), Just("")], 1..8),
        ) {
            let path = format!("{}l", "d/".repeat(depth));
            let target = target.join("/");
            if link_fault(path.as_bytes(), target.as_bytes()).is_none() {
                let mut level = i64::try_from(depth).unwrap();
                for name in target.split('/') {
                    level += match name { ".." => -1, "x" => 1, _ => 0 };
                    prop_assert!(level >= 0, "{path} -> {target}");
                }
            }
        }
    }
}

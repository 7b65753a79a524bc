//! rule lists the rules that work must keep, and the form in which a broken one is reported.

use std::fmt;

use platform_runtime::terminal;
use serde::{Deserialize, Serialize};

/// Most bytes of a path or detail that are reported.
pub(super) const MAX_SHOWN: usize = 300;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident => $words:literal,)+) => {
        /// Rule that an agent's work must keep.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum RelayRule {
            $($(#[$doc])* $rule,)+
        }

        impl RelayRule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$rule,)+];

            /// Returns the rule in words.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$rule => $words,)+
                }
            }
        }
    };
}

rules! {
    /// The bundle's header is odd.
    BundleForm => "a bundle has a header of version 2 or 3, plain names and one pack",
    /// The bundle names other branches.
    BundleReference => "a bundle holds the agent's branch and no other",
    /// The bundle needs objects that it must not.
    BundlePrerequisite => "a bundle builds on commits that the clone began with",
    /// The bundle is too large.
    BundleSize => "a bundle keeps the limits on bytes and objects",
    /// Git cannot or must not take the objects.
    DamagedObjects => "all objects are whole and pass git's checks",
    /// The objects cost too much to take.
    CostlyObjects => "objects are unpacked within the limits on time and memory",
    /// The branch is not a commit.
    NoCommit => "the branch ends with a commit",
    /// The commits do not build on the clone.
    OtherHistory => "all commits descend from the commit that the clone began with",
    /// There are too many commits.
    ManyCommits => "the number of commits keeps its limit",
    /// There are too many objects.
    ManyObjects => "the number of new objects keeps its limit",
    /// There are too many files.
    ManyFiles => "the number of changed files keeps its limit",
    /// A file is too large.
    LargeFile => "each file keeps the limit on its size",
    /// All files are too large together.
    LargeWork => "all new content keeps the limit on its size",
    /// A path is nested too deeply.
    DeepPath => "paths keep the limit on their depth",
    /// A path is too long.
    LongPath => "paths keep the limits on their length",
    /// A path has characters that hide it or that programs misread.
    OddPath => "paths are UTF-8 without control, invisible and direction characters, special blanks around a name, `.` and `..`",
    /// A path leads into git's own directory.
    GitDirectory => "no path is `.git`, in any spelling that a file system takes for it",
    /// A directory is a repository.
    NestedRepository => "no directory is a bare repository",
    /// An entry is a submodule.
    Submodule => "no entry is a submodule",
    /// An entry has a mode that git does not write.
    OddMode => "entries are plain files, executables or links",
    /// A link leads elsewhere.
    Link => "links lead to places inside the repository",
    /// A path belongs to people.
    ProtectedPath => "protected paths stay as they are",
    /// A file, name, message or text holds a secret.
    Secret => "no file, name, commit, tag or text of a pull request holds a secret",
}

impl fmt::Display for RelayRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Rule that was broken, and the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// The rule.
    pub rule: RelayRule,
    /// Path in the repository, made safe to print. `None` if the rule is not about one path.
    pub path: Option<String>,
    /// Reason in words, made safe to print. It never holds a secret that was found.
    pub detail: String,
}

impl Objection {
    /// Creates an objection to the work as a whole.
    pub(crate) fn new(rule: RelayRule, detail: impl AsRef<str>) -> Self {
        Self { rule, path: None, detail: shown(detail.as_ref()) }
    }

    /// Creates an objection to one path.
    pub(crate) fn at(rule: RelayRule, path: &[u8], detail: impl AsRef<str>) -> Self {
        let path = shown(&String::from_utf8_lossy(path));
        Self { path: Some(path), ..Self::new(rule, detail) }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{path}: {}; {}", self.detail, self.rule),
            None => write!(f, "{}; {}", self.detail, self.rule),
        }
    }
}

/// Returns a text of an agent on one line, with marks for what changes a terminal or hides characters, and not too long.
fn shown(text: &str) -> String {
    let mut shown = terminal::visible(text);
    shown.truncate(shown.floor_char_boundary(MAX_SHOWN));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_names_when_stored() {
        let names = RelayRule::ALL.iter().map(|rule| serde_json::to_string(rule).unwrap());
        assert_eq!(names.clone().next().unwrap(), "\"bundle-form\"");
        for (name, rule) in names.zip(RelayRule::ALL) {
            assert_eq!(serde_json::from_str::<RelayRule>(&name).unwrap(), *rule);
        }
    }

    #[test]
    fn objections_show_no_control_characters() {
        let objection = Objection::at(RelayRule::OddPath, b"a\x1b[31m\n\xe2\x80\xae\xff", "b\r\u{7}");
        let text = objection.to_string();
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        assert!(text.starts_with("a⟨U+001B⟩[31m⟨U+000A⟩⟨U+202E⟩\u{fffd}: b⟨U+000D⟩⟨U+0007⟩"), "{text:?}");
        let hidden = Objection::at(RelayRule::OddPath, "a\u{a0}".repeat(2).as_bytes(), "x");
        assert_eq!(hidden.path.as_deref(), Some("a⟨U+00A0⟩a⟨U+00A0⟩"));
        assert!(Objection::new(RelayRule::Secret, "x".repeat(1000)).detail.len() <= MAX_SHOWN);
    }
}

//! Applies `.gitignore` and `.ignore` files, which may be hostile: they are read like any other file of a tree.

use std::{
    collections::HashMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use platform_core::limit::ByteSize;
use serde::{Deserialize, Serialize};

use super::{beneath::TreeRoot, file_name::GIT_DIR, git_dirs::COMMON_DIR_FILE, path::any_path};

/// Names of files with rules. Those of a later one win.
pub(crate) const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Largest file with rules; a larger one has none.
const MAX_IGNORE_FILE_SIZE: ByteSize = ByteSize::mib(1);

/// Rules from above the tree, or from git's own exclude files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OuterRules {
    /// Path of the tree, as seen from the directory in which the rules hold.
    #[serde(with = "any_path")]
    prefix: PathBuf,
    /// Lines of the file.
    text: String,
}

/// Rules in force in a tree. Those of deeper directories win.
#[derive(Default)]
pub(crate) struct IgnoreRules {
    by_dir: HashMap<PathBuf, Gitignore>,
    /// Rules from outside the tree with its path there, the strongest first.
    outer: Vec<(PathBuf, Gitignore)>,
}

impl OuterRules {
    /// Reads the rules outside of `dir` that git applies in it: those of the directories above it in the same
    /// repository, and the excludes of the repository and the user.
    pub(crate) fn of(dir: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        let repository =
            dir.ancestors().find(|above| fs::symlink_metadata(above.join(GIT_DIR)).is_ok()).unwrap_or(dir);
        let prefix = |above: &Path| dir.strip_prefix(above).map(Path::to_owned).unwrap_or_default();
        let above = dir.ancestors().skip(1).take_while(|above| above.starts_with(repository));
        for above in above {
            let texts = IGNORE_FILES.iter().filter_map(|name| read_rules(above, Path::new(name)));
            found.push(Self { prefix: prefix(above), text: texts.collect::<Vec<_>>().join("\n") });
        }
        let exclude = read_rules(&common_git_dir(repository), Path::new("info/exclude"));
        let global = gitconfig_excludes_path().and_then(|path| {
            let name = path.file_name()?.to_owned();
            read_rules(path.parent()?, Path::new(&name))
        });
        for text in [exclude, global].into_iter().flatten() {
            found.push(Self { prefix: prefix(repository), text });
        }
        found.retain(|rules| !rules.text.is_empty());
        found
    }
}

/// Returns git's own directory for `repository`. A linked working tree has a file instead, which leads to it.
fn common_git_dir(repository: &Path) -> PathBuf {
    let git_dir = repository.join(GIT_DIR);
    let Some(link) = read_rules(repository, Path::new(GIT_DIR)) else { return git_dir };
    let Some(linked) = link.trim_end().strip_prefix("gitdir: ") else { return git_dir };
    let linked = repository.join(linked);
    match read_rules(&linked, Path::new(COMMON_DIR_FILE)) {
        Some(common) => linked.join(common.trim_end()),
        None => linked,
    }
}

fn read_rules(dir: &Path, relative: &Path) -> Option<String> {
    let content = TreeRoot::open(dir).ok()?.read_file(relative, MAX_IGNORE_FILE_SIZE).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

impl IgnoreRules {
    /// Creates the rules that hold before any file of the tree is read.
    pub(crate) fn new(outer: &[OuterRules]) -> Self {
        let parsed = |rules: &OuterRules| (rules.prefix.clone(), parse(rules.text.as_bytes()));
        Self { by_dir: HashMap::new(), outer: outer.iter().map(parsed).collect() }
    }

    /// Reads the files with rules in directory `dir` of `tree`.
    pub(crate) fn read_dir(&mut self, tree: &TreeRoot, dir: &Path) {
        let read = |name: &&str| tree.open_file(&dir.join(name)).ok()?.content(MAX_IGNORE_FILE_SIZE).ok();
        let texts: Vec<_> = IGNORE_FILES.iter().filter_map(read).collect();
        if !texts.is_empty() {
            self.add(dir, &texts.join(&b'\n'));
        }
    }

    /// Adds `text` as the rules of directory `dir`.
    pub(crate) fn add(&mut self, dir: &Path, text: &[u8]) {
        let rules = parse(text);
        if !rules.is_empty() {
            self.by_dir.insert(dir.to_owned(), rules);
        }
    }

    /// Returns whether the rules name `path`, given that they do not name its parent.
    pub(crate) fn ignores(&self, path: &Path, entry: EntryForm) -> bool {
        let is_dir = entry == EntryForm::Directory;
        for dir in path.ancestors().skip(1) {
            let Some(rules) = self.by_dir.get(dir) else { continue };
            let Ok(below) = path.strip_prefix(dir) else { continue };
            let matched = rules.matched(below, is_dir);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        let matched = self.outer.iter().map(|(prefix, rules)| rules.matched(prefix.join(path), is_dir));
        matched.into_iter().find(|matched| !matched.is_none()).is_some_and(|matched| matched.is_ignore())
    }
}

/// Form of an entry, as far as a rule can ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    Directory,
    Other,
}

/// Parses the lines of a file with rules; a line that is not a rule is left out, as git does.
fn parse(text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = String::from_utf8_lossy(text);
    for line in text.trim_start_matches('\u{feff}').lines() {
        if builder.add_line(None, line).is_err() {
            tracing::debug!(line, "a line that is not a rule is left out");
        }
    }
    builder.build().unwrap_or_else(|_invalid| Gitignore::empty())
}

impl fmt::Debug for IgnoreRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IgnoreRules").field("dirs", &self.by_dir.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_rules_win() {
        let outer = [OuterRules { prefix: PathBuf::from("front"), text: "/front/out\n*.swp".to_owned() }];
        let mut rules = IgnoreRules::new(&outer);
        rules.add(Path::new(""), b"*.log\nbuild/\n/only-here\n# note\n[");
        rules.add(Path::new("deep"), b"!keep.log\n");
        let ignores = |path: &str| rules.ignores(Path::new(path), EntryForm::Other);
        for path in ["a.log", "d/a.log", "deep/a.log", "only-here", "out", "d/a.swp"] {
            assert!(ignores(path), "{path}");
        }
        for path in ["a.txt", "deep/keep.log", "d/only-here", "d/out", "build"] {
            assert!(!ignores(path), "{path}");
        }
        assert!(rules.ignores(Path::new("d/build"), EntryForm::Directory));
    }
}

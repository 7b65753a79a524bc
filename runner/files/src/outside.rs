//! Finds the files that an agent left in its workspace beside the directory that is compared and taken over.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use platform_core::name::path::REPO_DIR;
use rustix::{
    fs::{Dir, FileType},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::beneath::{TreeRoot, is_dot};

/// Most entries that are looked at: the agent decides how many there are.
const MAX_ENTRIES: u64 = 10_000;
/// Most names that are kept.
const MAX_NAMES: usize = 5;
/// Directory that each file system has.
const LOST_FOUND: &str = "lost+found";

/// Files beside the directory of a run's files. They are in no diff and in no commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideFiles {
    /// Number of files and links, or the most that are counted, if there are more.
    pub files: u64,
    /// The first names in the workspace, sorted; that of a directory ends with a slash.
    pub names: Vec<String>,
}

impl OutsideFiles {
    /// Finds the files in the workspace `tree`. Leaves out names that begin with a dot, where agents and this host keep
    /// what they need, and those of `given`. Follows no link. What cannot be read is not counted.
    #[must_use]
    pub fn of(tree: &Path, given: &[&str]) -> Self {
        let Ok(root) = TreeRoot::open(tree) else { return Self::default() };
        let mut walk = BesideWalk { root, seen: 0 };
        let is_own = |name: &OsStr| {
            let known = [REPO_DIR, LOST_FOUND].into_iter().chain(given.iter().copied());
            !name.as_bytes().starts_with(b".") && known.into_iter().all(|known| name != known)
        };
        let top = walk.list(Path::new("")).unwrap_or_default();
        let mut found: Vec<_> = top
            .into_iter()
            .filter(|(path, _)| path.file_name().is_some_and(is_own))
            .map(|(path, form)| walk.count(path, form))
            .filter(|(_, files)| *files > 0)
            .collect();
        found.sort();
        let files = found.iter().map(|(_, files)| files).sum();
        let names = found.into_iter().map(|(name, _)| name).take(MAX_NAMES).collect();
        Self { files, names }
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Returns the number and names in words; the names are those that an agent chose.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { files, names } = self;
        let noun = if *files == 1 { "file" } else { "files" };
        let more = if names.len() == MAX_NAMES && *files > MAX_NAMES as u64 { ", …" } else { "" };
        format!("{files} {noun} outside {REPO_DIR} ({}{more})", names.join(", "))
    }
}

/// Bounded walk through a workspace.
struct BesideWalk {
    root: TreeRoot,
    seen: u64,
}

impl BesideWalk {
    /// Returns the name of an entry of the workspace, and the number of files that it is or has.
    fn count(&mut self, path: PathBuf, form: FileType) -> (String, u64) {
        let name = path.display().to_string();
        if form != FileType::Directory {
            return (name, 1);
        }
        let mut files = 0;
        let mut pending = vec![path];
        while let Some(dir) = pending.pop() {
            for (path, form) in self.list(&dir).unwrap_or_default() {
                match form {
                    FileType::Directory => pending.push(path),
                    _ => files += 1,
                }
            }
        }
        (format!("{name}/"), files)
    }

    /// Lists the entries of a directory, while the bound allows it.
    fn list(&mut self, dir: &Path) -> Result<Vec<(PathBuf, FileType)>, Errno> {
        let mut entries = Vec::new();
        for entry in Dir::new(self.root.open_dir(dir)?)? {
            let entry = entry?;
            if is_dot(entry.file_name()) {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                break;
            }
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            entries.push((dir.join(name), entry.file_type()));
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn files_beside_the_repository_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for inside in ["repo", ".cogni", ".claude-code-state", "lost+found"] {
            fs::create_dir(tree.join(inside)).unwrap();
            fs::write(tree.join(inside).join("file"), "").unwrap();
        }
        fs::write(tree.join("AGENTS.md"), "").unwrap();
        fs::create_dir(tree.join("empty")).unwrap();
        let found = |given: &[&str]| OutsideFiles::of(tree, given);
        assert!(found(&["AGENTS.md"]).is_empty(), "control: {:?}", found(&["AGENTS.md"]));
        assert_eq!(found(&[]).in_words(), "1 file outside repo (AGENTS.md)");
        fs::write(tree.join("NOTES.md"), "").unwrap();
        fs::create_dir_all(tree.join("out/deep")).unwrap();
        fs::write(tree.join("out/deep/log"), "").unwrap();
        symlink("/", tree.join("out/all")).unwrap();
        assert_eq!(found(&["AGENTS.md"]).in_words(), "3 files outside repo (NOTES.md, out/)");
    }
}

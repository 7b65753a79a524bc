//! Recognises directories that git takes for a repository's own, whatever they are called.
//!
//! Git runs what the settings of such a directory name, such as `core.fsmonitor`. A directory is one if it is called
//! `.git`, or if it has the entries of a bare repository.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::Dir;

use super::{
    beneath::TreeRoot,
    error::Error,
    file_name::{GIT_DIR, folded_name, is_git_dir},
    path::RelativePath,
};

/// Entry without which a directory is not a repository.
const HEAD: &str = "HEAD";
/// Entries of a bare repository besides its head.
const BARE_ENTRIES: [&str; 2] = ["objects", "refs"];
/// File that names the directory with the other entries.
pub(crate) const COMMON_DIR_FILE: &str = "commondir";

/// Names of entries by their directory, which find bare repositories in a tree that exists only in parts.
#[derive(Debug, Default)]
pub(crate) struct NamesByDir(HashMap<PathBuf, HashSet<String>>);

impl NamesByDir {
    /// Adds `path` and the directories above it.
    pub(crate) fn add(&mut self, path: &RelativePath) {
        let mut below = path.as_path();
        while let (Some(dir), Some(name)) = (below.parent(), below.file_name()) {
            self.0.entry(dir.to_owned()).or_default().insert(folded(name));
            below = dir;
        }
    }

    /// Adds the entries that `tree` has in the directories that are known.
    pub(crate) fn add_present(&mut self, tree: &TreeRoot) {
        for (dir, names) in &mut self.0 {
            // A directory that is missing has no entries; one that cannot be read is refused when it is written.
            let Ok(listed) = tree.open_dir(dir).and_then(Dir::new) else { continue };
            let entries = listed.filter_map(Result::ok);
            names.extend(entries.map(|entry| folded(OsStr::from_bytes(entry.file_name().to_bytes()))));
        }
    }

    /// Returns the topmost bare repository that `path` is in, if there is one.
    pub(crate) fn bare_repository_of(&self, path: &RelativePath) -> Option<&Path> {
        let above: Vec<_> = path.as_path().ancestors().skip(1).collect();
        above.into_iter().rev().find_map(|dir| {
            let (dir, names) = self.0.get_key_value(dir)?;
            is_bare(|name| names.contains(&folded_name(name))).then_some(dir.as_path())
        })
    }
}

fn folded(name: &OsStr) -> String {
    folded_name(&name.to_string_lossy())
}

fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has(HEAD) && (has(COMMON_DIR_FILE) || BARE_ENTRIES.iter().all(|name| has(name)))
}

/// Refuses `dir`, absolute and without links, if it is in a repository's own directory.
pub(crate) fn refuse_git_dir(dir: &Path) -> Result<(), Error> {
    let is_bare_dir = |dir: &Path| is_bare(|name| fs::symlink_metadata(dir.join(name)).is_ok());
    let is_own = |dir: &&Path| dir.file_name().is_some_and(is_git_dir) || is_bare_dir(dir);
    match dir.ancestors().find(is_own) {
        None => Ok(()),
        Some(git_dir) => Err(Error::InGitDir { path: dir.to_owned(), git_dir: git_dir.to_owned() }),
    }
}

/// Returns the path of `dir` as seen from the repository that encloses it; without one, from the root of all files.
pub(crate) fn path_in_repository(dir: &Path) -> Option<RelativePath> {
    let top = dir.ancestors().find(|above| fs::symlink_metadata(above.join(GIT_DIR)).is_ok());
    let below = dir.strip_prefix(top.unwrap_or(Path::new("/"))).unwrap_or(dir);
    RelativePath::parse(below).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository_in(paths: &[&str], path: &str) -> Option<PathBuf> {
        let mut names = NamesByDir::default();
        paths.iter().for_each(|path| names.add(&RelativePath::parse(path).unwrap()));
        names.bare_repository_of(&RelativePath::parse(path).unwrap()).map(Path::to_owned)
    }

    #[test]
    fn bare_repositories_are_found_by_their_entries() {
        let bare = ["sub/HEAD", "sub/config", "sub/objects/x", "sub/refs/x", "a"];
        assert_eq!(repository_in(&bare, "sub/config"), Some("sub".into()));
        assert_eq!(repository_in(&bare, "sub/objects/x"), Some("sub".into()));
        assert_eq!(repository_in(&bare, "a"), None);
        assert_eq!(repository_in(&bare[1..], "sub/config"), None, "without a head");
        assert_eq!(
            repository_in(&["HEAD", "objects/x", "refs/x"], "HEAD"),
            Some("".into()),
            "the tree itself"
        );
        assert_eq!(repository_in(&["d/head", "d/CommonDir", "d/x/y"], "d/x/y"), Some("d".into()));
    }
}

//! Finds what the files of a clone lack: those of its submodules, and those that Git LFS keeps elsewhere.

use std::path::Path;

use platform_core::limit::ByteSize;
use serde::{Deserialize, Serialize};

use super::{
    selected::{SelectedEntry, SelectedForm},
    selection::Selection,
};

/// File of a repository that names its submodules.
const SUBMODULES_FILE: &str = ".gitmodules";
/// File that says which files Git LFS keeps, in any directory.
const ATTRIBUTES_FILE: &str = ".gitattributes";
/// Attribute of files that Git LFS keeps.
const LFS_ATTRIBUTE: &str = "filter=lfs";
/// First line of a file that stands for one of Git LFS.
const LFS_FIRST_LINE: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// Largest file that may stand for one of Git LFS, by its specification.
const MAX_POINTER: ByteSize = ByteSize(1024);
/// Largest file of submodules or attributes that is read.
const MAX_RULES: ByteSize = ByteSize::mib(1);

/// Files that a clone lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitGaps {
    /// Number of submodules: their directories are empty.
    #[serde(default)]
    pub submodules: u64,
    /// Number of files that only stand for files of Git LFS.
    #[serde(default)]
    pub lfs_pointers: u64,
}

impl GitGaps {
    /// Returns whether nothing is lacking.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns a line for each kind of files that are lacking.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let are = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let submodules =
            || format!("{} without files: submodules are not fetched", are(self.submodules, "submodule"));
        let pointers = || {
            format!("{} of Git LFS without content: only pointers are there", are(self.lfs_pointers, "file"))
        };
        let lines = [(self.submodules > 0).then(submodules), (self.lfs_pointers > 0).then(pointers)];
        lines.into_iter().flatten().collect()
    }
}

impl Selection {
    /// Finds what these files of a clone lack. A file that cannot be read counts as none of either kind.
    #[must_use]
    pub fn git_gaps(&self) -> GitGaps {
        let content = |path: &Path, max| self.root.read_file(path, max).unwrap_or_default();
        let own = || self.entries.iter().filter(|entry| !entry.path.is_in_git_dir());
        let submodules = content(Path::new(SUBMODULES_FILE), MAX_RULES);
        let submodules = String::from_utf8_lossy(&submodules);
        let is_submodule = |line: &&str| line.trim_start().starts_with("[submodule ");
        let has_lfs = own().filter(|entry| entry.path.as_path().ends_with(ATTRIBUTES_FILE)).any(|entry| {
            String::from_utf8_lossy(&content(entry.path.as_path(), MAX_RULES)).contains(LFS_ATTRIBUTE)
        });
        let is_pointer = |entry: &&SelectedEntry| {
            matches!(entry.form, SelectedForm::File(size) if size <= MAX_POINTER)
                && content(entry.path.as_path(), MAX_POINTER).starts_with(LFS_FIRST_LINE)
        };
        GitGaps {
            submodules: submodules.lines().filter(is_submodule).count() as u64,
            // Repositories without LFS are not read file by file.
            lfs_pointers: if has_lfs { own().filter(is_pointer).count() as u64 } else { 0 },
        }
    }
}

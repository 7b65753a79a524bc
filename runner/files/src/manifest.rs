//! Describes the files a run received: each with its hash, so that later changes are seen on either side.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    ignores::OuterRules,
    path::{RelativePath, any_path},
    selection::Origin,
};

/// Version of the format.
const FORMAT: u32 = 1;

/// Files that a run received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    #[serde(with = "any_path")]
    source_dir: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) outer_rules: Vec<OuterRules>,
    entries: Vec<ManifestEntry>,
}

/// File, link or directory that a run received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Path below the directory.
    pub path: RelativePath,
    /// Form and content.
    pub form: StoredForm,
}

/// Form and content of a stored entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredForm {
    /// A regular file.
    File(StoredFile),
    /// A symbolic link with its target.
    Link(#[serde(with = "any_path")] PathBuf),
    /// A directory.
    Directory,
}

/// Facts about a stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Number of bytes.
    pub size: u64,
    /// SHA-256 of the content.
    pub sha256: ContentHash,
    /// Permission of the owner to execute the file.
    pub executable: bool,
    /// Position of the content in the stage's data.
    pub(crate) offset: u64,
}

/// SHA-256 of a content, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// Returns the hash that `hasher` has reached.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the hash of `content`.
    pub(crate) fn of(content: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(content))
    }

    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Manifest {
    pub(crate) fn new(source_dir: &Path, entries: Vec<ManifestEntry>) -> Self {
        Self {
            format: FORMAT,
            source_dir: source_dir.to_owned(),
            origin: Origin::Directory,
            outer_rules: Vec::new(),
            entries,
        }
    }

    /// Returns the directory the files came from, absolute.
    #[must_use]
    pub fn source_dir(&self) -> &Path {
        &self.source_dir
    }

    /// Returns all entries, sorted by path: each directory is before its content.
    #[must_use]
    pub fn entries(&self) -> &[ManifestEntry] {
        &self.entries
    }

    /// Returns the entry at `path`.
    #[must_use]
    pub fn entry(&self, path: &RelativePath) -> Option<&ManifestEntry> {
        let found = self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
        self.entries.get(found)
    }

    /// Returns whether the files can be what [`Self::new`] was given: sorted, each in a directory, and of this format.
    pub(crate) fn is_sound(&self) -> bool {
        let is_dir =
            |path: &RelativePath| self.entry(path).is_some_and(|entry| entry.form == StoredForm::Directory);
        let has_parent = |entry: &ManifestEntry| entry.path.parent().is_none_or(|parent| is_dir(&parent));
        self.format == FORMAT
            && self.entries.is_sorted_by(|one, next| one.path < next.path)
            && self.entries.iter().all(has_parent)
    }
}

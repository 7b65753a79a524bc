//! Compares the files a run received with those it has now.

use std::path::PathBuf;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    beneath::Unreadable,
    error::Error,
    manifest::{ContentHash, StoredFile, StoredForm},
    path::{RelativePath, any_path},
    result_tree::{ResultForm, ResultTree, reason},
    stage::Stage,
    stage_writer::BUFFER_SIZE,
};

/// Changes that a run has made to its files.
#[derive(Debug)]
pub struct Changes {
    changes: Vec<Change>,
    unreadable: Vec<UnreadableEntry>,
    /// Paths that were asked for; all of them if empty.
    within: Vec<RelativePath>,
}

/// Entry of a result that cannot be read, so that it is not known what the run did to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableEntry {
    /// The entry.
    pub path: RelativePath,
    /// Reason, which follows the path in a sentence.
    pub why: String,
}

/// Change of one file or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file.
    pub path: RelativePath,
    /// Difference between both sides.
    #[serde(rename = "change")]
    pub form: ChangeForm,
    /// The side that the run received.
    pub old: Option<OldSide>,
    /// The side that the run has now.
    pub new: Option<NewSide>,
}

/// Difference between both sides of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeForm {
    /// The run created the file.
    Added,
    /// The run removed the file.
    Deleted,
    /// The content, or a link's target, is another.
    Modified,
    /// Only the permission to execute is another.
    ModeChanged,
    /// A file became a link, or a link a file.
    TypeChanged,
}

/// File or link that the run received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OldSide {
    /// A regular file.
    File(#[serde(serialize_with = "without_offset")] StoredFile),
    /// A link with its target.
    Link(#[serde(with = "any_path")] PathBuf),
}

/// File or link that the run has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NewSide {
    /// A regular file.
    File {
        /// Number of bytes.
        size: u64,
        /// Permission of the owner to execute the file.
        executable: bool,
    },
    /// A link with its target.
    Link(#[serde(with = "any_path")] PathBuf),
}

impl Changes {
    /// Compares `stage` with `result`. Hashes only files that kept their size.
    ///
    /// # Errors
    /// [`Error::ResultRemoved`], because then a missing file does not show that the run removed it.
    pub fn between(stage: &Stage, result: &ResultTree) -> Result<Self, Error> {
        let mut changes = Self { changes: Vec::new(), unreadable: Vec::new(), within: Vec::new() };
        let manifest = stage.manifest();
        for (path, form) in result.entries() {
            let new = match form {
                ResultForm::Directory => continue,
                ResultForm::Unreadable(why) => {
                    changes.unreadable.push(UnreadableEntry { path: path.clone(), why: why.clone() });
                    continue;
                }
                ResultForm::File { size, executable } => {
                    NewSide::File { size: *size, executable: *executable }
                }
                ResultForm::Link(target) => NewSide::Link(target.clone()),
            };
            let old = manifest.entry(path).and_then(|entry| OldSide::of(&entry.form));
            changes.compare(result, path, old, new);
        }
        for entry in manifest.entries() {
            let Some(old) = OldSide::of(&entry.form) else { continue };
            let is_gone = matches!(result.form(&entry.path), None | Some(ResultForm::Directory));
            if is_gone && !entry.path.is_in_git_dir() && !changes.is_below_unreadable(&entry.path) {
                let path = entry.path.clone();
                changes.changes.push(Change { path, form: ChangeForm::Deleted, old: Some(old), new: None });
            }
        }
        changes.changes.sort_by(|one, other| one.path.cmp(&other.path));
        result.verify_kept()?;
        Ok(changes)
    }

    fn is_below_unreadable(&self, path: &RelativePath) -> bool {
        self.unreadable.iter().any(|entry| path.is_within(&entry.path))
    }

    fn compare(&mut self, result: &ResultTree, path: &RelativePath, old: Option<OldSide>, new: NewSide) {
        let form = match (&old, &new) {
            (None, _) => Some(ChangeForm::Added),
            (Some(OldSide::Link(old)), NewSide::Link(new)) => (old != new).then_some(ChangeForm::Modified),
            (Some(OldSide::File(old)), NewSide::File { size, executable }) => {
                match keeps_content(result, path, old, *size) {
                    Ok(false) => Some(ChangeForm::Modified),
                    Ok(true) => (old.executable != *executable).then_some(ChangeForm::ModeChanged),
                    Err(why) => {
                        self.unreadable.push(UnreadableEntry { path: path.clone(), why: reason(why) });
                        None
                    }
                }
            }
            (Some(_), _) => Some(ChangeForm::TypeChanged),
        };
        if let Some(form) = form {
            self.changes.push(Change { path: path.clone(), form, old, new: Some(new) });
        }
    }

    /// Returns the changes, sorted by path.
    #[must_use]
    pub fn all(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the entries that cannot be read.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableEntry] {
        &self.unreadable
    }

    /// Leaves only the changes at or below `paths`; all of them if there are no paths.
    #[must_use]
    pub fn within(mut self, paths: &[RelativePath]) -> Self {
        self.within = paths.to_vec();
        let Self { changes, unreadable, within } = self;
        let covers = |path: &RelativePath| is_within_any(path, &within);
        let changes = changes.into_iter().filter(|change| covers(&change.path)).collect();
        let unreadable = unreadable.into_iter().filter(|entry| covers(&entry.path)).collect();
        Self { changes, unreadable, within }
    }

    /// Returns whether `path` is among the paths that were asked for.
    pub(crate) fn covers(&self, path: &RelativePath) -> bool {
        is_within_any(path, &self.within)
    }
}

fn is_within_any(path: &RelativePath, paths: &[RelativePath]) -> bool {
    paths.is_empty() || paths.iter().any(|above| path.is_within(above))
}

/// Writes what concerns readers of a stored file.
fn without_offset<S: serde::Serializer>(file: &StoredFile, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct FileJson<'f> {
        size: u64,
        executable: bool,
        sha256: &'f ContentHash,
    }
    let StoredFile { size, executable, sha256, .. } = file;
    FileJson { size: *size, executable: *executable, sha256 }.serialize(to)
}

impl Change {
    /// Returns the permission to execute of the new side, if it is a file.
    pub(crate) const fn new_mode(&self) -> Option<bool> {
        if let Some(NewSide::File { executable, .. }) = &self.new { Some(*executable) } else { None }
    }

    /// Returns the size of the new side, which is 0 unless it is a file.
    pub(crate) const fn new_size(&self) -> u64 {
        if let Some(NewSide::File { size, .. }) = &self.new { *size } else { 0 }
    }
}

impl OldSide {
    fn of(form: &StoredForm) -> Option<Self> {
        match form {
            StoredForm::File(file) => Some(Self::File(file.clone())),
            StoredForm::Link(target) => Some(Self::Link(target.clone())),
            StoredForm::Directory => None,
        }
    }
}

fn keeps_content(
    result: &ResultTree,
    path: &RelativePath,
    old: &StoredFile,
    size: u64,
) -> Result<bool, Unreadable> {
    Ok(old.size == size && hash(result, path)? == old.sha256)
}

/// Returns the hash of the file `path` of `result`.
pub(crate) fn hash(result: &ResultTree, path: &RelativePath) -> Result<ContentHash, Unreadable> {
    let mut file = result.open_file(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_SIZE];
    while let len @ 1.. = file.read_piece(&mut buffer)? {
        hasher.update(&buffer[..len]);
    }
    Ok(ContentHash::finish(hasher))
}

//! Selects the files of a directory that a run receives, and reports what is left out, before anything is copied.

use std::{
    fs,
    path::{Path, PathBuf},
};

use platform_core::limit::ByteSize;

use super::{
    beneath::TreeRoot,
    error::{CopyProblem, Error},
    git_dirs::refuse_git_dir,
    ignores::OuterRules,
    path::RelativePath,
    room::check_room,
    rules::{CopyBounds, CopyRules, Scope},
    selected::{SelectedEntry, SelectedForm},
    walk::{SourceWalk, Take},
};

/// Files, links and directories that a run receives.
#[derive(Debug)]
pub struct Selection {
    pub(crate) source_dir: PathBuf,
    pub(crate) root: TreeRoot,
    pub(crate) entries: Vec<SelectedEntry>,
    pub(crate) outer_rules: Vec<OuterRules>,
    pub(crate) origin: Origin,
    files: u64,
    bytes: ByteSize,
    left_out: Vec<RelativePath>,
}

/// Origin of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The directory itself, without any repository's own directory.
    Directory,
    /// A fresh clone of the directory, with its `.git`.
    Clone,
}

impl Selection {
    /// Selects the files of `dir` by `rules`. Follows no link below it, and enters no other file system.
    ///
    /// # Errors
    /// [`Error::Uncopyable`] with all problems at once: special files, too many or too large files, and unreadable
    /// ones. [`Error::InGitDir`] for a directory that is git's own.
    pub fn of(dir: &Path, rules: &CopyRules) -> Result<Self, Error> {
        let source_dir = fs::canonicalize(dir).map_err(Error::io("open the directory", dir))?;
        refuse_git_dir(&source_dir)?;
        let outer_rules = match rules.scope {
            Scope::Tracked => OuterRules::of(&source_dir),
            Scope::All => Vec::new(),
        };
        let take = Take::Rules { scope: rules.scope, include: &rules.include };
        let walk = SourceWalk::new(&source_dir, &outer_rules, take)?.run(rules.bounds.files)?;
        let selection = Self::checked(walk, &source_dir, rules.bounds)?;
        if let Some(pattern) = rules.include.unused(selection.entries.iter().map(|entry| &entry.path)) {
            return Err(Error::UnusedPattern { source_dir, pattern: pattern.to_owned() });
        }
        Ok(Self { outer_rules, ..selection })
    }

    /// Selects everything in `clone_dir`, a fresh clone of the repository `source_dir`.
    pub(crate) fn of_clone(clone_dir: &Path, source_dir: &Path, bounds: CopyBounds) -> Result<Self, Error> {
        let walk = SourceWalk::new(clone_dir, &[], Take::Everything)?.run(bounds.files)?;
        let selection = Self::checked(walk, source_dir, bounds)?;
        Ok(Self { origin: Origin::Clone, outer_rules: OuterRules::of(source_dir), ..selection })
    }

    /// Selects everything in `clone_dir`, a fresh clone that this host made for the run, its `.git` among them. No
    /// rules from outside of it hold in the result.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_repository(clone_dir: &Path, bounds: CopyBounds) -> Result<Self, Error> {
        let source_dir = fs::canonicalize(clone_dir).map_err(Error::io("open the directory", clone_dir))?;
        let walk = SourceWalk::new(&source_dir, &[], Take::Everything)?.run(bounds.files)?;
        let selection = Self::checked(walk, &source_dir, bounds)?;
        Ok(Self { origin: Origin::Clone, ..selection })
    }

    fn checked(walk: SourceWalk<'_>, source_dir: &Path, bounds: CopyBounds) -> Result<Self, Error> {
        let source_dir = source_dir.to_owned();
        let mut problems = walk.problems;
        let found = walk.count;
        if found > bounds.files {
            problems.push(CopyProblem::TooManyFiles { found, max: bounds.files });
        }
        if walk.bytes > bounds.bytes
            && let Some(largest) = walk.largest
        {
            let CopyBounds { bytes: max, .. } = bounds;
            problems.push(CopyProblem::TooLarge { found: walk.bytes, max, largest: largest.path });
        }
        if !problems.is_empty() {
            return Err(Error::Uncopyable { source_dir, problems });
        }
        let is_file = |entry: &&SelectedEntry| entry.form != SelectedForm::Directory;
        Ok(Self {
            source_dir,
            root: walk.root,
            files: walk.entries.iter().filter(is_file).count() as u64,
            entries: walk.entries,
            outer_rules: Vec::new(),
            origin: Origin::Directory,
            bytes: walk.bytes,
            left_out: walk.left_out,
        })
    }

    /// Checks that the files fit on the disk of `stages` beside the `reserve`.
    ///
    /// # Errors
    /// [`Error::NoRoom`].
    pub fn check_room(&self, stages: &Path, reserve: ByteSize) -> Result<(), Error> {
        check_room(self.bytes, reserve, stages)
    }

    /// Returns the directory the files come from, absolute and without links.
    #[must_use]
    pub fn source_dir(&self) -> &Path {
        &self.source_dir
    }

    /// Returns the number of files and links.
    #[must_use]
    pub const fn files(&self) -> u64 {
        self.files
    }

    /// Returns the apparent size of all files together.
    #[must_use]
    pub const fn bytes(&self) -> ByteSize {
        self.bytes
    }

    /// Returns the files and directories that were left out because they may hold secrets, sorted.
    #[must_use]
    pub fn left_out(&self) -> &[RelativePath] {
        &self.left_out
    }
}

//! Writes the changes of a run into a directory, if that still has the files the run received.
//!
//! Nothing is written before every change was judged. Each file is written beside its place and then renamed. No link
//! is followed on the way to a file, whatever happens in the directory meanwhile.

mod error;
mod present;
mod protected;
mod protected_names;
mod write;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use self::error::{ApplyError, ApplyProblem};
use self::{present::PresentFile, protected::protected_by, protected_names::ProtectedBy, write::Writing};
use crate::{
    beneath::TreeRoot,
    changes::{self, Change, ChangeForm, Changes, NewSide, OldSide},
    error::Error,
    git_dirs::{NamesByDir, path_in_repository, refuse_git_dir},
    manifest::ContentHash,
    path::RelativePath,
    result_tree::{ResultTree, reason},
    room::ResultBounds,
    rules::Patterns,
};

/// Changes with the permission to write them.
#[derive(Debug)]
pub struct Applicable<'a> {
    target: PathBuf,
    root: TreeRoot,
    result: &'a ResultTree,
    steps: Vec<ApplyStep<'a>>,
    unchanged: Vec<RelativePath>,
}

/// Change to write, with the hash of the content that was judged.
#[derive(Debug)]
pub(crate) struct ApplyStep<'a> {
    pub(crate) change: &'a Change,
    pub(crate) new_hash: Option<ContentHash>,
}

/// Changes that were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedChanges {
    /// Directory they were written into.
    #[serde(with = "crate::path::any_path")]
    pub target: PathBuf,
    /// Files that were written or removed.
    pub applied: Vec<RelativePath>,
    /// Files that the directory had already as the result has them.
    pub unchanged: Vec<RelativePath>,
}

/// Rules for the changes that are written.
#[derive(Debug, Clone)]
pub struct ApplyRules {
    /// Files that are written although programs run them by themselves.
    pub allow: Patterns,
    /// Bounds of all files together.
    pub bounds: ResultBounds,
}

/// Knowledge about a directory and all changes for it, by which one change is refused.
struct Guard {
    names: NamesByDir,
    /// Reason that all files in the directory are protected.
    target: Option<ProtectedBy>,
}

impl Guard {
    /// Returns the reason to refuse `change` whatever the directory has at its place.
    fn problem(&self, change: &Change, allow: &Patterns) -> Option<ApplyProblem> {
        let path = || change.path.clone();
        if change.path.is_in_git_dir() || self.names.bare_repository_of(&change.path).is_some() {
            return Some(ApplyProblem::GitDir(path()));
        }
        let old_is_link = matches!(change.old, Some(OldSide::Link(_)));
        let new_is_link = matches!(change.new, Some(NewSide::Link(_)));
        if new_is_link || (old_is_link && change.new.is_some()) {
            return Some(ApplyProblem::Link(path()));
        }
        let protected = self.target.or_else(|| protected_by(&change.path));
        let protected = protected.filter(|_| !allow.matches(&change.path));
        protected.map(|by| ApplyProblem::protected(path(), by))
    }
}

impl<'a> Applicable<'a> {
    /// Judges `changes` for the directory `target` by `rules`.
    ///
    /// # Errors
    /// [`ApplyError::Refused`] with all problems at once; [`Error::ResultTooLarge`] and [`Error::NoRoom`] before any
    /// content is read.
    pub fn judge(
        result: &'a ResultTree,
        changes: &'a Changes,
        target: &Path,
        rules: &ApplyRules,
    ) -> Result<Self, ApplyError> {
        let open = std::fs::canonicalize(target).map_err(Error::io("open the directory", target))?;
        refuse_git_dir(&open)?;
        let root = TreeRoot::open(&open).map_err(Error::os("open the directory", target))?;
        rules.bounds.check(changes.all().iter().map(Change::new_size), &open)?;
        let mut names = NamesByDir::default();
        changes.all().iter().for_each(|change| names.add(&change.path));
        names.add_present(&root);
        let guard = Guard { names, target: path_in_repository(&open).and_then(|path| protected_by(&path)) };
        let mut judged = Self { target: open, root, result, steps: Vec::new(), unchanged: Vec::new() };
        let mut problems = Vec::new();
        for entry in changes.unreadable() {
            let path = entry.path.clone();
            problems.push(ApplyProblem::Unreadable { path, why: entry.why.clone() });
        }
        let git_dirs = result.hidden().git_dirs.iter().filter(|dir| changes.covers(dir));
        problems.extend(git_dirs.cloned().map(ApplyProblem::GitDir));
        for change in changes.all() {
            problems.extend(guard.problem(change, &rules.allow).or_else(|| judged.judge_change(change)));
        }
        if problems.is_empty() { Ok(judged) } else { Err(ApplyError::Refused { problems }) }
    }

    /// Plans `change`, or returns the reason against it.
    fn judge_change(&mut self, change: &'a Change) -> Option<ApplyProblem> {
        let path = || change.path.clone();
        let is_file = change.new.is_some();
        let new_hash = match is_file.then(|| changes::hash(self.result, &change.path)).transpose() {
            Ok(hash) => hash,
            Err(why) => return Some(ApplyProblem::Unreadable { path: path(), why: reason(why) }),
        };
        let present = PresentFile::read(&self.root, &change.path);
        let step = ApplyStep { change, new_hash };
        if present.is_new_side(&step) {
            self.unchanged.push(path());
            return None;
        }
        if let Some(why) = present.conflict(&step) {
            return Some(ApplyProblem::Conflict { path: path(), why });
        }
        self.steps.push(step);
        None
    }

    /// Returns the files that will be written or removed.
    pub fn paths(&self) -> impl Iterator<Item = &RelativePath> {
        self.steps.iter().map(|step| &step.change.path)
    }

    /// Returns the directory, absolute and without links.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes the changes: first removals that are in the way of a directory, then files, and then other removals.
    ///
    /// # Errors
    /// [`ApplyError::Io`], which says what is written already, and [`ApplyError::Refused`] if a file changed since it
    /// was judged.
    pub fn write(self) -> Result<AppliedChanges, ApplyError> {
        let Self { target, root, result, steps, unchanged } = self;
        let mut writing = Writing { target: &target, root: &root, result, applied: Vec::new() };
        let is_removal = |step: &&ApplyStep<'_>| step.change.form == ChangeForm::Deleted;
        let is_in_the_way = |step: &&ApplyStep<'_>| {
            let below = |other: &ApplyStep<'_>| {
                other.change.path != step.change.path && other.change.path.is_within(&step.change.path)
            };
            is_removal(step) && steps.iter().any(below)
        };
        let first = steps.iter().filter(is_in_the_way);
        let files = steps.iter().filter(|step| !is_removal(step));
        let last = steps.iter().filter(|step| is_removal(step) && !is_in_the_way(step));
        for step in first.chain(files).chain(last) {
            writing.write(step)?;
        }
        let applied = writing.applied;
        Ok(AppliedChanges { target, applied, unchanged })
    }
}

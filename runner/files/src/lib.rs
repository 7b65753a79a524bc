//! runner_files takes a directory's files into a run, and the run's results out of it.
//!
//! Does not follow a link that an agent made, run anything that an agent wrote, or write outside the directory that the
//! user named.
//!
//! A [`Selection`] says which files of a directory a run receives. A [`Stage`] keeps them until the run is removed: it
//! fills the workspace, and later tells which files the agent changed.

mod apply;
mod beneath;
mod changes;
mod clone;
mod diff;
mod directory;
mod error;
mod file_name;
mod git_dirs;
mod git_gaps;
mod ignores;
mod listing;
mod manifest;
mod outside;
mod path;
mod pull;
mod quote;
mod result_tree;
mod room;
mod rules;
mod secrets;
mod selected;
mod selection;
mod size_text;
mod stage;
mod stage_writer;
mod stat;
#[cfg(test)]
mod tests;
mod unpack;
mod walk;

pub use self::{
    apply::{Applicable, AppliedChanges, ApplyError, ApplyProblem, ApplyRules},
    beneath::{PlainFile, TreeRoot, Unreadable},
    changes::{Change, ChangeForm, Changes, NewSide, OldSide, UnreadableEntry},
    clone::FreshClone,
    diff::{DiffFigures, DiffReader, FileDiff},
    directory::{AgentDirectory, DirectoryEntry, DirectoryEntryForm, ListedDirectory},
    error::{CopyProblem, Error},
    file_name::{folded_name, folded_text, is_git_dir},
    git_gaps::GitGaps,
    listing::{ListedFile, listing},
    manifest::{ContentHash, Manifest, ManifestEntry, StoredFile, StoredForm},
    outside::OutsideFiles,
    path::{InvalidPath, RelativePath},
    pull::PulledFiles,
    result_tree::{HiddenEntries, MAX_RESULT_ENTRIES, ResultForm, ResultTree},
    room::ResultBounds,
    rules::{CopyBounds, CopyRules, InvalidPattern, Patterns, Scope},
    secrets::begins_with_key,
    selection::{Origin, Selection},
    size_text::size_text,
    stage::{ListedStage, Stage, stages_dir},
    stage_writer::{CopyProgress, StagedFiles},
    stat::{FileFigures, stat_text},
};

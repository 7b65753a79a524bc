//! runner_files takes a directory's files into a run, and the run's results out of it.
//!
//! Does not follow a link that an agent made, run anything that an agent wrote, or write outside the directory that the
//! user named.
//!
//! A [`Selection`] says which files of a directory a run receives. A [`Stage`] keeps them until the run is removed: it
//! fills the workspace, and later tells which files the agent changed.

mod beneath;
mod error;
mod ignores;
mod manifest;
mod path;
mod quote;
mod rules;
mod secrets;
mod selection;
mod size_text;
mod stage;
mod stage_writer;
mod unpack;
mod walk;

pub use self::{
    beneath::{PlainFile, TreeRoot, Unreadable},
    error::{CopyProblem, Error},
    manifest::{ContentHash, Manifest, ManifestEntry, StoredFile, StoredForm},
    path::{InvalidPath, RelativePath},
    rules::{CopyBounds, CopyRules, InvalidPattern, Patterns, Scope},
    selection::{Origin, Selection},
    size_text::size_text,
    stage::{CopyProgress, ListedStage, Stage, StagedFiles, stages_dir},
};

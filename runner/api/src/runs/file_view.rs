//! Defines the files of a run and their differences, as clients see them.

use std::borrow::Cow;

use runner_files::{
    Change, ChangeForm, DiffFigures, HiddenEntries, ListedFile, RelativePath, ResultForm, UnreadableEntry,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::operation::schemas;

/// Most files that one answer lists.
pub(super) const MAX_LISTED: usize = 10_000;

/// Path of a file: a text, or a list of bytes if it is not UTF-8.
#[derive(Serialize, ToSchema)]
#[schema(as = FilePath)]
#[serde(untagged)]
#[expect(dead_code, reason = "`RelativePath` writes itself; this is its schema")]
enum FilePathSchema {
    Text(String),
    Bytes(Vec<u32>),
}

/// Files that a run has now.
#[derive(Serialize, ToSchema)]
#[schema(as = RunFiles)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunFilesView<'r> {
    #[schema(value_type = schemas::RunId)]
    pub(super) run_id: &'r str,
    pub(super) files: Vec<RunFileView<'r>>,
    /// Number of files that are not listed, because there are too many.
    #[schema(value_type = u64)]
    pub(super) omitted_files: usize,
    pub(super) hidden: HiddenFilesView<'r>,
}

/// File of a run.
#[derive(Serialize, ToSchema)]
#[schema(as = RunFile)]
pub(super) struct RunFileView<'r> {
    #[schema(value_type = FilePathSchema)]
    path: &'r RelativePath,
    /// `file`, `link`, `directory`, `unreadable` or `deleted`.
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    executable: Option<bool>,
    /// Reason why an entry cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'r str>,
    /// `added`, `deleted`, `modified`, `mode_changed` or `type_changed`; null if the file is as the run received it.
    #[schema(value_type = Option<String>, required = true)]
    change: Option<ChangeForm>,
}

/// Entries of a workspace that are left out.
#[derive(Serialize, ToSchema)]
#[schema(as = HiddenFiles)]
#[serde(rename_all = "camelCase")]
pub(super) struct HiddenFilesView<'r> {
    /// Directories of git.
    #[schema(value_type = Vec<FilePathSchema>)]
    git_dirs: &'r [RelativePath],
    /// New files that the run's ignore rules name.
    #[schema(value_type = Vec<FilePathSchema>)]
    ignored: &'r [RelativePath],
}

/// Differences between the files that a run received and those it has now.
#[derive(Serialize, ToSchema)]
#[schema(as = RunDiff)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunDiffView<'r> {
    #[schema(value_type = schemas::RunId)]
    pub(super) run_id: &'r str,
    #[schema(value_type = Vec<ChangedFileView>)]
    pub(super) files: &'r [ChangedFileView],
    /// Lines that were added in all files.
    pub(super) insertions: u64,
    /// Lines that were removed in all files.
    pub(super) deletions: u64,
    /// Entries of which it is not known what the run did to them.
    pub(super) unreadable: Vec<UnreadableFileView<'r>>,
    pub(super) hidden: HiddenFilesView<'r>,
    /// All differences in git's format.
    pub(super) diff: Cow<'r, str>,
}

/// File that a run changed. A text has `insertions` and `deletions`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedFile)]
pub(super) struct ChangedFileView {
    #[schema(value_type = FilePathSchema)]
    path: RelativePath,
    /// `added`, `deleted`, `modified`, `mode_changed` or `type_changed`.
    #[schema(value_type = String)]
    change: ChangeForm,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deletions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    binary: Option<BinarySizesView>,
    /// Reason why the file is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    uncompared: Option<String>,
}

/// Sizes of a file that is not text; null where it does not exist.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BinarySizes)]
#[serde(rename_all = "camelCase")]
struct BinarySizesView {
    #[schema(required = true)]
    old_size: Option<u64>,
    #[schema(required = true)]
    new_size: Option<u64>,
}

/// Entry of which it is not known what the run did to it.
#[derive(Serialize, ToSchema)]
#[schema(as = UnreadableFile)]
pub(super) struct UnreadableFileView<'r> {
    #[schema(value_type = FilePathSchema)]
    path: &'r RelativePath,
    /// Reason, which follows the path in a sentence.
    reason: &'r str,
}

impl<'r> RunFileView<'r> {
    pub(super) fn of(file: &ListedFile<'r>) -> Self {
        let (form, size, executable, reason) = match file.form {
            Some(ResultForm::File { size, executable }) => ("file", Some(*size), Some(*executable), None),
            Some(ResultForm::Link(_)) => ("link", None, None, None),
            Some(ResultForm::Directory) => ("directory", None, None, None),
            Some(ResultForm::Unreadable(why)) => ("unreadable", None, None, Some(why.as_str())),
            None => ("deleted", None, None, None),
        };
        Self { path: file.path, r#type: form, size, executable, reason, change: file.change }
    }
}

impl<'r> HiddenFilesView<'r> {
    pub(super) fn of(hidden: &'r HiddenEntries) -> Self {
        let first = |paths: &'r [RelativePath]| &paths[..paths.len().min(MAX_LISTED)];
        Self { git_dirs: first(&hidden.git_dirs), ignored: first(&hidden.ignored) }
    }
}

impl ChangedFileView {
    pub(super) fn of(change: &Change, figures: DiffFigures) -> Self {
        let mut view = Self {
            path: change.path.clone(),
            change: change.form,
            insertions: None,
            deletions: None,
            binary: None,
            uncompared: None,
        };
        match figures {
            DiffFigures::Lines { insertions, deletions } => {
                (view.insertions, view.deletions) = (Some(insertions), Some(deletions));
            }
            DiffFigures::Binary { old_size, new_size } => {
                view.binary = Some(BinarySizesView { old_size: Some(old_size), new_size: Some(new_size) });
            }
            DiffFigures::Uncompared(why) => view.uncompared = Some(why),
        }
        view
    }
}

impl<'r> UnreadableFileView<'r> {
    pub(super) fn of(entry: &'r UnreadableEntry) -> Self {
        Self { path: &entry.path, reason: &entry.why }
    }
}

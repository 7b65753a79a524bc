//! Defines schemas of the files of a run and of their differences.

use serde::Serialize;
use utoipa::ToSchema;

use crate::operation::schemas;

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
#[derive(ToSchema)]
#[schema(as = RunFiles, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `list_files` writes")]
pub(super) struct RunFilesSchema {
    #[schema(value_type = schemas::RunId)]
    run_id: String,
    files: Vec<RunFileSchema>,
    /// Number of files that are not listed, because there are too many.
    omitted_files: u64,
    hidden: HiddenFilesSchema,
}

/// File of a run.
#[derive(ToSchema)]
#[schema(as = RunFile)]
#[expect(dead_code, reason = "schema of what `list_files` writes")]
struct RunFileSchema {
    path: FilePathSchema,
    /// `file`, `link`, `directory`, `unreadable` or `deleted`.
    r#type: String,
    #[schema(nullable = false)]
    size: Option<u64>,
    #[schema(nullable = false)]
    executable: Option<bool>,
    /// Reason why an entry cannot be read.
    #[schema(nullable = false)]
    reason: Option<String>,
    /// `added`, `deleted`, `modified`, `mode_changed` or `type_changed`; null if the file is as the run received it.
    #[schema(required = true)]
    change: Option<String>,
}

/// Entries of a workspace that are left out.
#[derive(ToSchema)]
#[schema(as = HiddenFiles, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `hidden_json` writes")]
struct HiddenFilesSchema {
    /// Directories of git.
    git_dirs: Vec<FilePathSchema>,
    /// New files that the run's ignore rules name.
    ignored: Vec<FilePathSchema>,
}

/// Differences between the files that a run received and those it has now.
#[derive(ToSchema)]
#[schema(as = RunDiff, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `diff` writes")]
pub(super) struct RunDiffSchema {
    #[schema(value_type = schemas::RunId)]
    run_id: String,
    files: Vec<ChangedFileSchema>,
    /// Lines that were added in all files.
    insertions: u64,
    /// Lines that were removed in all files.
    deletions: u64,
    /// Entries of which it is not known what the run did to them.
    unreadable: Vec<UnreadableFileSchema>,
    hidden: HiddenFilesSchema,
    /// All differences in git's format.
    diff: String,
}

/// File that a run changed. A text has `insertions` and `deletions`.
#[derive(ToSchema)]
#[schema(as = ChangedFile)]
#[expect(dead_code, reason = "schema of what `changed_json` writes")]
struct ChangedFileSchema {
    path: FilePathSchema,
    /// `added`, `deleted`, `modified`, `mode_changed` or `type_changed`.
    change: String,
    #[schema(nullable = false)]
    insertions: Option<u64>,
    #[schema(nullable = false)]
    deletions: Option<u64>,
    #[schema(nullable = false)]
    binary: Option<BinarySizesSchema>,
    /// Reason why the file is not compared.
    #[schema(nullable = false)]
    uncompared: Option<String>,
}

/// Sizes of a file that is not text; null where it does not exist.
#[derive(ToSchema)]
#[schema(as = BinarySizes, rename_all = "camelCase")]
#[expect(dead_code, reason = "schema of what `changed_json` writes")]
struct BinarySizesSchema {
    #[schema(required = true)]
    old_size: Option<u64>,
    #[schema(required = true)]
    new_size: Option<u64>,
}

/// Entry of which it is not known what the run did to it.
#[derive(ToSchema)]
#[schema(as = UnreadableFile)]
#[expect(dead_code, reason = "schema of what `diff` writes")]
struct UnreadableFileSchema {
    path: FilePathSchema,
    /// Reason, which follows the path in a sentence.
    reason: String,
}

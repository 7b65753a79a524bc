//! Describes one entry that a run receives, before it is copied.

use std::path::PathBuf;

use platform_core::limit::ByteSize;

use super::path::RelativePath;

/// Entry that is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedEntry {
    pub(crate) path: RelativePath,
    pub(crate) form: SelectedForm,
}

/// Form of a selected entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SelectedForm {
    /// A file of this size. Its other facts are read with its content.
    File(ByteSize),
    /// A link with its target, which is not followed.
    Link(PathBuf),
    Directory,
}

//! Defines the bounds of a workspace's content, and what it has to survive. Pure.

use platform_core::limit::ByteSize;
use platform_runtime::settings::Sandbox;

/// Fewest files that any workspace may hold.
const MIN_FILES: u64 = 64;

/// Failures that a workspace has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of its run, at most: if the machine goes down, its container is gone too.
    Run,
    /// A crash of the machine as well.
    Machine,
}

/// Bounds of a workspace's content.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkspaceBounds {
    pub(super) size: ByteSize,
    pub(super) files: u64,
}

impl WorkspaceBounds {
    /// Returns the bounds that `settings` give workspaces.
    pub(super) const fn of(settings: &Sandbox) -> Self {
        Self { size: settings.workspace_size, files: settings.max_workspace_files }
    }

    /// Returns bounds of this `size`, with the number of files in the same proportion.
    pub(super) fn sized(self, size: ByteSize) -> Self {
        let in_proportion = u128::from(self.files) * u128::from(size.0) / u128::from(self.size.0.max(1));
        let files = u64::try_from(in_proportion).unwrap_or(u64::MAX).max(MIN_FILES);
        Self { size, files }
    }
}

//! Defines the report that `git-sync` prints of each sync: a line of JSON, which the control plane reads.

use serde::{Deserialize, Serialize};

/// Outcome of one sync of a mirrored repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// Begin, in nanoseconds since 1970. The remote was asked later.
    pub began_ns: u64,
    /// End, in nanoseconds since 1970. Readers see the commit from then on.
    pub ended_ns: u64,
    /// Commit that readers see after it; absent before the first success.
    pub commit: Option<String>,
    /// True if readers saw another commit before.
    pub changed: bool,
    /// Reason of a failure; absent after a success. It holds no credential.
    pub error: Option<String>,
}

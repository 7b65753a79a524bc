//! Reads the settings of the journal: durability of its records, and retention.

use platform_core::limit::{self, ByteSize, Millis};

use crate::config::{self, Section, written_as_word};

/// `[journal]`
#[derive(Debug, Clone)]
pub struct Journal {
    /// Worst failure that a record survives.
    pub durability: Durability,
    /// Size at which a file is full.
    pub segment_size: ByteSize,
    /// Age at which a file is full.
    pub segment_age: Millis,
    /// Age at which full files are removed.
    pub retention: Millis,
    /// Size of all files together at which the oldest full ones are removed.
    pub disk_budget: ByteSize,
}

/// Worst failure that a record survives once its call's answer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, for any reason.
    Process,
    /// The end of the machine.
    Disk,
}

written_as_word!(Durability { Process: "process", Disk: "disk" });

impl Default for Journal {
    fn default() -> Self {
        config::defaults(Self::section)
    }
}

impl Journal {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            durability: field(
                "durability",
                "Failures that a call's record survives once its answer has ended: `process`, a killed proxy; `disk`, a machine that stops too, for which each call waits for the disk twice.",
            )
            .or(Durability::Process),
            segment_size: field("segment_size", "Size at which a file of the journal is full and the next one begins.")
                .or(limit::journal::SEGMENT_SIZE),
            segment_age: field("segment_age", "Age at which it is full, whatever its size.")
                .or(limit::journal::SEGMENT_AGE),
            retention: field(
                "retention",
                "Full files are removed when they are older, unless a consumer has not acknowledged them.",
            )
            .or(limit::journal::KEEP),
            disk_budget: field(
                "disk_budget",
                "Size of all files together at which the oldest full ones are removed, unless a consumer has not acknowledged them; if they stay and it is exceeded by a whole file, calls are refused.",
            )
            .or(limit::journal::DISK_BUDGET),
        }
    }
}

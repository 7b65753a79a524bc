//! Reads the settings of the journal: durability of its records, and retention.

use platform_core::limit::{self, ByteSize, Millis};

use crate::config::{self, settings, written_as_word};

settings! {
    /// `[journal]`
    #[derive(Debug, Clone)]
    pub struct Journal read from section {
        /// Failures that a call's record survives once its answer has ended: `process`, a killed proxy; `disk`, a
        /// machine that stops too, for which each call waits for the disk twice.
        pub durability: Durability => or(Durability::Process),
        /// Size at which a file of the journal is full and the next one begins.
        pub segment_size: ByteSize => or(limit::journal::SEGMENT_SIZE),
        /// Age at which it is full, whatever its size.
        pub segment_age: Millis => or(limit::journal::SEGMENT_AGE),
        /// Full files are removed when they are older, unless a consumer has not acknowledged them.
        pub retention: Millis => or(limit::journal::KEEP),
        /// Size of all files together at which the oldest full ones are removed, unless a consumer has not acknowledged
        /// them; if they stay and it is exceeded by a whole file, calls are refused.
        pub disk_budget: ByteSize => or(limit::journal::DISK_BUDGET),
    }
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
        config::defaults(Self::read)
    }
}

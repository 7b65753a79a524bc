//! Counts what a connection has seen, for operators and tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers since the connection was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionCounts {
    /// Connections that were opened, the first one included.
    pub connections: u64,
    /// Attempts to connect that failed.
    pub failed_attempts: u64,
    /// Events of runs, and answers, that belong to no turn or call of this client. Other clients cause them, or the
    /// gateway itself.
    pub unattributed: u64,
    /// Events of this client's turns that had ended already.
    pub late: u64,
    /// Messages that are not valid frames.
    pub malformed: u64,
    /// Frames that ended a connection because they were larger than this side accepts.
    pub oversize: u64,
    /// Calls that were not sent because they were larger than the gateway accepts.
    pub too_large: u64,
    /// Connections given up because two ticks were missed.
    pub silent: u64,
    /// Turns with a reader too slow for all of the text.
    pub slow_readers: u64,
}

/// Declares the cells behind [`ConnectionCounts`].
macro_rules! cells {
    ($($name:ident),*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Cells { $(pub(crate) $name: Cell),* }

        impl Cells {
            pub(crate) fn read(&self) -> ConnectionCounts {
                ConnectionCounts { $($name: self.$name.0.load(Ordering::Relaxed)),* }
            }
        }
    };
}

cells!(
    connections,
    failed_attempts,
    unattributed,
    late,
    malformed,
    oversize,
    too_large,
    silent,
    slow_readers
);

#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

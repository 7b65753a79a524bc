//! How runs are worked on by `sluice up`.

use platform_core::limit::{self, Millis};

use crate::config::Section;

/// Shortest time between two things that are done for ever.
const SHORTEST: Millis = Millis::seconds(1);

/// `[worker]`
#[derive(Debug, Clone)]
pub struct Worker {
    /// Runs it works on at a time.
    pub runs: u32,
    /// Of those, how many at a time are on their way to their container's start.
    pub starts: u32,
    /// Orders of the installation that may wait.
    pub queue: u32,
    /// Orders of one account that may.
    pub queue_per_account: u32,
    /// How long after its worker was last heard of a run is taken over by another.
    pub lease: Millis,
    /// How often it is looked what is left behind.
    pub reap_every: Millis,
}

impl Worker {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            runs: field("runs", "Runs that `sluice up` works on at a time; others wait. With 0 it only takes over what others have left.").may_be_zero().or(limit::worker::RUNS),
            starts: field(
                "starts",
                "Of those, how many at a time are made ready and started; the others are claimed and wait for that.",
            )
            .or(limit::worker::STARTS),
            queue: field(
                "queue",
                "Orders for `sluice up` that may wait to be worked on, in the whole installation; more are refused, with the time after which to try again.",
            )
            .or(limit::worker::QUEUE),
            queue_per_account: field("queue_per_account", "The same of one account.")
                .or(limit::worker::QUEUE_PER_ACCOUNT),
            lease: field(
                "lease",
                "How long after its worker was last heard of a run is taken over by another one, also a run of `sluice run`. Longer than any pause of the host.",
            )
            .at_least(&SHORTEST)
            .or(limit::worker::LEASE),
            reap_every: field(
                "reap_every",
                "How often `sluice up` looks for what runs have left behind, and removes what is certainly dead.",
            )
            .at_least(&SHORTEST)
            .or(limit::worker::REAP_EVERY),
        }
    }
}

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
    /// How long after its worker was last heard of a run is taken over by another.
    pub lease: Millis,
    /// How often it is looked what is left behind.
    pub reap_every: Millis,
}

impl Worker {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        let settings = Self {
            runs: field("runs", "Runs that `sluice up` works on at a time; others wait. With 0 it only takes over what others have left.").or(limit::worker::RUNS),
            lease: field(
                "lease",
                "How long after its worker was last heard of a run is taken over by another one, also a run of `sluice run`. Longer than any pause of the host.",
            )
            .or(limit::worker::LEASE),
            reap_every: field(
                "reap_every",
                "How often `sluice up` looks for what runs have left behind, and removes what is certainly dead.",
            )
            .or(limit::worker::REAP_EVERY),
        };
        for (name, value) in [("lease", settings.lease), ("reap_every", settings.reap_every)] {
            if value < SHORTEST {
                section.reject(name, format!("{value} is too short: at least {SHORTEST}"));
            }
        }
        settings
    }
}

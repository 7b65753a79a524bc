//! Defines the workloads for every peer. A workload is a file here; a new one needs that file and a line in [`ALL`].

mod big_body;
mod in_flight;
mod keepalive;
mod listeners;
mod rate;
mod request;
mod socat;
mod streams;

use std::{io, sync::Arc, time::Duration};

pub(crate) use self::request::TOKEN_SECRET;
pub use self::request::chat;

use crate::{
    load::{self, Round},
    measure::process,
    peer::{Peer, Running},
};

/// Every workload, in the order of the report.
pub const ALL: [Workload; 10] = [
    keepalive::ONE,
    keepalive::MANY,
    keepalive::CROWD,
    rate::WORKLOAD,
    big_body::WORKLOAD,
    streams::FEW,
    streams::MANY,
    socat::WORKLOAD,
    in_flight::WORKLOAD,
    listeners::WORKLOAD,
];

/// A kind of load.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Name in reports.
    pub name: &'static str,
    /// Description for people.
    pub about: &'static str,
    load: Load,
    request: fn() -> Arc<[u8]>,
}

#[derive(Debug, Clone, Copy)]
enum Load {
    /// Connections that send one request at a time, each after the last answer.
    Closed { connections: usize },
    /// Closed load with each connection through a process of `socat`, as in a sandbox.
    ClosedThroughSocat { connections: usize },
    /// Requests at a fixed rate, due whether or not the earlier ones are answered.
    Paced { connections: u32, per_second: u32 },
    /// Streams that run at once, each read to its end.
    Streams { count: u32 },
    /// Listeners of runs opened and closed while `held` others are open.
    Listeners { held: usize },
}

/// Results of one round of one workload on one peer.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Measurements of the load generator.
    pub round: Round,
    /// CPU time of the peer's processes during the round, nanoseconds.
    pub cpu_ns: u64,
    /// The part of it in the programs, nanoseconds.
    pub user_ns: u64,
    /// The part of it in the kernel, nanoseconds.
    pub system_ns: u64,
    /// Number of times that the peer's threads went to sleep.
    pub switches: u64,
    /// Processor time that the hypervisor gave to other machines during the round, nanoseconds.
    pub stolen_ns: u64,
    /// Resident memory of the peer's processes at the end of the round, bytes.
    pub rss: u64,
    /// Highest resident memory during the round, bytes.
    pub peak: u64,
    /// Growth of the kernel's own memory by what the workload holds, bytes.
    pub slab: u64,
}

impl Workload {
    /// Returns whether `peer` supports the workload.
    #[must_use]
    pub fn suits(&self, peer: &Peer) -> bool {
        !self.wants_fresh_peer() || peer.control.is_some()
    }

    /// Returns whether the workload would distort later memory figures of a peer, so that it needs a fresh one.
    #[must_use]
    pub const fn wants_fresh_peer(&self) -> bool {
        matches!(self.load, Load::Listeners { .. })
    }

    /// Runs the workload on `peer` for about `span`.
    ///
    /// # Errors
    /// If any request fails: a peer that drops requests is not measured.
    pub async fn run(&self, peer: &Running, span: Duration) -> io::Result<Sample> {
        let request = (self.request)();
        match self.load {
            Load::Closed { connections } => {
                let load = |span| load::closed(&peer.target, Arc::clone(&request), connections, span);
                load(span / 10).await?; // opens connections to the upstream before the measurement
                observed(peer, load(span)).await
            }
            Load::ClosedThroughSocat { connections } => {
                let bridge = socat::Bridge::start(&peer.target)?;
                let load = |span| load::closed(&bridge.target, Arc::clone(&request), connections, span);
                load(span / 10).await?;
                observed(peer, load(span)).await
            }
            Load::Paced { connections, per_second } => {
                let load =
                    |span| load::paced(&peer.target, Arc::clone(&request), (connections, per_second), span);
                load(span / 10).await?;
                observed(peer, load(span)).await
            }
            Load::Streams { count } => {
                observed(peer, load::streams(&peer.target, request, count, streams::GAP)).await
            }
            Load::Listeners { held } => {
                let control = peer.control.as_ref().ok_or(io::ErrorKind::Unsupported)?;
                let before = process::kernel_slab();
                listeners::hold(control, held).await?;
                let slab = process::kernel_slab().saturating_sub(before);
                Ok(Sample { slab, ..observed(peer, listeners::open_and_close(control, span)).await? })
            }
        }
    }
}

/// Runs `load` and measures what `peer` uses meanwhile by the kernel's accounting.
async fn observed(peer: &Running, load: impl Future<Output = io::Result<Round>>) -> io::Result<Sample> {
    let processes = peer.processes();
    process::forget_peak(&processes)?;
    let stolen = process::stolen_ns();
    let before = process::used(&processes)?;
    let round = load.await?;
    let after = process::used(&processes)?;
    Ok(Sample {
        round,
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        user_ns: after.user_ns.saturating_sub(before.user_ns),
        system_ns: after.system_ns.saturating_sub(before.system_ns),
        switches: after.switches.saturating_sub(before.switches),
        stolen_ns: process::stolen_ns().saturating_sub(stolen),
        rss: after.rss,
        peak: after.peak,
        slab: 0,
    })
}

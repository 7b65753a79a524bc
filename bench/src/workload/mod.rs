//! What is asked of every peer. A workload is a file here; adding one is adding it and a line in [`ALL`].

mod big_body;
mod keepalive;
mod paced_streams;
mod request;

use std::{io, sync::Arc, time::Duration};

use crate::{
    load::{self, Round, Target},
    peer::Running,
};

/// Every workload, in the order of the report.
pub const ALL: [Workload; 5] =
    [keepalive::ONE, keepalive::MANY, keepalive::CROWD, big_body::WORKLOAD, paced_streams::WORKLOAD];

/// One kind of load.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// As reports name it.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    load: Load,
    request: fn() -> Arc<[u8]>,
}

#[derive(Debug, Clone, Copy)]
enum Load {
    /// So many connections, each sending when its last answer is there.
    Closed { connections: usize },
    /// So many streams at once, each read to its end.
    Streams { count: usize },
}

/// What one round of one workload on one peer brought to light.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The load generator's side.
    pub round: Round,
    /// CPU time of the peer's processes during the round, nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory of the peer's processes at the end of the round, bytes.
    pub rss: u64,
}

impl Workload {
    /// Loads `peer` for about `span`.
    ///
    /// # Errors
    /// If any request fails: a peer that drops requests is not measured.
    pub async fn run(&self, peer: &Running, span: Duration) -> io::Result<Sample> {
        let request = (self.request)();
        // Connections to the upstream are made, caches are warm, before anything counts.
        self.load(&peer.target, &request, span / 10).await?;
        let before = peer.used()?;
        let round = self.load(&peer.target, &request, span).await?;
        let after = peer.used()?;
        Ok(Sample { round, cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns), rss: after.rss })
    }

    async fn load(&self, target: &Target, request: &Arc<[u8]>, span: Duration) -> io::Result<Round> {
        match self.load {
            Load::Closed { connections } => {
                load::closed(target, Arc::clone(request), connections, span).await
            }
            Load::Streams { count } => load::streams(target, Arc::clone(request), count).await,
        }
    }
}

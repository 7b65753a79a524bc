//! Runs the benchmark. Every peer is started once. Each round goes over all workloads and, within a workload, over all
//! peers, so that changes on the machine affect all of them.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    fast::FastUpstream,
    measure::cores,
    peer::{Peer, Running, Setup},
    report::Samples,
    workload::{Sample, Workload},
};

/// Peers, workloads and length of a measurement.
#[derive(Debug)]
pub struct Plan {
    /// Peers under load.
    pub peers: Vec<Peer>,
    /// Workloads for each peer.
    pub workloads: Vec<Workload>,
    /// Number of rounds.
    pub rounds: usize,
    /// Time that one peer is under one workload in one round.
    pub span: Duration,
    /// Build of `sluice-proxy` to compare with.
    pub before: PathBuf,
}

/// Number of times that a round is repeated if the hypervisor has taken processor time away meanwhile.
const REPEATS: usize = 2;

/// A peer that stays for the whole run.
struct Subject {
    peer: Peer,
    running: Running,
    /// Memory of the peer before any load, bytes.
    idle: u64,
}

impl Plan {
    /// Measures all peers. Leaves their configurations and logs in `dir`, and reports each step to `progress`.
    ///
    /// # Errors
    /// The first peer that does not start or does not answer.
    pub async fn run(&self, dir: &Path, progress: impl Fn(&str)) -> io::Result<Vec<Samples>> {
        cores::pin_self()?;
        let upstream = FastUpstream::start().await?;
        let setup = Setup { before: self.before.clone(), ..upstream.address().into() };
        let start = |peer: &Peer, dir: &Path| peer.start(dir, &setup);
        let subjects: Vec<Subject> =
            self.peers.iter().map(|peer| Subject::of(*peer, start(peer, dir)?)).collect::<io::Result<_>>()?;
        let mut all = self.pairs(&subjects);
        for round in 1..=self.rounds {
            for workload in &self.workloads {
                progress(&format!("round {round} of {}: {}", self.rounds, workload.name));
                for subject in subjects.iter().filter(|subject| workload.suits(&subject.peer)) {
                    let taken = if workload.wants_fresh_peer() {
                        let fresh = start(&subject.peer, &dir.join(format!("fresh-{round}")))?;
                        self.samples(workload, &subject.peer, &fresh).await?
                    } else {
                        self.samples(workload, &subject.peer, &subject.running).await?
                    };
                    let of_pair = |samples: &&mut Samples| {
                        samples.peer.name == subject.peer.name && samples.workload.name == workload.name
                    };
                    if let Some(samples) = all.iter_mut().find(of_pair) {
                        samples.rounds.extend(taken);
                    }
                }
            }
        }
        Ok(all)
    }

    fn pairs(&self, subjects: &[Subject]) -> Vec<Samples> {
        let of_workload =
            |workload: &Workload| {
                let workload = *workload;
                subjects.iter().filter(move |subject| workload.suits(&subject.peer)).map(move |subject| {
                    Samples { peer: subject.peer, workload, idle: subject.idle, rounds: Vec::new() }
                })
            };
        self.workloads.iter().flat_map(of_workload).collect()
    }

    /// Measures one round, again if processor time was stolen during it. Returns the discarded rounds, too.
    async fn samples(&self, workload: &Workload, peer: &Peer, running: &Running) -> io::Result<Vec<Sample>> {
        let mut taken = Vec::new();
        let repeats = if workload.wants_fresh_peer() { 0 } else { REPEATS };
        for _ in 0..=repeats {
            let sample = workload.run(running, self.span).await.map_err(|error| {
                io::Error::new(error.kind(), format!("{} under {}: {error}", peer.name, workload.name))
            })?;
            let is_clean = sample.stolen_ns == 0;
            taken.push(sample);
            if is_clean {
                break;
            }
        }
        Ok(taken)
    }
}

impl Subject {
    fn of(peer: Peer, running: Running) -> io::Result<Self> {
        let idle = crate::measure::process::used(&running.processes())?.rss;
        Ok(Self { peer, running, idle })
    }
}

//! Runs the benchmark. Every peer is started once per environment. Each round goes over all workloads and, within a
//! workload, over all peers, so that changes on the machine affect all of them.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    fast::FastUpstream,
    measure::{cores, process},
    peer::{Peer, Running, Setup},
    pool::LoadPool,
    tls::Identity,
    workload::{Drive, Environment, Generator, Sample, Workload},
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
    /// Behaviour of the load generator.
    pub generator: Generator,
    /// Build of `sluice-proxy` to compare with.
    pub before: PathBuf,
}

/// All rounds of one peer under one workload.
#[derive(Debug)]
pub struct Samples {
    /// The peer.
    pub peer: Peer,
    /// The workload.
    pub workload: Workload,
    /// Memory of the peer before any load, bytes.
    pub idle: u64,
    /// The rounds.
    pub rounds: Vec<Sample>,
}

/// Number of times that a round is repeated if the hypervisor has taken processor time away meanwhile.
const REPEATS: usize = 2;

/// Most rounds of a workload that starts a fresh peer each time. Its main figure is memory, which hardly varies.
const FRESH_ROUNDS: usize = 3;

/// Upstream and load generators of an environment.
struct Site {
    environment: Environment,
    setup: Setup,
    dir: PathBuf,
    pool: Option<LoadPool>,
    /// Serves until it is dropped; absent if the pool's threads serve.
    _upstream: Option<FastUpstream>,
}

/// A peer that stays for the whole run.
struct Subject {
    peer: Peer,
    environment: Environment,
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
        let sites = self.sites(dir).await?;
        let subjects = self.subjects(&sites)?;
        let mut all = self.pairs(&subjects);
        for round in 1..=self.rounds {
            for workload in self.workloads.iter().filter(|workload| round <= self.rounds_of(workload)) {
                progress(&format!("round {round} of {}: {}", self.rounds, workload.name));
                for samples in all.iter_mut().filter(|samples| samples.workload.name == workload.name) {
                    let is_wanted = |subject: &&Subject| {
                        subject.peer.name == samples.peer.name && subject.environment == workload.environment
                    };
                    let site = sites.iter().find(|site| site.environment == workload.environment);
                    let subject = subjects.iter().find(is_wanted);
                    if let (Some(subject), Some(site)) = (subject, site) {
                        samples.rounds.extend(self.samples(workload, subject, site).await?);
                    }
                }
            }
        }
        Ok(all)
    }

    fn rounds_of(&self, workload: &Workload) -> usize {
        if workload.wants_fresh_peer() { self.rounds.min(FRESH_ROUNDS) } else { self.rounds }
    }

    async fn sites(&self, dir: &Path) -> io::Result<Vec<Site>> {
        let mut sites: Vec<Site> = Vec::new();
        for environment in self.workloads.iter().map(|workload| workload.environment) {
            if !sites.iter().any(|site| site.environment == environment) {
                sites.push(Site::new(environment, dir, &self.before).await?);
            }
        }
        Ok(sites)
    }

    fn subjects(&self, sites: &[Site]) -> io::Result<Vec<Subject>> {
        let mut subjects = Vec::new();
        for site in sites {
            let suits = |workload: &Workload, peer: &Peer| {
                workload.environment == site.environment && workload.suits(peer)
            };
            let wanted =
                self.peers.iter().filter(|peer| self.workloads.iter().any(|workload| suits(workload, peer)));
            for peer in wanted {
                let running = peer.start(&site.dir, &site.setup)?;
                let idle = process::used(&running.processes())?.rss;
                subjects.push(Subject { peer: *peer, environment: site.environment, running, idle });
            }
        }
        Ok(subjects)
    }

    fn pairs(&self, subjects: &[Subject]) -> Vec<Samples> {
        let of_workload = |workload: &Workload| {
            let workload = *workload;
            let suits = move |subject: &&Subject| {
                subject.environment == workload.environment && workload.suits(&subject.peer)
            };
            subjects.iter().filter(suits).map(move |subject| Samples {
                peer: subject.peer,
                workload,
                idle: subject.idle,
                rounds: Vec::new(),
            })
        };
        self.workloads.iter().flat_map(of_workload).collect()
    }

    /// Measures one round, again if processor time was stolen during it. Returns the discarded rounds, too.
    async fn samples(&self, workload: &Workload, subject: &Subject, site: &Site) -> io::Result<Vec<Sample>> {
        let drive = Drive { span: self.span, generator: self.generator, pool: site.pool.as_ref() };
        let name = subject.peer.name;
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{name} under {}: {error}", workload.name))
        };
        if workload.wants_fresh_peer() {
            let fresh = subject.peer.start(&site.dir.join("fresh"), &site.setup)?;
            return Ok(vec![workload.run(&fresh, drive).await.map_err(named)?]);
        }
        let mut taken = Vec::new();
        for _ in 0..=REPEATS {
            let sample = workload.run(&subject.running, drive).await.map_err(named)?;
            let is_clean = sample.stolen_ns == 0;
            taken.push(sample);
            if is_clean {
                break;
            }
        }
        Ok(taken)
    }
}

impl Site {
    async fn new(environment: Environment, dir: &Path, before: &Path) -> io::Result<Self> {
        let before = before.to_owned();
        match environment {
            Environment::Plain => {
                let upstream = FastUpstream::start().await?;
                let setup = Setup { before, ..upstream.address().into() };
                Ok(Self { environment, setup, dir: dir.to_owned(), pool: None, _upstream: Some(upstream) })
            }
            Environment::Tls => {
                let dir = dir.join("tls");
                let identity = Identity::new(&dir)?;
                let upstream = FastUpstream::start_with_tls(&identity).await?;
                let authority = Some(identity.authority);
                let setup = Setup { before, authority, ..upstream.address().into() };
                Ok(Self { environment, setup, dir, pool: None, _upstream: Some(upstream) })
            }
            Environment::Threads(threads) => {
                let pool = LoadPool::start(threads)?;
                let setup = Setup { before, threads, ..pool.upstream().into() };
                let dir = dir.join(format!("threads-{threads}"));
                Ok(Self { environment, setup, dir, pool: Some(pool), _upstream: None })
            }
        }
    }
}

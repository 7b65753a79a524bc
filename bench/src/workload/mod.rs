//! Defines the workloads for every peer. A workload is a file here; a new one needs that file and a line in [`ALL`].

mod agent;
mod big_body;
mod idle;
mod in_flight;
mod keepalive;
mod listeners;
mod rate;
mod socat;
mod streams;
mod threads;

use std::{io, sync::Arc, time::Duration};

use crate::{
    load::{self, Client, Round, Spinner},
    measure::process,
    peer::{Ability, Peer, Running},
    pool::LoadPool,
    request,
};

/// Workloads of one thread, in the order of the report.
pub const ALL: [Workload; 15] = [
    keepalive::ONE,
    keepalive::MANY,
    keepalive::CROWD,
    keepalive::SPINNING,
    keepalive::TLS,
    agent::WORKLOAD,
    threads::RUNS_ON_ONE,
    rate::WORKLOAD,
    big_body::WORKLOAD,
    streams::FEW,
    streams::MANY,
    socat::WORKLOAD,
    in_flight::WORKLOAD,
    idle::WORKLOAD,
    listeners::WORKLOAD,
];

/// Returns every workload of a machine with `processors`: [`ALL`], and those of several threads.
#[must_use]
pub fn all(processors: usize) -> Vec<Workload> {
    let fits = |workload: &Workload| match workload.environment {
        Environment::Threads(threads) => threads <= processors,
        _ => true,
    };
    ALL.into_iter().chain(threads::ALL.into_iter().filter(fits)).collect()
}

/// Files per idle connection: Sluicegate keeps three for each, and as many for other runs.
const FILES_PER_IDLE_CONNECTION: u64 = 7;

/// A kind of load.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Name in reports.
    pub name: &'static str,
    /// Description for people.
    pub about: &'static str,
    /// Setup of the peer.
    pub environment: Environment,
    generator: Generator,
    load: Load,
    request: fn() -> Arc<[u8]>,
}

/// Setup of the peers under a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Single thread, and an upstream without TLS.
    Plain,
    /// Single thread, and an upstream that speaks TLS.
    Tls,
    /// Several threads, and as much load as the other processors generate.
    Threads(usize),
}

/// Behaviour of the load generator while nothing is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// Sleeps, and is woken.
    Sleeps,
    /// Asks for events again and again.
    Spins,
}

#[derive(Debug, Clone, Copy)]
enum Load {
    /// Connections that send one request at a time, each after the last answer.
    Closed { connections: usize },
    /// Closed load with each connection through a process of `socat`, as in a sandbox.
    ClosedThroughSocat { connections: usize },
    /// Closed load of many runs, each with as many connections.
    Runs { runs: usize, connections: usize },
    /// Requests at a fixed rate, due whether or not the earlier ones are answered.
    Paced { connections: u32, per_second: u32 },
    /// Streams that run at once, each read to its end.
    Streams { count: u32 },
    /// Requests of one connection while `held` others are idle.
    Idle { held: usize },
    /// Listeners of runs opened and closed while `held` others are open.
    Listeners { held: usize },
}

/// Length of a round, and the generators that drive it.
#[derive(Debug, Clone, Copy)]
pub struct Drive<'d> {
    /// Duration of the round.
    pub span: Duration,
    /// Behaviour of the generator, unless the workload has its own.
    pub generator: Generator,
    /// Generators beside a peer with several threads.
    pub pool: Option<&'d LoadPool>,
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
    /// Memory of what the workload holds.
    pub held: Held,
}

/// Growth of memory by listeners or connections that are held.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    /// Number of them; 0 if the workload holds none.
    pub count: u64,
    /// Growth of the peer's resident memory, bytes.
    pub rss: u64,
    /// Growth of the kernel's own memory on both sides, bytes.
    pub slab: u64,
}

impl Workload {
    /// Fields that most workloads have in common.
    const CLOSED: Self = Self {
        name: "",
        about: "",
        environment: Environment::Plain,
        generator: Generator::Sleeps,
        load: Load::Closed { connections: 1 },
        request: || request::chat("fast", 1024),
    };

    /// Returns whether `peer` supports the workload.
    #[must_use]
    pub fn suits(&self, peer: &Peer) -> bool {
        let environment = match self.environment {
            Environment::Plain => true,
            Environment::Tls => peer.can(Ability::Tls),
            Environment::Threads(_) => peer.can(Ability::Threads),
        };
        environment
            && match self.load {
                Load::Listeners { .. } => peer.control.is_some(),
                Load::Idle { .. } => peer.can(Ability::Pool),
                _ => true,
            }
    }

    /// Returns whether the workload would distort later memory figures of a peer, so that it needs a fresh one.
    #[must_use]
    pub const fn wants_fresh_peer(&self) -> bool {
        matches!(self.load, Load::Listeners { .. } | Load::Idle { .. })
    }

    /// Returns whether the workload does with fewer open files than it wants.
    #[must_use]
    pub const fn is_content_with_fewer_files(&self) -> bool {
        matches!(self.load, Load::Idle { .. })
    }

    /// Returns the number of files that a peer and the load generator have to be able to open.
    #[must_use]
    pub const fn open_files(&self) -> u64 {
        match self.load {
            Load::Idle { held } => held as u64 * FILES_PER_IDLE_CONNECTION,
            Load::Listeners { held } => held as u64 * 3 / 2,
            _ => 4096,
        }
    }

    /// Runs the workload on `peer`.
    ///
    /// # Errors
    /// If any request fails: a peer that drops requests is not measured.
    pub async fn run(&self, peer: &Running, drive: Drive<'_>) -> io::Result<Sample> {
        let spins = self.generator == Generator::Spins || drive.generator == Generator::Spins;
        let _spinner = spins.then(Spinner::start);
        let request = (self.request)();
        let target = &peer.target;
        match self.load {
            Load::Closed { connections } => {
                closed(peer, &Client::many(target, &request, connections), drive).await
            }
            Load::ClosedThroughSocat { connections } => {
                let bridge = socat::Bridge::start(target)?;
                closed(peer, &Client::many(&bridge.target, &request, connections), drive).await
            }
            Load::Runs { runs, connections } => {
                closed(peer, &self.clients_of_runs(peer, runs, connections)?, drive).await
            }
            Load::Paced { connections, per_second } => {
                let load = |span| load::paced(target, Arc::clone(&request), (connections, per_second), span);
                load(drive.span / 10).await?;
                observed(peer, load(drive.span)).await
            }
            Load::Streams { count } => {
                observed(peer, load::streams(target, request, count, streams::GAP)).await
            }
            Load::Idle { held } => {
                let clients = Client::many(target, &request, 32);
                load::closed(clients, drive.span / 10).await?; // fills the pools before memory is compared
                let before = Memory::of(peer)?;
                // Memory is reported per connection, so fewer serve as well where fewer files can be opened.
                let allowed = process::allow_open_files(0) / FILES_PER_IDLE_CONNECTION;
                let held = held.min(usize::try_from(allowed).unwrap_or(held));
                let connections = idle::hold(target, &request, held).await?;
                let held = before.growth(peer, connections.len())?;
                let sample = closed(peer, &Client::many(target, &request, 1), drive).await?;
                Ok(Sample { held, ..sample })
            }
            Load::Listeners { held } => {
                let control = peer.control.as_ref().ok_or(io::ErrorKind::Unsupported)?;
                let before = Memory::of(peer)?;
                listeners::hold(control, held).await?;
                let held = before.growth(peer, held)?;
                Ok(Sample { held, ..observed(peer, listeners::open_and_close(control, drive.span)).await? })
            }
        }
    }

    /// Returns the clients of runs that each have a token, and their own target where the peer has one. Beside
    /// several threads, all use the address that these share.
    fn clients_of_runs(&self, peer: &Running, runs: usize, connections: usize) -> io::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for run in (0..runs).map(|number| format!("run-{number}")) {
            let opened = peer.open_run(&run)?;
            let target = match self.environment {
                Environment::Threads(_) => peer.shared_target(),
                _ => opened,
            };
            clients.extend(Client::many(&target, &request::of_run(&(self.request)(), &run), connections));
        }
        Ok(clients)
    }
}

/// Runs closed load on `peer`, first without measuring, so that connections to the upstream are open.
async fn closed(peer: &Running, clients: &[Client], drive: Drive<'_>) -> io::Result<Sample> {
    match drive.pool {
        None => {
            load::closed(clients.to_vec(), drive.span / 10).await?;
            observed(peer, load::closed(clients.to_vec(), drive.span)).await
        }
        Some(pool) => {
            pool.closed(clients.to_vec(), drive.span / 10).await?;
            observed(peer, pool.closed(clients.to_vec(), drive.span)).await
        }
    }
}

/// Memory before something is held.
struct Memory {
    rss: u64,
    slab: u64,
}

impl Memory {
    fn of(peer: &Running) -> io::Result<Self> {
        Ok(Self { rss: process::used(&peer.processes())?.rss, slab: process::kernel_slab() })
    }

    fn growth(&self, peer: &Running, count: usize) -> io::Result<Held> {
        let now = Self::of(peer)?;
        Ok(Held {
            count: count as u64,
            rss: now.rss.saturating_sub(self.rss),
            slab: now.slab.saturating_sub(self.slab),
        })
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
        held: Held::default(),
    })
}

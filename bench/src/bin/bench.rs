//! `bench`: the benchmark, and the relay it measures as the floor. All else is in the library.

use std::{collections::BTreeMap, io, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use bench::{
    fast::FastUpstream,
    peer, report,
    workload::{self, Workload},
};
use clap::{Parser, Subcommand};

/// Measures Sluicegate beside its peers, in one run on one machine.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load every peer with every workload, in interleaved rounds
    Run(Run),
    /// Relay bytes from a unix socket to an address
    Relay {
        /// The socket
        socket: PathBuf,
        /// The address
        upstream: SocketAddr,
    },
}

#[derive(clap::Args)]
struct Run {
    /// How many rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a round of one peer under one workload takes, in milliseconds
    #[arg(long, default_value_t = 1000)]
    span: u64,
    /// Only these peers
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Only these workloads
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Write the rows here as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        Command::Relay { socket, upstream } => runtime.block_on(peer::serve_relay(&socket, upstream)),
        Command::Run(run) => runtime.block_on(measure(run)),
    }
}

async fn measure(run: Run) -> io::Result<()> {
    let wanted = |names: &[String], name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let peers: Vec<_> = peer::ALL.into_iter().filter(|peer| wanted(&run.peers, peer.name)).collect();
    let workloads: Vec<Workload> =
        workload::ALL.into_iter().filter(|workload| wanted(&run.workloads, workload.name)).collect();
    let dir = std::env::temp_dir().join(format!("sb-{}", std::process::id()));
    let upstream = FastUpstream::start().await?;
    let mut samples: BTreeMap<(usize, usize), report::Samples> = BTreeMap::new();
    for round in 0..run.rounds {
        for (p, peer) in peers.iter().enumerate() {
            say(&format!("round {} of {}: {}", round + 1, run.rounds, peer.name));
            let running = peer.start(&dir.join(round.to_string()), upstream.address())?;
            for (w, workload) in workloads.iter().enumerate() {
                let sample = workload.run(&running, Duration::from_millis(run.span)).await?;
                samples.entry((w, p)).or_default().0.push(sample);
            }
        }
    }
    std::fs::remove_dir_all(&dir)?;
    let mut rows = Vec::new();
    for (w, workload) in workloads.iter().enumerate() {
        let of_workload: Vec<_> = peers
            .iter()
            .enumerate()
            .filter_map(|(p, peer)| Some(samples.get_mut(&(w, p))?.row(peer.name, workload.name)))
            .collect();
        print(&report::table(workload.about, &of_workload));
        rows.extend(of_workload);
    }
    match run.summary {
        Some(path) => std::fs::write(path, serde_json::to_string_pretty(&rows)?),
        None => Ok(()),
    }
}

#[expect(clippy::print_stderr, reason = "progress for the person who waits")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stdout, reason = "the result")]
fn print(text: &str) {
    println!("{text}");
}

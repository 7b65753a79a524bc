//! Parses the command line of `bench` and executes its subcommands.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    fairness,
    hop::Hop,
    instructions::{self, Counts, Verdict},
    measure::{cores::available, machine::Machine, process},
    peer,
    report::{self, Record},
    session::Plan,
    workload::{self, Generator, Workload},
};

/// Measures Sluicegate beside its peers, in one run on one machine.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load every peer with every workload, in interleaved rounds
    Run(Run),
    /// Measure one account's latency while another is at its limits and calls on
    Fairness(Fairness),
    /// Count the proxy's instructions per request and compare them with what is kept
    Instructions(Instructions),
    /// Serve as a peer that is not a product
    Hop(Hop),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Number of rounds
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Duration of a round of one peer under one workload, in milliseconds
    #[arg(long, default_value_t = 3000)]
    span: u64,
    /// Another build of `sluice-proxy` to measure beside this one, as `sluicegate-before` and `sluicegate-token-before`
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// Keep load generator and upstream awake under every workload, so that no peer has to wake them
    #[arg(long)]
    spin: bool,
    /// Only these peers
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    peers: Vec<String>,
    /// Only these workloads; `threads-*` is all with names that begin so
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    workloads: Vec<String>,
    /// Write the run into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    results: Option<PathBuf>,
    /// Keep the run below this directory, in DATE-HOST
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write table and plot of the kept run into this README
    #[arg(long, value_name = "FILE", requires = "keep")]
    readme: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Fairness {
    /// Number of rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Duration of a case in a round, in milliseconds
    #[arg(long, default_value_t = 3000)]
    span: u64,
    /// Keep the figures in this file
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Instructions {
    /// The kept figures
    #[arg(long, value_name = "FILE", default_value = "bench/instructions.json")]
    kept: PathBuf,
    /// Keep the new figures instead of judging them
    #[arg(long)]
    accept: bool,
    /// Leave callgrind's dumps here, two per case (warm-up, count), for `callgrind_annotate`
    #[arg(long, value_name = "DIR")]
    dumps: Option<PathBuf>,
}

/// Executes the subcommand.
///
/// # Errors
/// If it fails, or if instructions have become too many.
pub async fn run(arguments: Arguments) -> io::Result<()> {
    match arguments.command {
        Command::Run(run) => unless_stopped(measure_peers(run)).await,
        Command::Fairness(fairness) => unless_stopped(measure_fairness(fairness)).await,
        Command::Instructions(instructions) => unless_stopped(count_instructions(instructions)).await,
        // A hop has its own runtimes, which cannot start inside this one.
        Command::Hop(hop) => std::thread::spawn(|| hop.serve())
            .join()
            .map_err(|_panicked| io::Error::other("the hop panicked"))?,
    }
}

/// Measures until the end or a signal. A measurement that is dropped ends the peers that it has started.
async fn unless_stopped(measurement: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        outcome = measurement => outcome,
        _ = terminated.recv() => Err(io::Error::other("terminated")),
        _ = interrupted.recv() => Err(io::Error::other("interrupted")),
    }
}

async fn measure_peers(run: Run) -> io::Result<()> {
    let plan = Plan {
        peers: peers(&run)?,
        workloads: workloads(&run)?,
        rounds: run.rounds,
        span: Duration::from_millis(run.span),
        generator: if run.spin { Generator::Spins } else { Generator::Sleeps },
        before: run.before.clone().unwrap_or_default(),
    };
    let machine = Machine::here();
    let scratch = Scratch::new()?;
    let samples = plan.run(&scratch.0, say).await?;
    let record = Record::of(machine, &plan, samples);
    print(&record.tables);
    if let Some(results) = run.results {
        return record.write(&results, &scratch.0);
    }
    let Some(runs) = run.keep else { return Ok(()) };
    let dir = record.dir(&runs);
    record.write(&dir, &scratch.0)?;
    say(&format!("kept in {}", dir.display()));
    run.readme.map_or(Ok(()), |readme| report::write_readme(&readme, &record, &dir))
}

async fn measure_fairness(arguments: Fairness) -> io::Result<()> {
    let machine = Machine::here();
    let scratch = Scratch::new()?;
    let span = Duration::from_millis(arguments.span);
    let figures = fairness::measure(&scratch.0, (arguments.rounds, span), say).await?;
    print(&fairness::table(&figures));
    let Some(file) = arguments.keep else { return Ok(()) };
    let record = serde_json::json!({ "machine": machine, "span_ms": arguments.span, "cases": figures });
    std::fs::write(file, format!("{record:#}\n"))
}

/// Returns the named peers, or all that are always measured if none is named.
fn peers(run: &Run) -> io::Result<Vec<peer::Peer>> {
    let mut known = peer::ALL.to_vec();
    if run.before.is_some() {
        known.extend(peer::BEFORE);
    }
    if !run.peers.is_empty() {
        known.extend(peer::ON_REQUEST);
    }
    if run.peers.is_empty() {
        for missing in known.extract_if(.., |peer| !peer.is_installed()) {
            say(&format!("{} is not installed and not measured", missing.name));
        }
    }
    chosen(&known, &run.peers, |peer| peer.name)
}

/// Returns the named workloads, or all that the machine allows if none is named.
fn workloads(run: &Run) -> io::Result<Vec<Workload>> {
    let mut chosen = chosen(&workload::all(available().len()), &run.workloads, |workload| workload.name)?;
    let needed = chosen.iter().map(Workload::open_files).max().unwrap_or_default();
    let allowed = process::allow_open_files(needed);
    let lacks_files =
        |workload: &Workload| workload.open_files() > allowed && !workload.is_content_with_fewer_files();
    for left_out in chosen.extract_if(.., |workload| lacks_files(workload)) {
        say(&format!("{} is left out: it needs {} open files", left_out.name, left_out.open_files()));
    }
    Ok(chosen)
}

/// Returns the named items of `all`, or all if none is named.
fn chosen<T: Copy>(all: &[T], wanted: &[String], name: fn(&T) -> &'static str) -> io::Result<Vec<T>> {
    let is = |one: &T, wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => name(one).starts_with(start),
        None => name(one) == wanted,
    };
    if let Some(unknown) = wanted.iter().find(|wanted| !all.iter().any(|one| is(one, wanted))) {
        let known: Vec<_> = all.iter().map(name).collect();
        return Err(io::Error::other(format!("there is no {unknown}; there are: {}", known.join(", "))));
    }
    let is_wanted = |one: &&T| wanted.is_empty() || wanted.iter().any(|wanted| is(one, wanted));
    Ok(all.iter().filter(is_wanted).copied().collect())
}

async fn count_instructions(arguments: Instructions) -> io::Result<()> {
    let scratch = Scratch::new()?;
    let dir = arguments.dumps.as_ref().unwrap_or(&scratch.0);
    let now = instructions::count(dir, say).await?;
    if arguments.accept {
        return std::fs::write(&arguments.kept, serde_json::to_string_pretty(&now)? + "\n");
    }
    let kept: Counts = serde_json::from_slice(&std::fs::read(&arguments.kept)?)?;
    let verdicts = instructions::compare(&kept, &now);
    print("| case | per request | kept | now | change |\n|---|---|--:|--:|--:|");
    for verdict in &verdicts {
        let (kept, now) = (verdict.kept.unwrap_or_default(), verdict.now.unwrap_or_default());
        let change = verdict.change().unwrap_or(f64::INFINITY);
        print(&format!("| {} | {} | {kept} | {now} | {change:+.1} % |", verdict.case, verdict.unit));
    }
    if verdicts.iter().any(Verdict::is_better) {
        say("a case costs much less than what is kept: `make bench-accept` keeps the new figures");
    }
    if verdicts.iter().all(Verdict::is_good) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "more than {} % over the kept figures: fix it, or keep the new figures with `make bench-accept` and say why",
        instructions::TOLERANCE
    )))
}

/// A temporary directory, removed when the run ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        // The name is short, because a unix socket's path has at most 107 bytes.
        let dir = std::env::temp_dir().join(format!("sb-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(Path::new(&self.0)));
    }
}

/// Prints a line on stderr: progress for the person who waits, or an error.
#[expect(clippy::print_stderr, reason = "progress for the person who waits")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stdout, reason = "the result")]
fn print(text: &str) {
    println!("{text}");
}

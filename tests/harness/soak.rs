//! Makes many calls, with some clients that leave in the middle, and samples the proxy's resources.
//!
//! Samples are taken between bouts of load, when no call is in flight. In the first third, pools, buffers and the
//! allocator reach their final size; after that nothing may grow.

use std::{collections::HashSet, fs, sync::Arc, time::Duration};

use bench::{
    load::{Connection, Target},
    measure::process,
};
use http::Method;
use platform_core::{
    control::{AccountView, RunView},
    record::ExchangeRecord,
};
use platform_runtime::task;
use serde::Serialize;

use crate::{
    agent::{Answering, Wire, chat_body},
    eventually::eventually_within,
    raw::{Raw, read_until},
    world::{Run, World},
};

const CHAT: &str = "/v1/chat/completions";
/// Connections at a time.
const CONNECTIONS: u64 = 16;
/// Longest wait for the end of a bout's last call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Allowed growth of memory from the second third to the last: fragments, and state kept of the latest runs.
const MEMORY: (u64, u64) = (2, 1 << 20);
/// Allowed growth of descriptors: connections to the upstream that are kept.
const DESCRIPTORS: u64 = 4;

/// Leak that a play contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leak {
    /// No known leak.
    None,
    /// A control: clients stay, one more after each bout.
    Clients,
}

/// Load of a play, and the number of bouts.
#[derive(Debug, Clone, Copy)]
pub struct Soak {
    /// Calls that end.
    pub calls: u64,
    /// Calls with clients that leave in the middle of a stream.
    pub cuts: u64,
    /// Number of bouts, which share all equally. Calls and cuts are multiples of it and of the number of connections.
    pub bouts: u64,
    /// Leak of the play.
    pub leak: Leak,
}

/// Resources of the proxy with no call in flight.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Calls so far.
    pub calls: u64,
    /// Lines of the journal so far.
    pub lines: u64,
    /// Resident memory, in bytes.
    pub rss: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
    /// Calls in flight, as the proxy reports them.
    pub in_flight: u64,
    /// Reserved amounts, over all limits of all runs and accounts.
    pub reserved: u64,
    /// In-flight marks without a record.
    pub marks: u64,
}

impl Soak {
    /// Loads a proxy, and returns its resources after each bout.
    ///
    /// # Panics
    /// If a call fails.
    pub async fn run(self, settings: &str) -> Vec<Sample> {
        let mut world = World::quiet(settings).await;
        let (mut samples, mut leaked) = (Vec::new(), Vec::new());
        for bout in 1..=self.bouts {
            // One run lasts for the whole soak; another is opened and closed in each bout.
            let (lasting, passing) =
                (world.run("lasting", "acct-1").await, world.run(&format!("passing-{bout}"), "acct-2").await);
            let each = self.calls / self.bouts / CONNECTIONS;
            let clients = (0..CONNECTIONS).map(|number| {
                let run = if number % 2 == 0 { &lasting } else { &passing };
                let cuts = share(self.cuts / self.bouts, number);
                task::spawn("client", client(Target::Unix(run.socket.clone()), run.agent.clone(), each, cuts))
            });
            for client in clients.collect::<Vec<_>>() {
                client.await.unwrap();
            }
            if self.leak == Leak::Clients {
                leaked.push(call_and_stay(&lasting).await);
            }
            world.control.close(&passing.grant.run_id, 1000).await.unwrap();
            samples.push(at_rest(&world, bout * each * CONNECTIONS).await);
            world.upstream.ledger().clear();
        }
        drop(leaked);
        assert!(world.stop_proxy().await);
        samples
    }
}

/// Returns the share of `all` that falls to one connection.
const fn share(all: u64, number: u64) -> u64 {
    all / CONNECTIONS + if number < all % CONNECTIONS { 1 } else { 0 }
}

async fn client(target: Target, agent: crate::Agent, calls: u64, cuts: u64) {
    let whole: Arc<[u8]> = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).bytes().into();
    let streamed: Arc<[u8]> = Raw::post(CHAT, &chat_body("fake-words5", Answering::Streamed)).bytes().into();
    let stalling = Raw::post(CHAT, &chat_body("fake-stall2", Answering::Streamed));
    let mut connection = Connection::open(&target).await.unwrap();
    for call in 0..calls {
        let request = if call % 4 == 0 { &streamed } else { &whole };
        connection.exchange(request).await.unwrap();
        if cuts > 0 && call % (calls / cuts).max(1) == 0 && call / (calls / cuts).max(1) < cuts {
            drop(read_until(&mut stalling.begin(&agent).await, "Hello").await);
        }
    }
}

/// Makes a call, and returns its connection, which stays open.
async fn call_and_stay(run: &Run) -> Box<dyn Wire> {
    let mut wire = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).begin(&run.agent).await;
    read_until(&mut wire, "Hello").await;
    wire
}

async fn at_rest(world: &World, calls: u64) -> Sample {
    let sample = || async { sample(world, calls).await };
    eventually_within(PATIENCE, "no call is under way", sample, |sample| {
        sample.in_flight == 0 && sample.reserved == 0
    })
    .await
}

async fn sample(world: &World, calls: u64) -> Sample {
    let pid = world.proxy_pid();
    let health = world.control.health().await.unwrap();
    let get = async |path| world.control.send(Method::GET, path, String::new()).await;
    let runs: Vec<RunView> = serde_json::from_slice(&get("/v1/runs").await.body).unwrap();
    let accounts: Vec<AccountView> = serde_json::from_slice(&get("/v1/accounts").await.body).unwrap();
    let views = runs.iter().map(|run| &run.limits).chain(accounts.iter().map(|account| &account.limits));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    Sample {
        calls,
        lines: health.journal_seq,
        rss: process::used(&[pid]).unwrap().rss,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64,
        threads: threads.trim().parse().unwrap(),
        in_flight: health.in_flight,
        reserved: views.flatten().map(|view| view.reserved).sum(),
        marks: marks(world).await,
    }
}

/// Returns the number of calls that the next proxy would record as interrupted: those with a mark, and without a record
/// after the line that the mark names.
async fn marks(world: &World) -> u64 {
    const SLOT: usize = 4096;
    const HEAD: usize = 24;
    let slots: Vec<_> = world.marks_files().iter().map(|path| fs::read(path).unwrap()).collect();
    let slots = slots.concat();
    let number = |slot: &[u8], at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().unwrap());
    let marks: Vec<(u64, ExchangeRecord)> = slots
        .chunks_exact(SLOT)
        .filter(|slot| number(slot, 0) > 0)
        .map(|slot| {
            let end = HEAD + usize::try_from(number(slot, 0)).unwrap();
            (number(slot, 16), serde_json::from_slice(&slot[HEAD..end]).unwrap())
        })
        .collect();
    let Some(after) = marks.iter().map(|(after, _)| *after).min() else { return 0 };
    let records = world.control.journal(after).await;
    let recorded: HashSet<_> = records.iter().map(|line| line.record.litellm_call_id).collect();
    marks.iter().filter(|(_, record)| !recorded.contains(&record.litellm_call_id)).count() as u64
}

/// Returns the figures that have grown from the second third to the last; a sound proxy has none.
///
/// # Panics
/// If there are not three samples.
#[must_use]
pub fn grown(samples: &[Sample]) -> Vec<String> {
    let third = samples.len() / 3;
    let (before, after) = (&samples[third..2 * third], &samples[2 * third..]);
    let most = |samples: &[Sample], of: fn(&Sample) -> u64| samples.iter().map(of).max().unwrap();
    let median = |samples: &[Sample]| {
        let mut memory: Vec<_> = samples.iter().map(|sample| sample.rss).collect();
        memory.sort_unstable();
        memory[memory.len() / 2]
    };
    let mut grown = Vec::new();
    let mut check = |name: &str, before: u64, after: u64, allowed: u64| {
        if after > before + allowed {
            grown.push(format!("{name}: {before}, then {after}"));
        }
    };
    let (percent, bytes) = MEMORY;
    check("memory", median(before), median(after), median(before) * percent / 100 + bytes);
    // The number of kept connections varies, so the comparison is with the highest number before.
    let earlier = &samples[..2 * third];
    check("descriptors", most(earlier, |s| s.descriptors), most(after, |s| s.descriptors), DESCRIPTORS);
    check("threads", most(before, |s| s.threads), most(after, |s| s.threads), 0);
    for sample in samples {
        check("marks at rest", 0, sample.marks, 0);
    }
    grown
}

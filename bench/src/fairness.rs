//! Measures two accounts on one proxy thread: how much one affects the other.
//!
//! The modest account's calls are paced, and their latency is measured. First it calls alone. Then the greedy account
//! holds all the calls it may have in flight, and sends more that are refused. For comparison, the greedy account has
//! no limits and as many of its calls are served. Load generator and upstream share one processor of their own, and
//! they cause a part of the measured latency. The two loads cost them about the same.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use tokio::task::JoinHandle;

use crate::{
    fast::FastUpstream,
    load::{self, Connection, Target, percentile},
    measure::cores,
    peer::{Running, sluicegate},
    request::chat,
    spawn_result,
};

const GREEDY: &str = "acct-greedy";
/// Limit of the greedy account's calls in flight, which it always reaches.
const GREEDY_LIMIT: u64 = 8;
/// Connections of each account.
const CONNECTIONS: u32 = 16;
/// Calls a second of the modest account.
const MODEST_PER_SECOND: u32 = 500;
/// Cases: calls per second of the greedy account, and their treatment.
const CASES: [Case; 5] = [
    Case { name: "alone", per_second: 0, greedy: Greedy::Refused },
    Case { name: "1,000/s refused", per_second: 1000, greedy: Greedy::Refused },
    Case { name: "1,000/s served", per_second: 1000, greedy: Greedy::Served },
    Case { name: "4,000/s refused", per_second: 4000, greedy: Greedy::Refused },
    Case { name: "4,000/s served", per_second: 4000, greedy: Greedy::Served },
];

#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    per_second: u32,
    greedy: Greedy,
}

/// Treatment of the greedy account's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greedy {
    /// The account is at its limits.
    Refused,
    /// The account has no limits.
    Served,
}

/// Results of a case: the modest account's latency in microseconds, for each round.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    case: &'static str,
    p50_us: Vec<u64>,
    p99_us: Vec<u64>,
    /// Calls of the modest account, all of them served.
    calls: u64,
    /// Answered calls of the greedy account per second, as measured.
    greedy_per_second: Vec<u64>,
}

/// Measures all cases, `rounds` times, one after the other.
///
/// # Errors
/// If the proxy does not start, or a call of the modest account fails.
pub async fn measure(
    dir: &Path,
    (rounds, span): (usize, Duration),
    progress: impl Fn(&str),
) -> io::Result<Vec<Figures>> {
    cores::pin_self()?;
    let upstream = FastUpstream::start().await?;
    let proxy = sluicegate::PEER.start(dir, &upstream.address().into())?;
    let greedy = sluicegate::open(&proxy.site, "greedy", GREEDY)?;
    let mut figures = CASES.map(|case| Figures { case: case.name, ..Figures::default() });
    for round in 1..=rounds {
        for (case, figures) in CASES.iter().zip(&mut figures) {
            progress(&format!("round {round} of {rounds}: {}", case.name));
            sample(&proxy, &greedy, (case, span), figures).await?;
        }
    }
    Ok(figures.into())
}

async fn sample(
    proxy: &Running,
    greedy: &Target,
    (case, span): (&Case, Duration),
    figures: &mut Figures,
) -> io::Result<()> {
    let limit = (case.greedy == Greedy::Refused).then_some(GREEDY_LIMIT);
    sluicegate::limit(&proxy.site, GREEDY, limit)?;
    let mut running = Vec::new();
    if case.per_second > 0 && case.greedy == Greedy::Refused {
        running = hold(greedy).await?;
    }
    let answered = Arc::new(AtomicU64::new(0));
    if case.per_second > 0 {
        let expected = if case.greedy == Greedy::Refused { 429 } else { 200 };
        running.extend(flood(greedy, case.per_second, (expected, &answered)));
    }
    let modest =
        |span| load::paced(&proxy.target, chat("fast", 1024), (CONNECTIONS, MODEST_PER_SECOND), span);
    modest(span / 10).await?;
    let before = answered.load(Ordering::Relaxed);
    let mut round = modest(span).await?;
    let answered = answered.load(Ordering::Relaxed) - before;
    if let Some(failed) = running.iter().position(JoinHandle::is_finished) {
        return running.swap_remove(failed).await.map_err(io::Error::other)?;
    }
    for task in running {
        task.abort();
        drop(task.await);
    }
    figures.p50_us.push(percentile(&mut round.latency, 500) / 1000);
    figures.p99_us.push(percentile(&mut round.latency, 990) / 1000);
    figures.calls += round.requests;
    figures.greedy_per_second.push(answered * 1_000_000_000 / round.elapsed_ns.max(1));
    Ok(())
}

/// Keeps as many calls in flight as the greedy account may have.
async fn hold(greedy: &Target) -> io::Result<Vec<JoinHandle<io::Result<()>>>> {
    let mut held = Vec::new();
    for _ in 0..GREEDY_LIMIT {
        let mut connection = Connection::open(greedy).await?;
        held.push(spawn_result(async move {
            connection.exchange(&chat("fast-hold600000ms", 1024)).await.map(drop)
        }));
    }
    // One more call is served until all held calls are in flight.
    let mut connection = Connection::open(greedy).await?;
    while connection.status(&chat("fast", 1024)).await? == 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(held)
}

/// Sends calls, checks that each is answered as `expected`, and counts them. A connection that falls behind does not
/// catch up.
fn flood(
    greedy: &Target,
    per_second: u32,
    (expected, answered): (u16, &Arc<AtomicU64>),
) -> Vec<JoinHandle<io::Result<()>>> {
    let start = |_| {
        let (greedy, answered) = (greedy.clone(), Arc::clone(answered));
        spawn_result(async move {
            let request = chat("fast", 1024);
            let mut connection = Connection::open(&greedy).await?;
            let mut due = tokio::time::interval(Duration::from_secs(1) * CONNECTIONS / per_second);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                let status = connection.status(&request).await?;
                if status != expected {
                    return Err(io::Error::other(format!("answered {status} instead of {expected}")));
                }
                answered.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    (0..CONNECTIONS).map(start).collect()
}

/// Returns the figures as a table for people: the median of all rounds.
#[must_use]
pub fn table(all: &[Figures]) -> String {
    let median = |values: &[u64]| percentile(&mut values.to_vec(), 500);
    let heading = "| other account | p50 µs | p99 µs | its calls a second |\n|---|--:|--:|--:|".to_owned();
    let rows = all.iter().map(|figures| {
        let medians = [&figures.p50_us, &figures.p99_us, &figures.greedy_per_second].map(|all| median(all));
        format!("| {} | {} | {} | {} |", figures.case, medians[0], medians[1], medians[2])
    });
    std::iter::once(heading).chain(rows).collect::<Vec<_>>().join("\n")
}

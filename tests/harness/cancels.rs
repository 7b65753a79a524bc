//! Cancels runs of a real gateway at random moments and compares the time of the cancel with the time of the last model
//! call.
//!
//! Times come from the models' own clock. Each run has a word that is in all of its calls, those of its sub-agents and
//! of summaries included.

use std::time::{Duration, Instant};

use bench::upstream::{Entry, Ledger};
use futures_util::{StreamExt, stream};
use memchr::memmem;
use serde::Serialize;
use serde_json::json;

use crate::{
    eventually::eventually_within,
    openclaw::Setup,
    pace::pace,
    random::Random,
    sessions::{Sessions, arguments},
    sluice::{Outcome, interrupt},
};

/// Latest time after a cancel at which a call of the run may still arrive.
pub const LATEST: Duration = Duration::from_secs(1);
/// Time after the cancel during which later calls are still detected.
const WATCHED: Duration = Duration::from_secs(5);
/// Longest wait for the first model call: the first turn of a gateway takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Shortest delay of a cancel: by then `sluice` handles signals.
const MIN_DELAY_MS: usize = 1000;
/// Range of the random part of the delay. A run's list takes longer than the longest delay.
const DELAY_RANGE_MS: usize = 6000;
/// Step that starts a sub-agent: a gateway offers its models a tool that calls the other tools.
const SPAWNS: &str = "call: tool_call";
/// Steps of a run's list.
const STEPS: usize = 40;

/// Starts a gateway with a slow model and agents that may start sub-agents.
pub async fn gateway() -> Sessions {
    let tools = ["exec", "read", "sessions_spawn"].map(str::to_owned).to_vec();
    Sessions::without_litellm(&["fake-steps-gap30ms"], |setup| Setup { tools, ..setup }).await
}

/// Parameters of a play.
#[derive(Debug, Clone, Copy)]
pub struct Cancels {
    /// Number of runs.
    pub runs: usize,
    /// Number of runs at a time.
    pub at_a_time: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Active sessions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The run's session only.
    Alone,
    /// The run's session and a sub-agent.
    WithSubAgent,
}

impl Work {
    const fn of(n: usize) -> Self {
        if n % 4 == 3 { Self::WithSubAgent } else { Self::Alone }
    }
}

/// A run that was cancelled.
#[derive(Debug, Clone)]
pub struct Cancelled {
    /// Word that occurs in all of its calls.
    pub mark: String,
    /// Time of the cancel.
    pub at: Instant,
    /// Active sessions.
    pub work: Work,
    /// Exit code of its command; absent if a signal ended it.
    pub outcome: Option<i32>,
}

/// Results of a play.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    /// Runs in total.
    pub runs: usize,
    /// Runs cancelled before their first model call.
    pub before_the_first_call: usize,
    /// Runs cancelled while a model answered.
    pub while_a_model_answered: usize,
    /// Runs cancelled between two calls, while tools or the gateway were active.
    pub between_calls: usize,
    /// Runs that had started a sub-agent.
    pub with_sub_agents: usize,
    /// Calls of these runs that the models received.
    pub calls: usize,
    /// Calls that came after the cancel.
    pub calls_after: usize,
    /// Time from the cancel to the last of them, in milliseconds.
    pub latest_ms: u128,
    /// Violations, in words.
    pub faults: Vec<String>,
}

impl Cancels {
    /// Runs and cancels them in `sessions`.
    ///
    /// # Panics
    /// If a command cannot be started.
    pub async fn run(&self, sessions: &Sessions) -> (Vec<Cancelled>, Found) {
        let mut random = Random::of(self.seed);
        let plans: Vec<_> = (0..self.runs)
            .map(|n| {
                (
                    n,
                    Duration::from_millis(
                        u64::try_from(MIN_DELAY_MS + random.below(DELAY_RANGE_MS)).unwrap(),
                    ),
                )
            })
            .collect();
        let runs = plans.into_iter().map(|(n, after)| run_and_cancel(sessions, n, after));
        let all: Vec<_> = stream::iter(runs).buffer_unordered(self.at_a_time).collect().await;
        pace(WATCHED).await;
        let found = judge(&all, &sessions.world.upstream.ledger());
        (all, found)
    }
}

/// Executes a run and cancels it `after` a delay from its first model call, or, for every eighth run, from its start.
async fn run_and_cancel(sessions: &Sessions, n: usize, after: Duration) -> Cancelled {
    let mark = format!("of-cancelled-{n}.");
    let (run, account, work) = (format!("cancelled-{n}"), format!("acct-{}", n % 4), Work::of(n));
    let message = message(&mark, work);
    let arguments = [&arguments((&run, &account))[..], &[&message]].concat();
    let child = sessions.world.sluice().spawn(&arguments);
    if n % 8 != 7 {
        let ledger = sessions.world.upstream.ledger();
        let is_called = || async { ledger.all().iter().any(|call| contains(call, &mark)) };
        eventually_within(PATIENCE, "a model is asked", is_called, |is_called| *is_called).await;
    }
    pace(after).await;
    let at = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().await.unwrap();
    let outcome = Outcome::from(output);
    Cancelled { mark, at, work, outcome: outcome.code }
}

/// Returns a list of steps that takes longer than the latest cancel, for the run and for its sub-agent, if it has one.
fn message(mark: &str, work: Work) -> String {
    let step = format!("call: exec {{\"command\":\"sleep 0.1; echo {mark}\"}}\n");
    let list = format!("Do this:\n{}", step.repeat(STEPS));
    if work == Work::Alone {
        return list;
    }
    let spawn = json!({ "id": "sessions_spawn", "args": { "task": list } });
    list.replacen("Do this:\n", &format!("Do this:\n{SPAWNS} {spawn}\n"), 1)
}

fn contains(call: &Entry, text: &str) -> bool {
    memmem::find(&call.body, text.as_bytes()).is_some()
}

/// Judges cancelled runs by the models' record of calls.
#[must_use]
pub fn judge(runs: &[Cancelled], ledger: &Ledger) -> Found {
    let calls = ledger.all();
    let mut found = Found { runs: runs.len(), ..Found::default() };
    for run in runs {
        let own: Vec<_> = calls.iter().filter(|call| contains(call, &run.mark)).collect();
        found.calls += own.len();
        let before: Vec<_> = own.iter().filter(|call| call.arrived <= run.at).collect();
        let was_open = |call: &&&Entry| call.ending.at().is_none_or(|ended| ended > run.at);
        match before.len() {
            0 => found.before_the_first_call += 1,
            _ if before.iter().copied().any(|call| was_open(&call)) => found.while_a_model_answered += 1,
            _ => found.between_calls += 1,
        }
        let by_child = |call: &&Entry| !contains(call, SPAWNS);
        found.with_sub_agents += usize::from(run.work == Work::WithSubAgent && own.iter().any(by_child));
        for call in own.iter().filter(|call| call.arrived > run.at) {
            let late = call.arrived - run.at;
            found.calls_after += 1;
            found.latest_ms = found.latest_ms.max(late.as_millis());
            if late > LATEST {
                found.faults.push(format!("{} asked {late:?} after its cancel", run.mark));
            }
        }
        if run.outcome != Some(130) {
            found.faults.push(format!("{} ended with {:?}", run.mark, run.outcome));
        }
    }
    found
}

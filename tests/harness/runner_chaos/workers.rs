//! Runs `sluice up` under a supervisor, which kills, suspends and starts it, and arms it to die at a failpoint.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::{World, eventually::PATIENCE, process, random::Random};

/// Longest time for which a worker stays dead or suspended, in milliseconds.
const PAUSE_MS: usize = 4000;

/// A worker in any state.
#[derive(Debug)]
pub(super) struct Worker {
    log: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The worker is dead and is started again at that time.
    Dead(Instant),
    Alive {
        child: Child,
        armed: bool,
    },
    /// The worker is suspended until that time.
    Suspended {
        child: Child,
        until: Instant,
    },
}

/// Change of a worker's state that the supervisor did not cause directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The worker died at its failpoint.
    Died,
    /// The worker suspended itself at its failpoint.
    Suspended,
    /// The worker ended unexpectedly.
    Ended,
}

impl Worker {
    pub(super) fn new(world: &World, name: &str) -> Self {
        Self { log: world.path().join(format!("{name}.log")), state: State::Dead(Instant::now()) }
    }

    /// Starts it; at `failpoint`, if there is one, it dies or suspends itself.
    pub(super) fn start(&mut self, world: &World, failpoint: Option<String>) {
        let mut sluice = world.sluice().log_to(&self.log);
        let is_armed = failpoint.is_some();
        if let Some(failpoint) = failpoint {
            sluice = sluice.env("SLUICE_FAILPOINT", &failpoint);
        }
        let child = sluice.silent().spawn(&["up"]);
        self.state = State::Alive { child, armed: is_armed };
    }

    /// Kills it unless it is dead; returns whether it was killed.
    pub(super) async fn kill(&mut self, random: &mut Random) -> bool {
        let state = std::mem::replace(&mut self.state, State::Dead(later(random)));
        match state {
            State::Alive { mut child, .. } | State::Suspended { mut child, .. } => {
                child.kill().await.unwrap();
                true
            }
            State::Dead(at) => {
                self.state = State::Dead(at);
                false
            }
        }
    }

    /// Suspends it for a while if it runs unarmed; returns whether it was suspended.
    pub(super) fn stop(&mut self, random: &mut Random) -> bool {
        match std::mem::replace(&mut self.state, State::Dead(Instant::now())) {
            State::Alive { child, armed: false } => {
                signal(child.id(), Signal::STOP);
                self.state = State::Suspended { child, until: later(random) };
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// Performs one step of its supervisor: starts, resumes or checks it.
    pub(super) fn supervise(&mut self, world: &World, random: &mut Random) -> Option<Change> {
        let (state, change) = match std::mem::replace(&mut self.state, State::Dead(Instant::now())) {
            State::Dead(at) if Instant::now() >= at => {
                let failpoint = random_failpoint(random);
                self.start(world, failpoint);
                return None;
            }
            State::Suspended { child, until } if Instant::now() >= until => {
                signal(child.id(), Signal::CONT);
                (State::Alive { child, armed: false }, None)
            }
            State::Alive { mut child, armed } => match child.try_wait().unwrap() {
                Some(_) => {
                    (State::Dead(later(random)), Some(if armed { Change::Died } else { Change::Ended }))
                }
                None if armed && is_suspended(&child) => {
                    (State::Suspended { child, until: later(random) }, Some(Change::Suspended))
                }
                None => (State::Alive { child, armed }, None),
            },
            other => (other, None),
        };
        self.state = state;
        change
    }

    /// Lets it run without a failpoint, for the quiet part of a round.
    pub(super) async fn calm(&mut self, world: &World, random: &mut Random) {
        if let State::Suspended { child, .. } = &self.state {
            signal(child.id(), Signal::CONT);
        }
        match std::mem::replace(&mut self.state, State::Dead(Instant::now())) {
            State::Alive { child, armed: false } | State::Suspended { child, .. } => {
                self.state = State::Alive { child, armed: false };
            }
            armed => {
                self.state = armed;
                self.kill(random).await;
                self.start(world, None);
            }
        }
    }

    /// Ends it as a service manager does.
    pub(super) async fn end(&mut self) {
        if let State::Alive { child, .. } | State::Suspended { child, .. } = &mut self.state {
            signal(child.id(), Signal::CONT);
            signal(child.id(), Signal::TERM);
            tokio::time::timeout(PATIENCE, child.wait()).await.expect("it stops").unwrap();
        }
    }

    /// Returns the last lines of its log.
    pub(super) fn last_log_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().rev().take(2).collect::<Vec<_>>().join(" / ")
    }
}

fn signal(pid: Option<u32>, signal: Signal) {
    if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // A process that has already ended needs no signal.
        kill_process(pid, signal).ok();
    }
}

fn is_suspended(child: &Child) -> bool {
    child.id().is_some_and(process::is_suspended)
}

fn later(random: &mut Random) -> Instant {
    Instant::now() + Duration::from_millis(random.below(PAUSE_MS) as u64)
}

/// Returns a failpoint at which a worker dies or suspends itself, or `None`.
fn random_failpoint(random: &mut Random) -> Option<String> {
    let action = match random.below(10) {
        0..3 => "kill",
        3..5 => "stop",
        _ => return None,
    };
    Some(format!("{}:{action}", Point::ALL[random.below(Point::ALL.len())].name()))
}

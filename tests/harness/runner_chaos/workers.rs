//! Runs `sluice up` under a supervisor: it is killed, stopped, armed to die at a point, and started again.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::{World, random::Random};

/// Longest a dead worker stays dead, and one that stands still goes on standing.
const PAUSE_MS: usize = 4000;

/// A worker, dead or alive.
#[derive(Debug)]
pub(super) struct Worker {
    log: PathBuf,
    life: Life,
}

#[derive(Debug)]
enum Life {
    /// Started again at that time.
    Dead(Instant),
    Alive {
        child: Child,
        armed: bool,
    },
    /// Goes on at that time.
    Still {
        child: Child,
        until: Instant,
    },
}

/// Change of a worker that the supervisor did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// The worker reached a point at which it was to die.
    Died,
    /// The worker reached a point at which it was to stand still.
    Stood,
    /// The worker ended unexpectedly.
    Ended,
}

impl Worker {
    pub(super) fn new(world: &World, name: &str) -> Self {
        Self { log: world.path().join(format!("{name}.log")), life: Life::Dead(Instant::now()) }
    }

    /// Starts it; if `armed`, it dies or stands still at that point.
    pub(super) fn start(&mut self, world: &World, armed: Option<String>) {
        let mut sluice = world.sluice().log_to(&self.log);
        let is_armed = armed.is_some();
        if let Some(point) = armed {
            sluice = sluice.env("SLUICE_FAILPOINT", &point);
        }
        let child = sluice.silent().spawn(&["up"]);
        self.life = Life::Alive { child, armed: is_armed };
    }

    /// Kills it, if it lives.
    pub(super) async fn kill(&mut self, random: &mut Random) -> bool {
        let life = std::mem::replace(&mut self.life, Life::Dead(later(random)));
        match life {
            Life::Alive { mut child, .. } | Life::Still { mut child, .. } => {
                child.kill().await.unwrap();
                true
            }
            Life::Dead(at) => {
                self.life = Life::Dead(at);
                false
            }
        }
    }

    /// Suspends it for a while, unless it is suspended.
    pub(super) fn stop(&mut self, random: &mut Random) -> bool {
        match std::mem::replace(&mut self.life, Life::Dead(Instant::now())) {
            Life::Alive { child, armed: false } => {
                signal(child.id(), Signal::STOP);
                self.life = Life::Still { child, until: later(random) };
                true
            }
            other => {
                self.life = other;
                false
            }
        }
    }

    /// Performs one step of its supervisor: starts, resumes or checks it.
    pub(super) fn tend(&mut self, world: &World, random: &mut Random) -> Option<News> {
        let (life, news) = match std::mem::replace(&mut self.life, Life::Dead(Instant::now())) {
            Life::Dead(at) if Instant::now() >= at => {
                let armed = point(random);
                self.start(world, armed);
                return None;
            }
            Life::Still { child, until } if Instant::now() >= until => {
                signal(child.id(), Signal::CONT);
                (Life::Alive { child, armed: false }, None)
            }
            Life::Alive { mut child, armed } => match child.try_wait().unwrap() {
                Some(_) => (Life::Dead(later(random)), Some(if armed { News::Died } else { News::Ended })),
                None if armed && stands_still(&child) => {
                    (Life::Still { child, until: later(random) }, Some(News::Stood))
                }
                None => (Life::Alive { child, armed }, None),
            },
            other => (other, None),
        };
        self.life = life;
        news
    }

    /// Quiet: it lives, goes on, and nothing happens to it any more.
    pub(super) async fn calm(&mut self, world: &World, random: &mut Random) {
        if let Life::Still { child, .. } = &self.life {
            signal(child.id(), Signal::CONT);
        }
        match std::mem::replace(&mut self.life, Life::Dead(Instant::now())) {
            Life::Alive { child, armed: false } | Life::Still { child, .. } => {
                self.life = Life::Alive { child, armed: false };
            }
            armed => {
                self.life = armed;
                self.kill(random).await;
                self.start(world, None);
            }
        }
    }

    /// Ends it as a service manager does.
    pub(super) async fn end(&mut self) {
        if let Life::Alive { child, .. } | Life::Still { child, .. } = &mut self.life {
            signal(child.id(), Signal::CONT);
            signal(child.id(), Signal::TERM);
            tokio::time::timeout(Duration::from_secs(20), child.wait()).await.expect("it stops").unwrap();
        }
    }

    /// Its last words.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().rev().take(2).collect::<Vec<_>>().join(" / ")
    }
}

/// Proxies of this world.
pub(super) fn proxies(world: &Path) -> Vec<u32> {
    let (entries, world) = (fs::read_dir("/proc").unwrap().flatten(), world.display().to_string());
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_proxy = |pid: &u32| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split('\0');
        words.next().is_some_and(|program| program.ends_with("sluice-proxy")) && command.contains(&world)
    };
    pids.filter(is_proxy).collect()
}

pub(super) fn signal(pid: Option<u32>, signal: Signal) {
    if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // It may be gone already, which is as good.
        kill_process(pid, signal).ok();
    }
}

fn stands_still(child: &Child) -> bool {
    let stat = child.id().map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
    stat.is_some_and(|stat| stat.contains(") T "))
}

fn later(random: &mut Random) -> Instant {
    Instant::now() + Duration::from_millis(random.below(PAUSE_MS) as u64)
}

/// A point at which a worker is to die or to stand still, or none.
fn point(random: &mut Random) -> Option<String> {
    let action = match random.below(10) {
        0..3 => "kill",
        3..5 => "stop",
        _ => return None,
    };
    Some(format!("{}:{action}", Point::ALL[random.below(Point::ALL.len())].name()))
}

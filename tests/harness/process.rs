//! Finds the programs under test, and reads the kernel's information about processes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Longest that a process is taken for one that replaces its program.
const LONGEST_EXEC: Duration = Duration::from_secs(1);

/// Returns the path of a program that was built together with this test.
///
/// # Panics
/// If it is missing.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join(name);
    assert!(
        path.exists(),
        "{} is missing: run `make test`, or `cargo build --workspace` first",
        path.display()
    );
    path
}

/// Returns a number from `/proc/PID/status`; `None` if the process has ended.
#[must_use]
pub fn status_of(pid: u32, key: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns the processor time of a process, user and system, in hundredths of a second.
///
/// # Panics
/// If the process has ended.
#[must_use]
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Returns whether a process is suspended by a signal; `false` if it has ended.
#[must_use]
pub fn is_suspended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

/// Returns whether a process has ended, even if its parent does not know yet.
#[must_use]
pub fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Returns how often each thread of a process has given up its core, by thread. Covers the threads with names that
/// begin with `name`.
///
/// # Panics
/// If the process has ended.
#[must_use]
pub fn voluntary_switches(pid: u32, name: &str) -> BTreeMap<String, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let read = |file: PathBuf| fs::read_to_string(file).unwrap();
    let threads = tasks.map(|task| (read(task.path().join("comm")), read(task.path().join("status"))));
    threads
        .filter(|(comm, _)| comm.starts_with(name))
        .map(|(comm, status)| {
            let switches =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            (comm.trim().to_owned(), switches.trim().parse().unwrap())
        })
        .collect()
}

/// Returns the number of descendants of a process, zombies included.
///
/// # Panics
/// If `/proc` cannot be read.
#[must_use]
pub fn descendants_of(pid: u32) -> usize {
    let parents: Vec<_> = pids().filter_map(|pid| Some((u64::from(pid), status_of(pid, "PPid:")?))).collect();
    let mut found = vec![u64::from(pid)];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent_of)| *parent_of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.len() - 1
}

/// Returns the process ids of this machine.
fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the processes that `wanted` accepts by their command line; NUL separates its arguments.
pub(crate) fn processes(wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    pids().filter(|pid| wanted(&command_line_of(*pid))).collect()
}

/// Returns the command line of a process; an empty one if it has ended. A process that replaces its program has none for a
/// moment, but the program's file; so has one that clears its arguments, for ever.
fn command_line_of(pid: u32) -> String {
    let is_there = || fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    let until = Instant::now() + LONGEST_EXEC;
    loop {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !line.is_empty() || !is_there() || Instant::now() >= until {
            return String::from_utf8_lossy(&line).into_owned();
        }
        thread::yield_now();
    }
}

/// Kills the proxies with a configuration in the directory `world`, and returns their number.
pub(crate) fn kill_proxies(world: &Path) -> usize {
    let world = world.display().to_string();
    let proxies = processes(|command| {
        let program = command.split('\0').next();
        program.is_some_and(|program| program.ends_with("sluice-proxy")) && command.contains(&world)
    });
    // A process that has already ended needs no signal.
    let kill = |pid: u32| kill_process(Pid::from_raw(pid.cast_signed())?, Signal::KILL).ok();
    proxies.into_iter().filter_map(kill).count()
}

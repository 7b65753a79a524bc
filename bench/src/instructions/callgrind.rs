//! Reads the counts of a program that runs under callgrind.

use std::{
    cell::Cell,
    collections::HashSet,
    fs, io,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::peer::Running;

/// Functions that allocate, of the C library and of allocators that replace it.
const ALLOCATING: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
    "mi_malloc",
    "mi_malloc_aligned",
    "mi_zalloc",
    "mi_realloc",
];

/// Counts of all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) instructions: u64,
    /// Instructions that lock the bus: atomics that modify.
    pub(super) locked: u64,
    pub(super) system_calls: u64,
    pub(super) mallocs: u64,
}

/// Counter of one program.
pub(super) struct Counter {
    pid: u32,
    dir: PathBuf,
    dumps: Cell<u32>,
}

impl Counter {
    /// Creates the counter of a peer that runs under callgrind.
    pub(super) fn of(running: &Running) -> Self {
        let pid = running.processes().first().copied().unwrap_or_default();
        Self { pid, dir: running.site.dir.clone(), dumps: Cell::new(0) }
    }

    /// Returns the counts of all threads since the last read, or since the start.
    pub(super) fn read(&self) -> io::Result<Totals> {
        let dump = self.dumps.get() + 1;
        self.dumps.set(dump);
        let status = Command::new("callgrind_control")
            .arg("--dump")
            .arg(self.pid.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let path = self.dir.join(format!("callgrind.{dump}"));
        let text = fs::read_to_string(&path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("callgrind_control ended with {status}, but {}: {error}", path.display()),
            )
        })?;
        parse(&text).ok_or_else(|| io::Error::other(format!("{}: no totals", path.display())))
    }
}

/// Reads a dump: the totals of its events, and the calls of functions that allocate.
fn parse(dump: &str) -> Option<Totals> {
    let value = |name: &str| dump.lines().find_map(|line| line.strip_prefix(name));
    let events: Vec<&str> = value("events: ")?.split_whitespace().collect();
    let totals: Vec<u64> = value("totals: ")
        .or_else(|| value("summary: "))?
        .split_whitespace()
        .map_while(|text| text.parse().ok())
        .collect();
    // Zeros at the end of the line are left out.
    let total = |event: &str| {
        let at = events.iter().position(|name| *name == event);
        at.and_then(|at| totals.get(at)).copied().unwrap_or(0)
    };
    Some(Totals {
        instructions: total("Ir"),
        locked: total("Ge"),
        system_calls: total("sysCount"),
        mallocs: allocations(dump),
    })
}

/// Returns the number of calls of [`ALLOCATING`]. A function is named where it appears first, `(12) malloc`, and has a
/// number from then on, `(12)`.
fn allocations(dump: &str) -> u64 {
    let mut allocating = HashSet::new();
    let mut called = "";
    let mut sum = 0;
    for line in dump.lines() {
        let function = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn="));
        if let Some((number, name)) = function.map(|text| text.split_once(' ').unwrap_or((text, ""))) {
            if ALLOCATING.contains(&name) {
                allocating.insert(number);
            }
            called = number;
        } else if let Some(calls) = line.strip_prefix("calls=")
            && allocating.contains(called)
        {
            sum += calls.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "events: Ir Ge sysCount sysTime\n\
        fn=(1) serve\n12 400\ncfn=(2) malloc\ncalls=3 0\n13 90\ncfi=(4) x.rs\ncfn=(3) parse\ncalls=7 0\n14 10\n\
        fn=(3)\n1 30\ncfn=(2)\ncalls=5 0\n2 50\n\
        totals: 580 12 7\n";

    #[test]
    fn a_dump_has_totals_and_calls_that_allocate() {
        let expected = Totals { instructions: 580, locked: 12, system_calls: 7, mallocs: 8 };
        assert_eq!(parse(DUMP), Some(expected));
        assert_eq!(parse("events: Ir\n"), None);
    }
}

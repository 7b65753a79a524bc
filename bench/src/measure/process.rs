//! Reads CPU time, context switches and memory of a process and its children from the kernel's accounting.
//!
//! CPU time is read from `/proc/<pid>/task/*/schedstat`, which counts nanoseconds. `/proc/<pid>/stat` counts hundredths
//! of a second, which suffices to divide the time between program and kernel.

use std::{fs, io, path::Path};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Resources that a peer's processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Nanoseconds on a processor, user and system.
    pub cpu_ns: u64,
    /// Nanoseconds in the program.
    pub user_ns: u64,
    /// Nanoseconds in the kernel.
    pub system_ns: u64,
    /// Number of times that a thread has gone to sleep by itself.
    pub switches: u64,
    /// Resident memory, bytes.
    pub rss: u64,
    /// Highest resident memory since [`forget_peak`], bytes.
    pub peak: u64,
}

/// Returns the sums over processes.
///
/// # Errors
/// If one of them has ended.
pub fn used(pids: &[u32]) -> io::Result<Used> {
    let mut sum = Used::default();
    let tick_ns = tick_ns();
    for pid in pids {
        let dir = Path::new("/proc").join(pid.to_string());
        for task in fs::read_dir(dir.join("task"))? {
            // A thread may end between listing and reading. Its use is then missing, and it was short.
            let task = task?.path();
            let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            sum.cpu_ns += schedstat.split(' ').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            sum.switches += number(&status, "voluntary_ctxt_switches:");
        }
        let status = fs::read_to_string(dir.join("status"))?;
        sum.rss += number(&status, "VmRSS:") * 1024;
        sum.peak += number(&status, "VmHWM:") * 1024;
        let stat = fs::read_to_string(dir.join("stat"))?;
        sum.user_ns += stat_field(&stat, 14) * tick_ns;
        sum.system_ns += stat_field(&stat, 15) * tick_ns;
    }
    Ok(sum)
}

/// Resets the kernel's peaks of memory (proc(5), `clear_refs`).
///
/// # Errors
/// If one of them has ended.
pub fn forget_peak(pids: &[u32]) -> io::Result<()> {
    pids.iter().try_for_each(|pid| fs::write(format!("/proc/{pid}/clear_refs"), "5"))
}

/// Lets this process and those that it starts open `files`, or as many as the system allows. Returns that number.
pub fn allow_open_files(files: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map_or(files, |maximum| maximum.max(files));
    // Only a privileged process may raise the maximum.
    let highest = Rlimit { current: Some(maximum), maximum: Some(maximum) };
    let raised = setrlimit(Resource::Nofile, highest)
        .or_else(|_unprivileged| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }));
    raised.map_or(limit, |()| getrlimit(Resource::Nofile)).current.unwrap_or(u64::MAX)
}

/// Returns the memory in bytes that the kernel holds in small pieces for all processes, above all for sockets and
/// files.
#[must_use]
pub fn kernel_slab() -> u64 {
    number(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "Slab:") * 1024
}

/// Returns the time in nanoseconds that the hypervisor has given to other machines while this one had work.
#[must_use]
pub fn stolen_ns() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    ticks.unwrap_or(0) * tick_ns()
}

/// Returns `pid` and the processes it has started that still run, `pid` first.
#[must_use]
pub fn with_children(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|text| text.parse().ok()).flat_map(with_children);
    std::iter::once(pid).chain(below).collect()
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Returns a field of `/proc/<pid>/stat` by its number in proc(5). The second one, the program's name, may have spaces.
fn stat_field(stat: &str, number: usize) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(number - 3).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let own = [std::process::id()];
        let before = used(&own).unwrap();
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = used(&own).unwrap();
        assert!(after.cpu_ns > before.cpu_ns, "{before:?} {after:?} {sum}");
        assert!(after.user_ns + after.system_ns >= before.user_ns + before.system_ns);
        assert!(after.switches > before.switches, "{before:?} {after:?}");
        assert!(after.rss > 0 && after.peak >= after.rss);
    }

    #[test]
    fn a_name_with_spaces_moves_no_field() {
        let stat = "7 (a) b c) S 1 7 7 0 -1 4194304 100 0 0 0 250 125 0 0 20";
        assert_eq!([stat_field(stat, 14), stat_field(stat, 15)], [250, 125]);
    }
}

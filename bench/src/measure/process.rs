//! Reads CPU time and memory of a process and its children from the kernel's accounting.
//!
//! CPU time is read from `/proc/<pid>/task/*/schedstat`, which counts nanoseconds. `/proc/<pid>/stat` would only count
//! hundredths of a second.

use std::{fs, io, path::Path};

/// Resources that a peer's processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Nanoseconds on a processor, user and system.
    pub cpu_ns: u64,
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
    for pid in pids {
        let dir = Path::new("/proc").join(pid.to_string());
        for task in fs::read_dir(dir.join("task"))? {
            // A thread may end between listing and reading. Its use is then missing, and it was short.
            let schedstat = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            sum.cpu_ns += schedstat.split(' ').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        }
        let status = fs::read_to_string(dir.join("status"))?;
        sum.rss += kib(&status, "VmRSS:") * 1024;
        sum.peak += kib(&status, "VmHWM:") * 1024;
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

/// Returns the memory in bytes that the kernel holds in small pieces for all processes, above all for sockets and
/// files.
#[must_use]
pub fn kernel_slab() -> u64 {
    kib(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "Slab:") * 1024
}

/// Returns `pid` and the processes it has started that still run, `pid` first.
#[must_use]
pub fn with_children(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|text| text.parse().ok()).flat_map(with_children);
    std::iter::once(pid).chain(below).collect()
}

fn kib(text: &str, name: &str) -> u64 {
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
        let after = used(&own).unwrap();
        assert!(after.cpu_ns > before.cpu_ns, "{before:?} {after:?} {sum}");
        assert!(after.rss > 0 && after.peak >= after.rss);
    }
}

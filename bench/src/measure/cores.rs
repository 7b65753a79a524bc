//! Assigns processors: the load generator and its upstream to the first ones, the measured peer to the last ones. So the
//! scheduler moves neither, and the figures do not depend on its choices.

use std::{
    io,
    process::{Child, Command},
    sync::OnceLock,
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Division of the processors between load and peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// Processors of the load generator and its upstream.
    pub load: Vec<usize>,
    /// Processors of the peer.
    pub peer: Vec<usize>,
}

impl Division {
    /// Returns the division for a peer with `threads` threads. Both sides share all processors if these do not suffice
    /// for a generator beside the peer.
    #[must_use]
    pub fn of(processors: &[usize], threads: usize) -> Self {
        if threads >= processors.len() {
            return Self { load: processors.to_vec(), peer: processors.to_vec() };
        }
        let (load, peer) = processors.split_at(processors.len() - threads);
        // One thread of load cannot use more than one processor, and more would not keep one peer thread busier.
        let load = if threads == 1 { &load[..1] } else { load };
        Self { load: load.to_vec(), peer: peer.to_vec() }
    }
}

/// Returns the processors that this process may use, as they were at the first call.
#[must_use]
pub fn available() -> &'static [usize] {
    static AVAILABLE: OnceLock<Vec<usize>> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_unknown| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
    })
}

/// Pins this thread and those that it starts later to the processor of a single load generator.
///
/// # Errors
/// If the system does not allow it.
pub fn pin_self() -> io::Result<()> {
    pin(&Division::of(available(), 1).load)
}

/// Pins this thread and those that it starts later.
///
/// # Errors
/// If the system does not allow it.
pub fn pin(processors: &[usize]) -> io::Result<()> {
    let mut wanted = CpuSet::new();
    processors.iter().for_each(|processor| wanted.set(*processor));
    Ok(sched_setaffinity(None, &wanted)?)
}

/// Starts `command` on `processors`. A process inherits the processors of the thread that starts it.
///
/// # Errors
/// If the program does not start.
pub fn spawn_on(command: &mut Command, processors: &[usize]) -> io::Result<Child> {
    let own = sched_getaffinity(None)?;
    pin(processors)?;
    let child = command.spawn();
    sched_setaffinity(None, &own)?;
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_peer_share_nothing_if_they_can() {
        let processors: Vec<usize> = (0..16).collect();
        let divided = |threads| Division::of(&processors, threads);
        assert_eq!(divided(1), Division { load: vec![0], peer: vec![15] });
        assert_eq!(divided(4).load, (0..12).collect::<Vec<_>>());
        assert_eq!(divided(4).peer, (12..16).collect::<Vec<_>>());
        assert_eq!(divided(16), Division { load: processors.clone(), peer: processors.clone() });
    }
}

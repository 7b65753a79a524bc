//! Measures peers with several threads, under the load of many runs at one address.

use super::{Environment, Load, Workload};
use crate::request;

/// Runs, each with a token and its own account.
const RUNS: usize = 32;
/// Connections of each run.
const CONNECTIONS: usize = 8;

/// The same load on one thread, each run on its own socket if the peer has one.
pub(super) const RUNS_ON_ONE: Workload = Workload {
    name: "runs-32x8",
    about: "1 KB in, 600 B out, 32 runs of 32 accounts with 8 connections each",
    load: Load::Runs { runs: RUNS, connections: CONNECTIONS },
    request: || request::chat("fast", 1024),
    ..Workload::CLOSED
};

const fn workload(name: &'static str, about: &'static str, threads: usize) -> Workload {
    Workload {
        name,
        about,
        load: Load::Runs { runs: RUNS, connections: CONNECTIONS },
        request: || request::chat("fast", 1024),
        environment: Environment::Threads(threads),
        ..Workload::CLOSED
    }
}

/// Every number of threads, up to more than a machine has; those above its processors are left out.
pub(super) const ALL: [Workload; 7] = [
    workload("threads-1", "1 thread, TCP, 32 runs with 8 connections each", 1),
    workload("threads-2", "2 threads, TCP, 32 runs with 8 connections each", 2),
    workload("threads-4", "4 threads, TCP, 32 runs with 8 connections each", 4),
    workload("threads-8", "8 threads, TCP, 32 runs with 8 connections each", 8),
    workload("threads-16", "16 threads, TCP, 32 runs with 8 connections each", 16),
    workload("threads-32", "32 threads, TCP, 32 runs with 8 connections each", 32),
    workload("threads-64", "64 threads, TCP, 32 runs with 8 connections each", 64),
];

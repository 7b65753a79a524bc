//! Sends small calls on open connections: 1 KB in, 600 B out. This is the cost of a hop with nothing else to do.

use super::{Environment, Generator, Load, Workload};
use crate::request;

const fn workload(name: &'static str, about: &'static str, connections: usize) -> Workload {
    Workload {
        name,
        about,
        load: Load::Closed { connections },
        request: || request::chat("fast", 1024),
        ..Workload::CLOSED
    }
}

pub(super) const ONE: Workload = workload("small-1", "1 KB in, 600 B out, 1 connection", 1);
pub(super) const MANY: Workload = workload("small-32", "1 KB in, 600 B out, 32 connections", 32);
pub(super) const CROWD: Workload = workload("small-256", "1 KB in, 600 B out, 256 connections", 256);

pub(super) const SPINNING: Workload = Workload {
    name: "spin-32",
    about: "as small-32, beside a generator and upstream that never sleep and are never woken",
    generator: Generator::Spins,
    ..MANY
};

pub(super) const TLS: Workload = Workload {
    name: "tls-32",
    about: "as small-32, to an upstream that speaks TLS",
    environment: Environment::Tls,
    ..MANY
};

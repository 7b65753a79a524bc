//! One integration binary, many stories: linking once is what takes time.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod answers;
mod attacks;
mod bodies;
mod canaries;
mod chaos;
mod cleanup;
mod cli;
mod commands;
mod complaints;
mod control;
mod endings;
mod endurance;
mod fairness;
mod framing;
mod freeze;
mod identity;
mod journal;
mod limits;
mod metrics;
mod openclaw;
mod path;
mod refusals;
mod runs;
mod sandbox;
mod secrets;
mod shared;
mod shutdown;
mod soak;
mod sockets;
mod streaming;
mod tap;
mod tidy;
mod tokens;
mod up;

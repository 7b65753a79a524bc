//! Sluicegate's control plane: runs agents in sandboxes, one run at a time or many.
//!
//! The control plane never holds the upstream's key. The data plane does, and the control socket connects the two.
//! Module `run` executes a run, [`lifecycle`] defines its states, and [`store`] keeps it. `sandbox` limits what a
//! container may do. The commands are in `cli`.

mod agents;
mod api;
mod audit;
mod away;
pub mod cli;
mod context;
mod conversation;
mod data_plane;
mod doctor;
mod envelope;
mod escaped;
pub mod failpoint;
mod follow;
mod gateway;
mod lease_clock;
pub mod lifecycle;
mod live;
mod metrics;
mod observer;
mod pool;
mod reaper;
mod reload;
mod request;
mod retention;
mod run;
mod sandbox;
pub mod store;
mod supervise;
mod traces;
mod verdict;
mod worker;
mod workspace;

//! Sluicegate's control plane: runs agents in sealed containers, one run at a time or many.
//!
//! Never holds the upstream's key: that is the data plane's, which it speaks to over the control socket.
//! The life of a run is `run`, its states are [`lifecycle`], what is kept of it is [`store`]; what a container may do is `sandbox`; the commands are `cli`.

mod agents;
mod api;
mod audit;
mod away;
pub mod cli;
mod conversation;
mod data_plane;
mod doctor;
mod envelope;
mod escaped;
pub mod failpoint;
mod follow;
mod gateway;
pub mod lifecycle;
mod live;
mod metrics;
mod pool;
mod reaper;
mod reload;
mod retention;
mod run;
mod sandbox;
pub mod store;
mod supervise;
mod traces;
mod verdict;
mod worker;
mod workspace;

//! Sluicegate's control plane: runs agents in sealed containers, one run at a time or many.
//!
//! Never holds the upstream's key: that is the data plane's, which it speaks to over the control socket.
//! The life of a run is `run`; what a container may do is `sandbox`; the commands are `cli`.

mod audit;
pub mod cli;
mod data_plane;
mod doctor;
mod envelope;
mod run;
mod sandbox;
mod supervise;
mod verdict;
mod workspace;

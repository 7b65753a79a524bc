//! Implements the program `sluice`: commands, output, exit codes, set-up, doctor, supervision of the proxy, and reload.
//!
//! Does not hold logic that another crate of the control plane could hold: commands turn arguments into calls of those
//! crates.
//!
//! Start reading at `commands`: one file per command.
//!
//! Invariants: stdout in a pipe is the answer and nothing else. Text of agents is sanitised unless `--raw`.

mod agent_images;
mod commands;
mod doctor;
mod host_tools;
mod plural;
mod reload;
mod setup;
mod supervise;

pub use commands::main;

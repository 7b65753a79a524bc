//! Executes runs: provisions resources, supervises agents, settles runs and removes leftovers.
//!
//! Does not print, parse arguments or speak HTTP to applications. The store decides which process may act for a run.
//!
//! Start reading at [`run`]: it executes one run from its row to its end. [`worker`] claims queued runs, [`pool`] keeps
//! warm containers, [`reaper`] removes leftovers of ended processes, [`agents`] lists the agents that can run.
//!
//! Invariants: an agent is started at most once. Nothing acts before it is stored, and nothing acts once the lease may
//! be lost. Only resources that are proven dead are removed.

pub mod agent_data;
pub mod agents;
pub mod context;
pub mod current_settings;
mod envelope;
pub mod follow;
pub mod freezes;
pub mod gateway_agent_choice;
mod lease_clock;
pub mod observer;
#[cfg(test)]
mod openclaw_agent_tests;
mod outcome;
pub mod pool;
pub mod pricing;
pub mod reaper;
pub mod relay;
pub mod retention;
pub mod run;
pub mod run_files;
pub mod run_order;
pub mod run_request;
pub mod thread;
pub mod tool_lists;
pub mod worker;

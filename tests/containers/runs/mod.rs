//! Tests runs from request to clean-up: the registry of agents, the queue, warm containers, events, removal.

mod admission;
mod agent_data;
mod agent_events;
pub(crate) mod agents;
pub(crate) mod api;
mod cleanup;
mod events;
mod files;
mod idempotency;
mod mirrors;
mod pricing;
mod proposals;
mod reaper;
mod relay;
mod starts;
mod thread_workspaces;
mod two_hosts;
mod up;
mod warm;

//! Finds OpenClaw gateways, connects to them, attributes their calls to runs, and runs managed gateways.
//!
//! Does not run turns: the engine does. Does not trust what a gateway says about identity.
//!
//! Start reading at [`GatewayPool`] (connections), [`attribution`] and [`managed`].
//!
//! Invariants: a managed gateway has no network and one way in.

pub mod agents;
pub mod attribution;
mod capabilities;
mod error;
mod explain;
pub mod managed;
mod openclaw;
mod paths;
mod pool;
mod secrets;
mod tool_groups;

pub use self::{
    agents::new_agent,
    capabilities::{Effective, EffectiveCapabilities},
    error::Error,
    explain::{Explanation, Layer, Sandbox, ToolAccess, ToolExplanation, WorkspaceAccess, explain},
    paths::{BRIDGE, GatewayPaths, SOCKET, STATE, workspace_id},
    pool::{GatewayConnection, GatewayPool},
};

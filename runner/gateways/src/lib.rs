//! Finds OpenClaw gateways, connects to them, attributes their calls to runs, and runs managed gateways.
//!
//! Does not run turns: the engine does. Does not trust what a gateway says about identity.
//!
//! Start reading at [`GatewayPool`] (connections), [`attribution`] and [`managed`].
//!
//! Invariants: a managed gateway has no network and one way in.

pub mod attribution;
mod error;
pub mod managed;
mod openclaw;
mod paths;
mod pool;
mod secrets;

pub use self::{
    error::Error,
    paths::{BRIDGE, GatewayPaths, SOCKET, STATE, workspace_id},
    pool::{GatewayConnection, GatewayPool},
};

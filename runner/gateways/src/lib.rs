//! Finds OpenClaw gateways, connects to them, attributes their calls to runs, and keeps managed gateways.
//!
//! Does not run turns: the engine does. Does not trust what a gateway says about identity.
//!
//! Start reading at [`Links`] (connections), [`attribution`] and [`sealed`] (managed gateways).
//!
//! Invariants: a managed gateway has no network and one way in.

pub mod attribution;
mod error;
mod links;
mod openclaw;
mod paths;
pub mod sealed;
mod secrets;
mod tls;

pub use self::{
    error::Error,
    links::{Link, Links},
    paths::{BRIDGE, GatewayPaths, SOCKET, STATE, workspace_id},
};

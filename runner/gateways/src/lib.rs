//! Finds OpenClaw gateways, connects to them, and attributes their calls to runs. A run that is a session of one is
//! executed in `run::session`. What the end of its turn means is in `verdict::turn`.

pub(crate) mod attribution;
mod error;
mod links;
mod openclaw;
mod place;
pub(crate) mod sealed;
mod secrets;
mod trust;

pub(crate) use self::{
    error::Error,
    links::{Link, Links},
    place::{BRIDGE, Place, SOCKET, STATE, workspace_id},
};

//! OpenClaw gateways: where they are, how they are spoken to, and whose their calls are. A run that is a session of one is lived in
//! `run::session`; what the end of its turn means is in `verdict::turn`.

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

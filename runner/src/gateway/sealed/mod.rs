//! Gateways that run here, without a network: made, kept running, stopped, looked at. Not here: speaking to one for a run.
//!
//! Such a gateway is one container. Its calls come to the data plane's socket, which is mounted into it; whoever speaks to it comes
//! in by a socket that its first process makes in a directory of ours. Nothing else leads in or out.

mod check;
mod config;
mod disk;
mod error;
mod facts;
mod files;
mod life;
mod probe;
mod setup;
mod shape;
mod tend;
mod tools;

pub(crate) use self::{
    check::Finding,
    error::Error,
    facts::{State, check, state},
    life::{Done, Event, Kept, Sealed},
    shape::container,
    tend::tend,
};

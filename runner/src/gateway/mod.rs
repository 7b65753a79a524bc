//! OpenClaw gateways: where they are, how they are spoken to, whose their calls are, and what the end of a turn means. A run that
//! is a session of one is lived in `run::session`.

pub(crate) mod attribution;
mod error;
mod links;
mod place;
pub(crate) mod sealed;
mod secrets;
mod trust;
pub(crate) mod verdict;

pub(crate) use self::{
    error::Error,
    links::{Link, Links},
    place::{Place, SOCKET},
};

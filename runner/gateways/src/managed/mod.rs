//! Manages gateways that run here, without a network: creates, supervises, stops and inspects them. Does not connect to
//! a gateway for a run.
//!
//! A managed gateway is one container. Its calls come to the data plane's socket, which is mounted into it. Clients
//! connect through a socket that its first process creates in a directory of this user. Nothing else leads in or out.

mod check;
mod config;
mod disk;
mod error;
mod files;
mod gateway;
mod inspect;
mod lifecycle;
mod monitor;
mod probe;
mod setup;
mod spec;
mod tools;
mod workspace;

pub(crate) use self::tools::{has_tool, never_allowed};
pub use self::{
    check::Finding,
    config::agent_workspace,
    error::Error,
    gateway::{ManagedGateway, container},
    inspect::{ConfigSource, ReadConfig, State, check, read_config, state},
    lifecycle::{KeptData, StartProgress, StartResult},
    monitor::monitor,
    workspace::{make_session_directory, open_directory},
};

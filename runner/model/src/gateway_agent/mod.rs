//! Describes agents in OpenClaw gateways: what people call them, and what they may do. Pure.
//!
//! An agent's [`Capabilities`] are what its account wants. A gateway's own policy may allow less.

mod asked_command;
mod capabilities;
mod name;
mod session_directory;

pub use self::{
    asked_command::AskedCommand,
    capabilities::{AllowedCommand, Capabilities, CommandMode, MAX_ALLOWED_COMMANDS, Switch},
    name::{AgentName, AvatarSeed, InvalidAgentName},
    session_directory::session_directory,
};

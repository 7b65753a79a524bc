//! runner_mcp calls third-party servers of the Model Context Protocol, which the operator has configured.
//!
//! Nothing of a server is trusted. Each message is bounded, each wait has an end, and whatever is not of the protocol ends
//! the session. What a server asks for is refused.
//!
//! 1. [`ToolServers`] has the instances of all servers: it starts them at the first use, and ends them.
//! 2. `session` speaks the protocol over a link: `stdio` to a container, `http` to an address.
//! 3. [`ToolDefinition`] is the description of a tool, with the digest that an operator accepts.
//! 4. [`ServerResult`] is the result of a call, and marks it as that of a third party.
//! 5. `owner` shows the reaper which containers have a process.
//!
//! Does not decide who may call a tool, or which description is accepted.

mod container_guard;
mod containers;
mod definition;
mod error;
mod frame;
mod http;
mod instances;
mod launch;
mod lines;
mod owner;
mod result;
mod schema;
mod session;
mod stdio;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    containers::container_name,
    definition::{InvalidTool, Listing, ToolDefinition},
    error::ServerError,
    instances::ToolServers,
    owner::{OwnerLock, live_owners},
    result::ServerResult,
    session::ServerSession,
};

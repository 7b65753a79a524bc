//! runner_tools executes host tools for agents, which have no network and no credential.
//!
//! The data plane passes calls on over the tool socket, unchanged, and says in headers which run calls. This crate checks
//! that the run is running, validates the arguments, runs the tool within its limits, and stores the call.
//!
//! 1. [`ToolGateway`] puts everything together.
//! 2. `tools` has the built-in tools: each is a file, and a line in a table.
//! 3. `servers` has the tools of third-party servers, as an operator accepted them.
//! 4. `execute` runs a call: one that writes runs once, whatever is killed.
//! 5. `approval` has calls wait for a person, where the settings demand it.
//! 6. `routes` and `mcp` are the two protocols on the socket, and `server` is the socket.
//!
//! Does not decide which tools a run may call: the data plane does, from the run's grant. Does not show a credential to
//! an agent, in a result or in an error.

mod approval;
mod arguments;
mod caller;
mod catalog;
mod catalog_entry;
mod execute;
mod gateway;
mod in_flight;
mod mcp;
mod parts;
mod patterns;
mod record;
mod redaction;
mod routes;
mod server;
mod servers;
mod tool;
mod tools;

pub use self::{
    catalog_entry::CatalogEntry,
    execute::TestCaller,
    gateway::ToolGateway,
    parts::GatewayParts,
    server::StartError,
    servers::{AcceptError, ReviewedServer, ReviewedTool, ServerToolState},
    tool::Effect,
    tools::built_in_names,
};

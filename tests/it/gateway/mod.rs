//! Gateways and the bridge to them, with gateways that do what the tests have written down.

mod connection;
mod endings;
mod isolation;
mod scripted;

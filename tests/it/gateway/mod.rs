//! Tests gateways and the bridge to them, with gateways that follow the tests' scripts.

mod connection;
mod endings;
mod isolation;
mod scripted;

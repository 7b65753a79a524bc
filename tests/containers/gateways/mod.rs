//! Tests gateways, the bridge to them, and runs that are their sessions. The gateways follow scripts of the tests.

mod agents;
mod commands;
mod sessions;
mod socket;

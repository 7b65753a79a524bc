//! Tests gateways, the bridge to them, and runs that are their sessions. The gateways follow scripts of the tests.

mod connection;
mod endings;
mod isolation;
mod openclaw_bodies;
mod scripted;
mod socket;

//! Tests the command line, one command after the other.

mod audit;
mod configuration;
mod doctor;
mod invocation;
mod limits;
mod output;
mod packages;
mod retention;
mod runs;
mod token;
mod usage;

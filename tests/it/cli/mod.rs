//! Tests the command line, one command after the other.

mod audit;
mod configuration;
mod doctor;
mod figures;
mod init;
mod input;
mod invocation;
mod limits;
mod models;
mod output;
pub(crate) mod packages;
mod pipe;
mod retention;
mod runs;
mod token;
mod usage;

//! Tests the command line, one command after the other.

mod agents_add;
mod audit;
mod chat;
mod configuration;
mod doctor;
mod figures;
mod init;
mod input;
mod invocation;
mod limits;
mod mistakes;
mod models;
mod output;
pub(crate) mod packages;
mod pipe;
mod principals;
mod references;
mod retention;
mod runs;
mod token;
mod usage;

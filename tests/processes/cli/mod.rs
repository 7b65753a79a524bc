//! Tests the command line, one command after the other.

mod agents_add;
mod audit;
mod configuration;
mod init;
mod input;
mod limits;
mod mistyped;
mod models;
mod principals;
mod references;
mod rights;
mod token;
mod usage;

//! Tests the command line, one command after the other.

mod advice;
mod advised_settings;
pub(crate) mod artifacts;
mod chat;
mod doctor;
mod figures;
mod images;
mod invocation;
mod limits;
mod mistakes;
mod output;
pub(crate) mod packages;
mod pipe;
mod recipe;
mod retention;
mod runs;
mod usage;

//! The scripted upstream in detail: what each directive does to the bytes, and what the ledger says about it.
//! `upstream.rs` beside this shows the ordinary way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod directives;
mod endings;
mod shapes;

//! Starts what a test needs and stops it again: a [`World`] is a scripted upstream, a real `sluice-proxy` and
//! a configuration on temporary paths; an [`Agent`] is what speaks through a run's socket; [`sluice`] is the
//! real command line.
//!
//! Nothing here decides what is right: that is said in the tests.

#![allow(clippy::unwrap_used, reason = "a harness that cannot start fails the test, with the place")]

pub mod agent;
pub mod control;
pub mod docker;
pub mod eventually;
mod process;
pub mod sluice;
mod world;

pub use self::{
    agent::{Agent, Answer},
    control::Control,
    eventually::eventually,
    process::binary,
    sluice::Outcome,
    world::{CANARY_KEY, Run, World, grant},
};

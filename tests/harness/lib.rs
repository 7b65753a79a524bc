//! Starts what a test needs and stops it again. A [`World`] is a scripted upstream, a real `sluice-proxy` and a
//! configuration on temporary paths. An [`Agent`] speaks through a run's socket, and [`sluice`] is the real command
//! line.
//!
//! Nothing here decides what is right: the tests do.

#![allow(clippy::unwrap_used, reason = "a harness that cannot start fails the test, with the place")]

pub mod agent;
pub mod bridge;
pub mod canary;
pub mod cancels;
pub mod chaos;
pub mod collector;
pub mod control;
pub mod detour;
pub mod docker;
pub mod dockerd;
pub mod dozing;
pub mod endurance;
pub mod events;
pub mod eventually;
mod gate;
pub mod gateway;
pub mod heads;
pub mod idle_soak;
pub mod init;
pub mod lines;
pub mod lingering;
pub mod litellm;
pub mod metering;
pub mod metrics;
pub mod models;
pub mod mounts;
pub mod nginx;
pub mod openclaw;
pub mod output;
mod postgres;
pub mod process;
pub mod puppet;
pub mod random;
pub mod raw;
pub mod runner_chaos;
pub mod sdks;
pub mod sessions;
pub mod shared;
pub mod sluice;
pub mod soak;
pub mod start_times;
pub mod starts;
pub mod stepped;
pub mod store;
pub mod stranger;
pub mod terminal;
pub mod tls_door;
pub mod unwilling;
pub mod up;
pub mod volume;
mod world;

pub use self::{
    agent::{Agent, Answer},
    bridge::Bridge,
    canary::CANARY_KEY,
    control::Control,
    detour::Detour,
    eventually::eventually,
    gate::Gate,
    gateway::{Dialect, Door, ScriptedGateway, Step},
    init::Init,
    lines::Lines,
    lingering::LingeringUpstream,
    litellm::LiteLlm,
    models::Models,
    nginx::OriginalProxy,
    openclaw::OpenClaw,
    postgres::Postgres,
    process::binary,
    puppet::Puppet,
    raw::Raw,
    sdks::{AiMock, Sdk},
    sluice::Outcome,
    unwilling::UnwillingUpstream,
    up::Up,
    world::{Run, World, grant, private_file},
};

//! Starts what a test needs and stops it again. A [`World`] is a scripted upstream, a real `sluice-proxy` and a
//! configuration on temporary paths. An [`Agent`] speaks through a run's socket, and [`sluice`] is the real command
//! line.
//!
//! Nothing here decides what is right: the tests do.

#![allow(clippy::unwrap_used, reason = "a harness that cannot start fails the test, with the place")]

pub mod advice;
pub mod agent;
mod agent_host_tools;
pub mod api_occupation;
pub mod api_soak;
pub mod artifacts;
pub mod bare_debian;
pub mod billing;
pub mod billing_chaos;
pub mod book;
pub mod bridge;
pub mod browser;
pub mod canary;
pub mod cancels;
pub mod chaos;
pub mod chat_clients;
pub mod clients;
pub mod codex;
pub mod coding_agents;
pub mod collector;
pub mod consumed;
pub mod control;
pub mod dashboard;
pub mod docker;
mod docker_cut;
mod docker_gate;
pub mod dockerd;
pub mod endurance;
pub mod events;
pub mod eventually;
mod failure;
pub mod fake_wall_clock;
pub mod fault_proxy;
pub mod file_calls;
pub mod files;
pub mod foreign_uid_client;
pub mod gateway;
mod git_host;
mod git_remote;
pub mod git_server;
pub mod github;
pub mod heads;
pub mod idle_closing_upstream;
pub mod idle_soak;
pub mod init;
pub mod keep_open_upstream;
pub mod key_minting_upstream;
pub mod key_rejecting_upstream;
pub mod lines;
pub mod litellm;
pub mod long_journal;
pub mod mcp_clients;
pub mod memory;
pub mod metering;
pub mod metrics;
pub mod mirrored_remote;
pub mod models;
pub mod mounts;
pub mod nginx;
pub mod numbered_calls;
pub mod oauth;
pub mod openclaw;
pub mod output;
pub mod pace;
mod postgres;
mod preload;
pub mod process;
pub mod random;
pub mod raw;
pub mod raw_scripted_upstream;
pub mod runner_chaos;
pub mod scripted_ledger;
pub mod sdks;
pub mod served;
pub mod server_identity;
pub mod sessions;
pub mod shared;
pub mod shell_agents;
pub mod sluice;
pub mod soak;
pub mod start_times;
pub mod starts;
pub mod store;
pub mod store_lock;
pub mod strangers;
pub mod terminal;
mod tier;
pub mod tls_terminator;
pub mod tool_latency;
pub mod tool_socket;
pub mod up;
pub mod volume;
mod world;
pub mod write_fault;

pub use self::{
    agent::{Agent, Answer},
    bridge::Bridge,
    canary::CANARY_KEY,
    control::Control,
    dashboard::{Cases, Dashboard, Planted},
    docker_cut::CuttingDocker,
    docker_gate::DockerGate,
    eventually::eventually,
    fault_proxy::FaultProxy,
    gateway::{Dialect, Door, ScriptedGateway, Step},
    git_host::GitHost,
    git_remote::GitRemote,
    init::Init,
    keep_open_upstream::KeepOpenUpstream,
    key_rejecting_upstream::KeyRejectingUpstream,
    lines::Lines,
    litellm::LiteLlm,
    mcp_clients::McpClient,
    models::Models,
    nginx::OriginalProxy,
    openclaw::OpenClaw,
    pace::{holds_for, pace},
    process::binary,
    raw::Raw,
    raw_scripted_upstream::RawScriptedUpstream,
    sdks::{AiMock, Sdk},
    served::Served,
    sluice::Outcome,
    tool_socket::{Play, ToolSocket},
    up::Up,
    world::{Run, World, grant, private_file},
};

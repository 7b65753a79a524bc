//! Tests Sluicegate with the real LiteLLM between it and the scripted upstream.
//!
//! LiteLLM takes seconds to start, and each test is its own process. So there are few tests, and each covers many
//! cases with one LiteLLM.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

mod api;
mod billing;
mod browser;
mod calls;
mod cancels;
mod chat_clients;
mod codex;
mod coding_agents;
mod compose;
mod container;
mod dashboard;
mod docs;
mod endings;
mod ephemeral;
mod first_hour;
mod gateway;
mod gateway_agents;
mod gateway_socket;
mod host_tools;
mod killed;
mod ledger;
mod managed_gateway;
mod metering;
mod openai_clients;
mod openclaw;
mod openclaw_frames;
mod openclaw_plugin;
mod pairing;
mod receipts;
mod reconciliation;
mod refusals;
mod relay;
mod replays;
mod restart;
mod run_keys;
mod sdk;
mod shown_prices;
mod streams;
mod tools;

use bench::upstream::ScriptedUpstream;
use harness::{CANARY_KEY, LiteLlm, World};
use platform_core::{grant::Correlation, id::ExternalId};

/// Starts a world with LiteLLM as its upstream, and the scripted upstream behind that.
async fn world_with_litellm() -> (World, LiteLlm) {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
    let world = World::in_front_of(upstream, &litellm.base_url, "").await;
    (world, litellm)
}

/// Returns a correlation with each of its ids.
fn correlation() -> Correlation {
    let id = |text: &str| Some(ExternalId::parse(text).unwrap());
    Correlation {
        user: id("user-1"),
        session: id("session-1"),
        existing_trace: id("trace-1"),
        trace_user: id("trace-user-1"),
    }
}

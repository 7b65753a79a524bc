//! Lists the tools that agents of a gateway have. Pure.
//!
//! OpenClaw ignores an allow-list of which it knows no name. Tools that must not exist are therefore denied by name as
//! well. A denied tool is gone whatever is allowed.

use platform_runtime::settings::{Attribution, Gateway};

use crate::tool_groups;

/// Tools of agents in a gateway of one account: the container isolates them.
const CODING: [&str; 9] =
    ["exec", "process", "read", "write", "edit", "apply_patch", "get_goal", "create_goal", "update_goal"];

/// Tools that start sub-agents, and wait for them.
const SUB_AGENTS: [&str; 2] = ["sessions_spawn", "sessions_yield"];

/// Names that include `sessions_spawn` in a list of tools.
const SPAWN_NAMES: [&str; 4] = ["sessions_spawn", "group:sessions", "group:openclaw", "*"];

/// Tools of agents where accounts share a gateway. None of them executes, reads or writes files, or reaches another
/// session, a node or the gateway itself.
const HARMLESS: [&str; 3] = ["get_goal", "create_goal", "update_goal"];

/// Tools that no agent has: they reach other sessions, people, nodes or the gateway's own settings, or need a network.
const ALWAYS_DENIED: [&str; 12] = [
    "group:web",
    "group:ui",
    "group:automation",
    "group:messaging",
    "group:nodes",
    "group:media",
    "group:plugins",
    "sessions",
    "sessions_send",
    "conversations_send",
    "conversations_turn",
    "skill_workshop",
];

/// Tools that no agent has where accounts share a gateway.
const DENIED_IF_SHARED: [&str; 6] =
    ["group:runtime", "group:fs", "group:sessions", "group:memory", "agents_list", "image"];

/// Returns the tools that agents of `gateway` may use.
pub(super) fn allowed(gateway: &Gateway) -> Vec<String> {
    let default_tools = || match &gateway.account {
        Some(_) if attributes_sub_agents(gateway) => [&CODING[..], &SUB_AGENTS].concat(),
        Some(_) => CODING.to_vec(),
        None => HARMLESS.to_vec(),
    };
    let configured = gateway.managed.tools.clone();
    configured.unwrap_or_else(|| default_tools().into_iter().map(str::to_owned).collect())
}

/// Returns whether agents of `gateway` have `tool`, by its own name or that of its group.
pub(crate) fn has_tool(gateway: &Gateway, tool: &str) -> bool {
    let allowed = allowed(gateway);
    let names = tool_groups::names_of(tool);
    allowed.iter().any(|allowed| names.contains(&allowed.as_str()))
}

/// Returns whether calls of sub-agents can be attributed to the run that started them. A trace covers sub-agents, too.
/// The token of a session does not, and a slot may belong to another run by the time of their calls.
pub(super) fn attributes_sub_agents(gateway: &Gateway) -> bool {
    gateway.attribution == Attribution::Trace
}

/// Returns whether agents with `tools`, but without those `denied`, may start sub-agents.
pub(super) fn allow_sub_agents(tools: &[String], denied: &[String]) -> bool {
    let names = |tools: &[String]| SPAWN_NAMES.iter().any(|name| tools.iter().any(|tool| tool == name));
    names(tools) && !names(denied)
}

/// Returns the tools that agents of `gateway` may not use, even if [`allowed`] names them. Nothing that the
/// configuration asks for by name is denied here: the check refuses it, by [`dangerous`] and [`allow_sub_agents`].
pub(super) fn denied(gateway: &Gateway) -> Vec<&'static str> {
    let shared = gateway.account.is_none().then_some(DENIED_IF_SHARED);
    let sub_agents = (!attributes_sub_agents(gateway)).then_some(SUB_AGENTS);
    let denied =
        ALWAYS_DENIED.into_iter().chain(shared.into_iter().flatten()).chain(sub_agents.into_iter().flatten());
    let configured = gateway.managed.tools.iter().flatten();
    let configured: Vec<_> = configured.map(String::as_str).collect();
    denied.filter(|tool| !configured.contains(tool)).collect()
}

/// Returns the names of tools that no setting gives agents of a managed gateway like `gateway`.
pub(crate) fn never_allowed(gateway: &Gateway) -> impl Iterator<Item = &'static str> {
    let shared = gateway.account.is_none().then_some(DENIED_IF_SHARED);
    ALWAYS_DENIED.into_iter().chain(shared.into_iter().flatten())
}

/// Returns those of `tools` that agents of a shared gateway must not have: all that are not known to be harmless.
pub(super) fn dangerous(tools: &[String]) -> Vec<&str> {
    tools.iter().map(String::as_str).filter(|tool| !HARMLESS.contains(tool)).collect()
}

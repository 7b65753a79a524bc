//! Which tools agents of a gateway have. Pure.
//!
//! OpenClaw ignores an allow-list of which it knows no name, so what must not be there is denied by name as well; what is denied is
//! gone whatever is allowed.

use platform_runtime::settings::{Attribution, Gateway};

/// What agents have in a gateway of one account: the container is what closes them in.
const CODING: [&str; 9] =
    ["exec", "process", "read", "write", "edit", "apply_patch", "get_goal", "create_goal", "update_goal"];

/// What sets sub-agents to work, and waits for them.
const SUB_AGENTS: [&str; 2] = ["sessions_spawn", "sessions_yield"];

/// Names by which a list of tools may mean the first of these, too.
const SPAWNS: [&str; 4] = ["sessions_spawn", "group:sessions", "group:openclaw", "*"];

/// What agents have where accounts share a gateway. Nothing of it executes, reads or writes files, or reaches another session, a
/// node or the gateway itself.
const HARMLESS: [&str; 3] = ["get_goal", "create_goal", "update_goal"];

/// What no agent has: what reaches other sessions, people, nodes, the gateway's own settings, or what there is no network for.
const NEVER: [&str; 12] = [
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

/// And where accounts share a gateway.
const NEVER_SHARED: [&str; 6] =
    ["group:runtime", "group:fs", "group:sessions", "group:memory", "agents_list", "image"];

/// Tools that agents of `gateway` may use.
pub(super) fn allowed(gateway: &Gateway) -> Vec<String> {
    let usual = || match &gateway.account {
        Some(_) if bills_sub_agents(gateway) => [&CODING[..], &SUB_AGENTS].concat(),
        Some(_) => CODING.to_vec(),
        None => HARMLESS.to_vec(),
    };
    let asked = gateway.sealed.tools.clone();
    asked.unwrap_or_else(|| usual().into_iter().map(str::to_owned).collect())
}

/// Whether what sub-agents call is known to be of the run that set them to work. A trace is theirs, too. The token of a session is
/// not, and a slot may be another run's by the time that they call there.
pub(super) fn bills_sub_agents(gateway: &Gateway) -> bool {
    gateway.attribution == Attribution::Trace
}

/// Whether `tools`, of which `denied` are none, have what sets sub-agents to work.
pub(super) fn spawn(tools: &[String], denied: &[String]) -> bool {
    let names = |tools: &[String]| SPAWNS.iter().any(|name| tools.iter().any(|tool| tool == name));
    names(tools) && !names(denied)
}

/// Tools that they may not use, also if [`allowed`] names them. Nothing that the configuration asks for by name is denied here:
/// the check refuses it, by [`dangerous`] and [`spawn`].
pub(super) fn denied(gateway: &Gateway) -> Vec<&'static str> {
    let shared = gateway.account.is_none().then_some(NEVER_SHARED);
    let sub_agents = (!bills_sub_agents(gateway)).then_some(SUB_AGENTS);
    let denied =
        NEVER.into_iter().chain(shared.into_iter().flatten()).chain(sub_agents.into_iter().flatten());
    let asked = gateway.sealed.tools.iter().flatten();
    let asked: Vec<_> = asked.map(String::as_str).collect();
    denied.filter(|tool| !asked.contains(tool)).collect()
}

/// Those of `tools` that agents of a shared gateway must not have: whatever is not known to be harmless.
pub(super) fn dangerous(tools: &[String]) -> Vec<&str> {
    tools.iter().map(String::as_str).filter(|tool| !HARMLESS.contains(tool)).collect()
}

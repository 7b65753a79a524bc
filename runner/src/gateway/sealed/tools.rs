//! Which tools agents of a gateway have. Pure.
//!
//! OpenClaw ignores an allow-list of which it knows no name, so what must not be there is denied by name as well; what is denied is
//! gone whatever is allowed.

use platform_runtime::settings::Gateway;

/// What agents have in a gateway of one account: the container is what closes them in.
const CODING: [&str; 11] = [
    "exec",
    "process",
    "read",
    "write",
    "edit",
    "apply_patch",
    "sessions_spawn",
    "sessions_yield",
    "get_goal",
    "create_goal",
    "update_goal",
];

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
    let usual: &[&str] = if gateway.account.is_some() { &CODING } else { &HARMLESS };
    let usual = || usual.iter().map(|tool| (*tool).to_owned()).collect();
    gateway.sealed.tools.clone().unwrap_or_else(usual)
}

/// Tools that they may not use, also if [`allowed`] names them. Nothing that the configuration asks for by name is denied here:
/// [`dangerous`] refuses it.
pub(super) fn denied(gateway: &Gateway) -> Vec<&'static str> {
    let shared = gateway.account.is_none().then_some(NEVER_SHARED);
    let denied = NEVER.into_iter().chain(shared.into_iter().flatten());
    let asked = gateway.sealed.tools.iter().flatten();
    let asked: Vec<_> = asked.map(String::as_str).collect();
    denied.filter(|tool| !asked.contains(tool)).collect()
}

/// Those of `tools` that agents of a shared gateway must not have: whatever is not known to be harmless.
pub(super) fn dangerous(tools: &[String]) -> Vec<&str> {
    tools.iter().map(String::as_str).filter(|tool| !HARMLESS.contains(tool)).collect()
}

//! Checks the layer that decides about each tool.

use platform_runtime::{config::Sources, settings::Settings};
use serde_json::json;

use super::*;
use crate::managed::ConfigSource;

fn gateway(toml: &str) -> Gateway {
    let text = format!("[proxy]\nlisten = '127.0.0.1:1'\n[gateways.g]\n{toml}\n");
    let settings =
        Settings::read(&Sources { file: Some(("s.toml".into(), text)), ..Sources::default() }).unwrap();
    settings.gateways.into_values().next().unwrap()
}

const ELSEWHERE: &str = "url = 'ws://127.0.0.1:2'\ntoken_file = '/t'\naccount = 'a'";

/// Returns the verdict about `tool`, its layer and its setting, for the agent `bot`.
fn verdict(toml: &str, config: &Value, tool: &str) -> (&'static str, &'static str, String) {
    let bot = GatewayAgentId::parse("bot").unwrap();
    let approvals = config.get("approvals").cloned();
    let read = ReadConfig { config: config.clone(), approvals, source: ConfigSource::Gateway };
    let explained = explain("g", &gateway(toml), &read, &bot).unwrap();
    let found = explained.tools.into_iter().find(|explained| explained.tool == tool).unwrap();
    (found.verdict.word(), found.layer.name(), found.setting.unwrap_or_default())
}

/// Returns a configuration with this entry of the agent `bot`, and these tools of all agents.
fn config(entry: Value, tools: Value) -> Value {
    json!({ "agents": { "entries": { "bot": entry } }, "tools": tools })
}

fn check(rows: impl IntoIterator<Item = (&'static str, Value, &'static str, [&'static str; 3])>) {
    for (toml, config, tool, expected) in rows {
        let found = verdict(toml, &config, tool);
        assert_eq!([found.0, found.1, found.2.as_str()], expected, "{tool} of {config}");
    }
}

#[test]
fn the_first_layer_that_denies_is_named() {
    let own = |tools: Value| config(json!({ "tools": tools }), json!({}));
    let all = |tools: Value| config(json!({}), tools);
    let agent = "agents.entries.bot.tools.deny";
    check([
        ("", all(json!({})), "exec", ["denied", "host policy", "gateways.g.account"]),
        ("account = 'a'", all(json!({})), "web_fetch", ["denied", "host policy", ""]),
        (
            "account = 'a'",
            all(json!({ "allow": ["read"] })),
            "exec",
            ["denied", "gateway tools", "gateways.g.tools"],
        ),
        (
            "account = 'a'",
            own(json!({ "deny": ["group:fs"] })),
            "read",
            ["denied", "gateway tools", "sluice gateway agents set g bot"],
        ),
        (ELSEWHERE, all(json!({})), "web_fetch", ["allowed", "gateway tools", agent]),
        (ELSEWHERE, own(json!({ "deny": ["group:runtime"] })), "process", ["denied", "gateway tools", agent]),
        (ELSEWHERE, all(json!({ "deny": ["bash"] })), "exec", ["denied", "gateway tools", "tools.deny"]),
        (
            ELSEWHERE,
            all(json!({ "allow": ["group:fs"] })),
            "exec",
            ["denied", "gateway tools", "tools.allow"],
        ),
        (
            ELSEWHERE,
            all(json!({ "allow": ["group:fs"], "alsoAllow": ["exec"] })),
            "exec",
            ["allowed", "gateway tools", agent],
        ),
        (
            ELSEWHERE,
            json!({ "agents": { "list": [{ "id": "bot", "tools": { "deny": ["write"] } }] } }),
            "write",
            ["denied", "gateway tools", "agents.list[bot].tools.deny"],
        ),
    ]);
}

#[test]
fn profiles_and_patterns_decide() {
    let all = |tools: Value| config(json!({}), tools);
    let agent = "agents.entries.bot.tools.deny";
    check([
        (
            ELSEWHERE,
            all(json!({ "profile": "messaging" })),
            "exec",
            ["denied", "gateway tools", "tools.profile"],
        ),
        (
            ELSEWHERE,
            config(json!({ "tools": { "profile": "minimal" } }), json!({ "profile": "full" })),
            "read",
            ["denied", "gateway tools", "agents.entries.bot.tools.profile"],
        ),
        (
            ELSEWHERE,
            all(json!({ "profile": "minimal", "alsoAllow": ["group:fs"] })),
            "read",
            ["allowed", "gateway tools", agent],
        ),
        (ELSEWHERE, all(json!({ "profile": "coding" })), "exec", ["allowed", "gateway tools", agent]),
        (
            ELSEWHERE,
            all(json!({ "deny": ["web_*"] })),
            "web_fetch",
            ["denied", "gateway tools", "tools.deny"],
        ),
    ]);
}

#[test]
fn containers_and_approvals_are_layers() {
    let sandboxed = |entry: Value| config(entry, json!({}));
    check([
        (
            ELSEWHERE,
            sandboxed(
                json!({ "sandbox": { "mode": "all" }, "tools": { "sandbox": { "tools": { "allow": [] } } } }),
            ),
            "exec",
            ["denied", "sandbox tools", "agents.entries.bot.tools.sandbox.tools.allow"],
        ),
        (
            ELSEWHERE,
            sandboxed(json!({ "sandbox": { "mode": "all", "workspaceAccess": "ro" } })),
            "write",
            ["denied", "sandbox tools", "agents.entries.bot.sandbox.workspaceAccess"],
        ),
        (
            ELSEWHERE,
            config(json!({ "tools": { "exec": { "ask": "always", "security": "full" } } }), json!({})),
            "exec",
            ["asks", "approvals", "agents.entries.bot.tools.exec.ask"],
        ),
        (
            ELSEWHERE,
            sandboxed(json!({ "sandbox": { "mode": "all" } })),
            "browser",
            ["denied", "sandbox tools", "agents.entries.bot.tools.sandbox.tools.allow"],
        ),
        (
            ELSEWHERE,
            json!({
                "agents": { "entries": { "bot": {} } },
                "approvals": { "agents": { "bot": { "security": "full", "ask": "always" } } },
            }),
            "exec",
            ["asks", "approvals", "exec.approvals of agent bot, at the gateway"],
        ),
        (
            ELSEWHERE,
            config(json!({}), json!({ "exec": { "security": "deny" } })),
            "exec",
            ["denied", "approvals", "agents.entries.bot.tools.exec.security"],
        ),
    ]);
}

#[test]
fn directories_and_containers_are_said() {
    let config = json!({ "agents": {
        "defaults": { "sandbox": { "mode": "non-main", "workspaceAccess": "rw" } },
        "entries": { "bot": { "workspace": "/w/bot" }, "main": {} },
    } });
    let bot = GatewayAgentId::parse("bot").unwrap();
    let read = ReadConfig { config, approvals: None, source: ConfigSource::Gateway };
    let explained = explain("g", &gateway(ELSEWHERE), &read, &bot).unwrap();
    assert_eq!(explained.sandbox, Sandbox::NonMain(WorkspaceAccess::Whole));
    assert_eq!(explained.workspace, "/w/bot");
    let unknown = GatewayAgentId::parse("none").unwrap();
    assert_eq!(explain("g", &gateway(ELSEWHERE), &read, &unknown), None);
}

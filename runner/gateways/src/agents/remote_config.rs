//! Finds what to change in the configuration of a gateway elsewhere, and in its approvals. Pure.

use platform_core::id::GatewayAgentId;
use runner_model::gateway_agent::{Capabilities, CommandMode, Switch};
use runner_store::NewGatewayAgent;
use serde_json::{Value, json};

/// Groups of tools that capabilities take away.
const GROUPS: [&str; 3] = ["group:runtime", "group:web", "group:fs"];
/// Tool that starts sub-agents.
const SPAWN: &str = "sessions_spawn";
/// Text in place of what a gateway does not show.
const REDACTED: &str = "__OPENCLAW_REDACTED__";

/// Change of a gateway's configuration: what to merge, and the lists that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigChange {
    pub(super) merge: Value,
    pub(super) replaced: Vec<String>,
}

/// Returns the directory of an agent, if the entry names one; `None` if the configuration has no such agent.
pub(super) fn workspace_of<'c>(config: &'c Value, agent: &GatewayAgentId) -> Option<Option<&'c str>> {
    let named = config.pointer("/agents/entries").and_then(|entries| entries.get(agent.as_str()));
    let listed = || position(config, agent).map(|at| &config["agents"]["list"][at]);
    let entry = named.or_else(listed)?;
    Some(entry.get("workspace").and_then(Value::as_str))
}

/// Returns whether commands of an agent run in OpenClaw's own containers.
pub(super) fn is_sandboxed(config: &Value, agent: &GatewayAgentId) -> bool {
    let named = config.pointer("/agents/entries").and_then(|entries| entries.get(agent.as_str()));
    let listed = || position(config, agent).map(|at| &config["agents"]["list"][at]);
    let own = named.or_else(listed).and_then(|entry| entry.pointer("/sandbox/mode"));
    let mode = own.or_else(|| config.pointer("/agents/defaults/sandbox/mode"));
    mode.is_some_and(|mode| mode != "off")
}

/// Returns the directory for the files of a new agent: beside the gateway's configuration at `path`, where it keeps its
/// state. `None` unless that is an absolute path.
pub(super) fn workspace(path: &str, agent: &GatewayAgentId) -> Option<String> {
    let is_plain = !path.chars().any(char::is_control) && !path.split('/').any(|part| part == "..");
    let (state, _file) = path.strip_prefix('/').filter(|_| is_plain)?.rsplit_once('/')?;
    Some(format!("/{state}/workspace-{agent}"))
}

/// Returns the change after which `agent` has the tools of its capabilities; `None` if it has them, or the configuration
/// shows no agent of this id.
pub(super) fn tool_change(config: &Value, agent: &NewGatewayAgent) -> Option<ConfigChange> {
    let id = &agent.key.agent;
    let wanted = |entry: &Value| denied(entry, &agent.settings.capabilities);
    let is_different = |entry: &Value| entry.pointer("/tools/deny").unwrap_or(&json!([])) != &wanted(entry);
    if let Some(entry) = config.pointer("/agents/entries").and_then(|entries| entries.get(id.as_str())) {
        return is_different(entry).then(|| ConfigChange {
            merge: json!({ "agents": { "entries": { id.as_str(): { "tools": { "deny": wanted(entry) } } } } }),
            replaced: vec![format!("agents.entries.{id}.tools.deny")],
        });
    }
    let list = config.pointer("/agents/list")?.as_array()?;
    let at = position(config, id)?;
    is_different(&list[at]).then(|| {
        let mut list = list.clone();
        let deny = wanted(&list[at]);
        list[at]["tools"]["deny"] = deny;
        replaced_list(list)
    })
}

/// Returns the change that gives agents in OpenClaw's own containers all their tools, where their list is empty by
/// mistake: an empty list leaves the tool `image` alone. Returns the agents, too.
pub(super) fn sandbox_repair(config: &Value) -> Option<(Vec<String>, ConfigChange)> {
    let default = config.pointer("/agents/defaults/sandbox/mode");
    let is_broken = |entry: &Value| {
        let is_sandboxed = entry.pointer("/sandbox/mode").or(default) == Some(&json!("all"));
        is_sandboxed && entry.pointer("/tools/sandbox/tools/allow") == Some(&json!([]))
    };
    let all = json!({ "tools": { "sandbox": { "tools": { "allow": ["*"] } } } });
    if let Some(entries) = config.pointer("/agents/entries").and_then(Value::as_object) {
        let broken: Vec<_> = entries.iter().filter(|(_, entry)| is_broken(entry)).collect();
        let merged =
            broken.iter().map(|(id, _)| ((*id).clone(), all.clone())).collect::<serde_json::Map<_, _>>();
        let names: Vec<_> = broken.into_iter().map(|(id, _)| id.clone()).collect();
        let merge = json!({ "agents": { "entries": merged } });
        return (!names.is_empty()).then_some((names, ConfigChange { merge, replaced: Vec::new() }));
    }
    let mut list = config.pointer("/agents/list")?.as_array()?.clone();
    let mut names = Vec::new();
    for entry in list.iter_mut().filter(|entry| is_broken(entry)) {
        names.push(entry["id"].as_str().unwrap_or_default().to_owned());
        entry["tools"]["sandbox"]["tools"]["allow"] = json!(["*"]);
    }
    (!names.is_empty()).then(|| (names, replaced_list(list)))
}

/// Returns whether a change would write a text that stands for something hidden.
pub(super) fn writes_redacted(change: &ConfigChange) -> bool {
    change.merge.to_string().contains(REDACTED)
}

/// Returns `file`, the gateway's approvals, with those of an agent that has `capabilities`; `None` if it has them.
pub(super) fn approvals_with(
    file: &Value,
    id: &GatewayAgentId,
    capabilities: &Capabilities,
) -> Option<Value> {
    let (security, ask) = match capabilities.commands {
        CommandMode::Off => ("deny", "off"),
        CommandMode::Ask => ("full", "always"),
        CommandMode::Auto => ("full", "off"),
    };
    let mut changed = file.clone();
    let agent = &mut changed["agents"][id.as_str()];
    agent["security"] = security.into();
    agent["ask"] = ask.into();
    agent["askFallback"] = "deny".into();
    (changed != *file).then_some(changed)
}

/// Returns `file` without the approvals of an agent; `None` if it has none.
pub(super) fn approvals_without(file: &Value, id: &GatewayAgentId) -> Option<Value> {
    let mut changed = file.clone();
    changed.get_mut("agents")?.as_object_mut()?.remove(id.as_str())?;
    Some(changed)
}

/// Returns the denied tools of an agent: those that are no group of capabilities stay.
fn denied(entry: &Value, capabilities: &Capabilities) -> Value {
    let off = [
        capabilities.commands == CommandMode::Off,
        capabilities.web == Switch::Off,
        capabilities.files == Switch::Off,
    ];
    let own = entry.pointer("/tools/deny").and_then(Value::as_array).into_iter().flatten();
    let kept: Vec<_> = own.filter(|name| !GROUPS.iter().any(|group| *name == group)).cloned().collect();
    // A sub-agent's requests name a session of no run, so no person could be asked.
    let asks = capabilities.commands == CommandMode::Ask && !kept.contains(&SPAWN.into());
    let spawn = asks.then(|| Value::from(SPAWN));
    let groups = GROUPS.into_iter().zip(off).filter(|(_, is_off)| *is_off).map(|(group, _)| group.into());
    kept.into_iter().chain(spawn).chain(groups).collect()
}

fn position(config: &Value, agent: &GatewayAgentId) -> Option<usize> {
    let list = config.pointer("/agents/list")?.as_array()?;
    list.iter().position(|entry| entry["id"] == agent.as_str())
}

fn replaced_list(list: Vec<Value>) -> ConfigChange {
    ConfigChange { merge: json!({ "agents": { "list": list } }), replaced: vec!["agents.list".to_owned()] }
}

#[cfg(test)]
mod tests {
    use platform_core::id::GatewayId;
    use runner_model::gateway_agent::AgentName;
    use runner_store::{GatewayAgentKey, GatewayAgentSettings};

    use super::*;

    fn agent(capabilities: Capabilities) -> NewGatewayAgent {
        let name = AgentName::parse("Bot").unwrap();
        NewGatewayAgent {
            key: GatewayAgentKey { gateway: GatewayId::parse("g").unwrap(), agent: name.id() },
            account: None,
            workspace: "/w".to_owned(),
            settings: GatewayAgentSettings { name, avatar: None, model: None, capabilities },
        }
    }

    fn off() -> Capabilities {
        Capabilities { commands: CommandMode::Off, web: Switch::Off, ..Capabilities::default() }
    }

    #[test]
    fn a_change_keeps_what_others_denied() {
        let newer =
            json!({ "agents": { "entries": { "bot": { "tools": { "deny": ["cron", "group:fs"] } } } } });
        let change = tool_change(&newer, &agent(off())).unwrap();
        let deny = json!(["cron", "group:runtime", "group:web"]);
        assert_eq!(
            change.merge,
            json!({ "agents": { "entries": { "bot": { "tools": { "deny": deny } } } } })
        );
        assert_eq!(change.replaced, ["agents.entries.bot.tools.deny"]);
        let older = json!({ "agents": { "list": [{ "id": "main" }, { "id": "bot" }] } });
        let change = tool_change(&older, &agent(off())).unwrap();
        let list =
            json!([{ "id": "main" }, { "id": "bot", "tools": { "deny": ["group:runtime", "group:web"] } }]);
        assert_eq!(change.merge, json!({ "agents": { "list": list } }));
        // A second one finds nothing to do.
        assert_eq!(tool_change(&change.merge, &agent(off())), None);
        assert_eq!(tool_change(&json!({}), &agent(off())), None);
        let hidden = json!({ "agents": { "list": [{ "id": "bot", "key": REDACTED }] } });
        assert!(writes_redacted(&tool_change(&hidden, &agent(off())).unwrap()));
    }

    #[test]
    fn a_sandboxed_agent_is_known() {
        let bot = agent(off()).key.agent;
        for (config, is_on) in [
            (json!({}), false),
            (
                json!({ "agents": { "defaults": { "sandbox": { "mode": "all" } }, "entries": { "bot": {} } } }),
                true,
            ),
            (json!({ "agents": { "entries": { "bot": { "sandbox": { "mode": "non-main" } } } } }), true),
            (json!({ "agents": { "list": [{ "id": "bot", "sandbox": { "mode": "off" } }] } }), false),
        ] {
            assert_eq!(is_sandboxed(&config, &bot), is_on, "{config}");
        }
    }

    #[test]
    fn a_workspace_is_beside_the_configuration() {
        let bot = agent(off()).key.agent;
        let found = workspace("/home/o/.openclaw/openclaw.json", &bot);
        assert_eq!(found.as_deref(), Some("/home/o/.openclaw/workspace-bot"));
        for path in
            ["openclaw.json", "/openclaw.json", "/a/../etc/x.json", "C:\\x\\y.json", "/a\n/x.json", ""]
        {
            assert_eq!(workspace(path, &bot), None, "{path}");
        }
    }

    #[test]
    fn an_empty_list_of_a_container_is_repaired() {
        let broken = json!({ "tools": { "sandbox": { "tools": { "allow": [] } } } });
        let newer = json!({ "agents": {
            "defaults": { "sandbox": { "mode": "all" } },
            "entries": { "a": broken, "b": {}, "c": { "sandbox": { "mode": "off" }, "tools": broken["tools"] } },
        } });
        let (names, change) = sandbox_repair(&newer).unwrap();
        assert_eq!(names, ["a"]);
        let allow = change.merge.pointer("/agents/entries/a/tools/sandbox/tools/allow");
        assert_eq!(allow, Some(&json!(["*"])));
        let older = json!({ "agents": { "list": [
            { "id": "a", "sandbox": { "mode": "all" }, "tools": broken["tools"] },
        ] } });
        let (names, change) = sandbox_repair(&older).unwrap();
        assert_eq!(names, ["a"]);
        assert_eq!(sandbox_repair(&change.merge), None, "once");
    }

    #[test]
    fn approvals_of_other_agents_stay() {
        let file = json!({ "version": 1, "agents": { "main": { "security": "deny" } } });
        let bot = agent(Capabilities { commands: CommandMode::Ask, ..Capabilities::default() });
        let changed = approvals_with(&file, &bot.key.agent, &bot.settings.capabilities).unwrap();
        let own = json!({ "security": "full", "ask": "always", "askFallback": "deny" });
        assert_eq!(changed["agents"], json!({ "main": { "security": "deny" }, "bot": own }));
        assert_eq!(approvals_with(&changed, &bot.key.agent, &bot.settings.capabilities), None);
        assert_eq!(approvals_without(&changed, &bot.key.agent), Some(file.clone()));
        assert_eq!(approvals_without(&file, &bot.key.agent), None);
    }
}

//! Tests agents of OpenClaw that an entry of `[agents]` describes.

use platform_core::id::AgentId;

use super::parse;
use crate::settings::Agent;

fn openclaw(text: &str) -> Agent {
    parse(text).unwrap().agents[&AgentId::parse("sandbox:openclaw").unwrap()].clone()
}

#[test]
fn an_entry_describes_agents_of_openclaw() {
    let none = openclaw("[agents.'sandbox:openclaw']\nmemory = '3 GiB'\n");
    assert_eq!((none.openclaw_agent_ids().len(), none.openclaw_variable()), (0, None));
    let mut agent = openclaw(
        "[agents.'sandbox:openclaw'.openclaw_agents.reviewer]\ntools = ['read', 'apply_patch']\n\
         [agents.'sandbox:openclaw'.openclaw_agents.author_2]\n[agents.'sandbox:openclaw'.openclaw_agents.mute]\ntools = []\n",
    );
    assert_eq!(agent.openclaw_agent_ids(), ["main", "author_2", "mute", "reviewer"]);
    let all = "exec,process,read,write,edit,apply_patch";
    for (id, tools) in [("main", all), ("author_2", all), ("mute", ""), ("reviewer", "read,apply_patch")] {
        agent.gateway_agent = id.to_owned();
        assert_eq!(agent.openclaw_variable(), Some(("SANDBOX_OPENCLAW_AGENT", format!("{id}:{tools}"))));
        let stored = serde_json::to_string(&agent).unwrap();
        assert_eq!(serde_json::from_str::<Agent>(&stored).unwrap().openclaw_agents, agent.openclaw_agents);
    }
}

#[test]
fn mistakes_in_agents_of_openclaw_are_reported() {
    let entry = "[agents.'sandbox:openclaw'";
    for (text, expected) in [
        (
            format!("{entry}.openclaw_agents.a]\ntools = ['read', 'web_search']\n"),
            "s.toml:2: agents.sandbox:openclaw.openclaw_agents.a.tools: expected `exec` or `process` or `read` or `write` \
             or `edit` or `apply_patch`, found `web_search`",
        ),
        (
            format!("{entry}.openclaw_agents.Reviewer]\n"),
            "s.toml:1: agents.sandbox:openclaw.openclaw_agents.Reviewer: `Reviewer` is not the id of a gateway's agent: \
             expected 1 to 64 of a-z",
        ),
        (
            format!("{entry}.openclaw_agents.a]\nallow = ['read']\n"),
            "agents.sandbox:openclaw.openclaw_agents.a.allow: unknown key; known here: tools",
        ),
        (
            "[agents.'t:g']\nmode = 'gateway'\ngateways = ['g']\nopenclaw_agents.a.tools = ['read']\n[gateways.g]\n".to_owned(),
            "agents.t:g.openclaw_agents: has no effect with `mode = \"gateway\"`",
        ),
        (
            format!("{entry}]\nenvironment = {{ SANDBOX_OPENCLAW_AGENT = 'b' }}\nopenclaw_agents.a = {{}}\n"),
            "s.toml:2: agents.sandbox:openclaw.environment: SANDBOX_OPENCLAW_AGENT is set for each run, from \
             `openclaw_agents`: leave it out here, and say it there",
        ),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected} is not in {error}");
    }
    // Its only agent may have fewer tools.
    openclaw(&format!("{entry}]\nenvironment = {{ SANDBOX_OPENCLAW_AGENT = 'main:read' }}\n"));
}

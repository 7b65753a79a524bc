//! Tests the coding agents that ship, in their real images: two in every scenario. `make agents-record` plays all of them.

use std::path::Path;

use harness::{
    coding_agents::{AgentScenario, AgentUpstream, CODING_AGENTS, CodingAgent, works_with},
    docker::docker,
};

/// Plays every scenario with one agent, with the scripted upstream and with LiteLLM.
async fn play(agent: CodingAgent) {
    for upstream in AgentUpstream::ALL {
        let world = agent.add(upstream).await;
        for scenario in AgentScenario::ALL {
            agent.play(&world, scenario).await;
        }
    }
}

#[tokio::test]
async fn claude_code_works_in_its_sandbox() {
    play(CODING_AGENTS[0]).await;
}

#[tokio::test]
async fn codex_works_in_its_sandbox() {
    play(CODING_AGENTS[1]).await;
}

/// The other three have a test of this alone: their failures take minutes.
#[tokio::test]
async fn each_agent_takes_three_turns_of_a_thread() {
    for agent in &CODING_AGENTS[2..] {
        let world = agent.add(AgentUpstream::Scripted).await;
        agent.play(&world, AgentScenario::Thread).await;
    }
}

/// Builds and tests of most projects need these. The slim image has none of them, and is smaller.
#[tokio::test]
async fn an_agents_image_has_common_tools() {
    let [image, slim] = CODING_AGENTS[3].images().await;
    let inside = async |image: &str, script: &str| {
        docker(&["run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", script]).await
    };
    let works = "set -e; cd /tmp; git --version; node --version; npm --version; npx --version; jq --version; rg --version; \
                 unzip -v; printf 'int main(void) { return 0; }' > a.c; printf 'a: a.c\n\tcc -o a a.c\n' > Makefile; \
                 make; ./a; python3 -c 'import ssl, sqlite3, json'; echo complete";
    let said = inside(&image, works).await;
    assert!(said.ends_with("complete"), "{said}");
    assert_eq!(slim, format!("{image}-slim"));
    let lacks = "for tool in make cc python3 npm rg unzip; do command -v $tool; done; node --version && git --version";
    let said = inside(&slim, lacks).await;
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn the_book_shows_the_recorded_agents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let record = std::fs::read_to_string(root.join("records/agents.json")).unwrap();
    let page = std::fs::read_to_string(root.join("../docs/src/reference/works-with.md")).unwrap();
    assert!(page.contains(&works_with(&serde_json::from_str(&record).unwrap())), "run `make agents-record`");
}

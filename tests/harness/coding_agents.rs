//! Runs the coding agents that ship, in their real images, against the scripted upstream, directly or through the real
//! LiteLLM. Each scenario has a fixed outcome.

use std::{fs, path::Path, time::Duration};

use bench::upstream::{Entry, ScriptedUpstream};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    CANARY_KEY, LiteLlm, Outcome, World, agent_host_tools::HostToolRun, eventually::eventually_within,
    sluice::interrupt,
};

/// Longest duration of a run: opencode and Qwen Code repeat a failed call for more than a minute.
const RUN_TIMEOUT: Duration = Duration::from_secs(240);
/// Longest duration of a build, which downloads the agent.
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
/// Docker itself: the world's relay in front of it serves runs only.
const DOCKER: &str = "sandbox.docker_socket=/var/run/docker.sock";
/// Settings of a project, for each agent: another endpoint and another model.
const PROJECT_SETTINGS: [(&str, &str); 7] = [
    (
        ".claude/settings.json",
        r#"{"model":"fake-status400","env":{"ANTHROPIC_BASE_URL":"http://localhost:9"}}"#,
    ),
    (
        ".codex/config.toml",
        "model = 'fake-status400'\nmodel_provider = 'p'\n[model_providers.p]\nname = 'p'\nbase_url = 'http://localhost:9'\n",
    ),
    ("opencode.json", r#"{"model":"sluicegate/fake-status400","disabled_providers":["sluicegate"]}"#),
    (
        ".qwen/settings.json",
        r#"{"model":{"name":"fake-status400"},"security":{"auth":{"baseUrl":"http://localhost:9"}}}"#,
    ),
    (".aider.conf.yml", "openai-api-base: http://localhost:9\nmodel: openai/fake-status400\n"),
    (".aider.model.settings.yml", "- {name: openai/fake, extra_params: {api_base: 'http://localhost:9'}}\n"),
    (".env", "OPENAI_API_BASE=http://localhost:9\nOPENAI_BASE_URL=http://localhost:9\n"),
];
/// Answer of the scripted upstream to anything.
const SENTENCE: &str = "Hello from the scripted upstream, it is a lovely day.";

/// A coding agent that ships.
#[derive(Debug, Clone, Copy)]
pub struct CodingAgent {
    /// Its name for `sluice agents add`.
    pub name: &'static str,
    /// Call of its tool that edits the file; absent if the agent has no tools.
    edit: Option<&'static str>,
    /// The host's clock, as its model calls it; absent if the agent has no client of the Model Context Protocol.
    clock: Option<&'static str>,
}

/// All coding agents that ship.
pub const CODING_AGENTS: [CodingAgent; 5] = [
    CodingAgent {
        name: "claude-code",
        edit: Some(r#"Bash {"command":"sed -i s/one/two/ a.txt; cat a.txt","description":"Edit"}"#),
        clock: Some("mcp__host__core__get_current_time"),
    },
    CodingAgent {
        name: "codex",
        edit: Some(r#"exec_command {"cmd":"sed -i s/one/two/ a.txt; cat a.txt"}"#),
        clock: Some("mcp__host/core__get_current_time"),
    },
    CodingAgent {
        name: "opencode",
        edit: Some(r#"bash {"command":"sed -i s/one/two/ a.txt; cat a.txt","description":"Edit"}"#),
        clock: Some("host_core__get_current_time"),
    },
    CodingAgent {
        name: "qwen-code",
        edit: Some(
            r#"run_shell_command {"command":"sed -i s/one/two/ a.txt; cat a.txt","is_background":false}"#,
        ),
        clock: Some("mcp__host__core__get_current_time"),
    },
    CodingAgent { name: "aider", edit: None, clock: None },
];

/// Provider that the proxy forwards the calls of an agent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentUpstream {
    /// The scripted upstream.
    Scripted,
    /// The real LiteLLM in front of the scripted upstream.
    LiteLlm,
}

impl AgentUpstream {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Scripted, Self::LiteLlm];

    const fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::LiteLlm => "LiteLLM",
        }
    }

    /// Returns the codes of a run when its model's answers break off. LiteLLM translates the answers of some APIs as a
    /// whole: it answers with its own error.
    const fn cut_codes(self) -> &'static [&'static str] {
        match self {
            Self::Scripted => &["model_unavailable"],
            Self::LiteLlm => &["model_unavailable", "model_busy"],
        }
    }

    async fn world(self) -> AgentWorld {
        match self {
            Self::Scripted => AgentWorld { world: World::with("").await, litellm: None },
            Self::LiteLlm => {
                let upstream = ScriptedUpstream::start().await.unwrap();
                let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
                let world = World::in_front_of(upstream, &litellm.base_url, "").await;
                AgentWorld { world, litellm: Some(litellm) }
            }
        }
    }
}

/// A world with the entry of one agent.
#[derive(Debug)]
pub struct AgentWorld {
    world: World,
    litellm: Option<LiteLlm>,
}

impl AgentWorld {
    const fn upstream(&self) -> AgentUpstream {
        match self.litellm {
            None => AgentUpstream::Scripted,
            Some(_) => AgentUpstream::LiteLlm,
        }
    }
}

/// Scenario that an agent is played through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentScenario {
    /// The agent answers a question.
    OneShot,
    /// The agent edits a copied file with a tool, and reports the call.
    ToolLoop,
    /// Settings of the copied project name another endpoint and model.
    ProjectSettings,
    /// The provider refuses the call.
    Refusal,
    /// The connection to the provider breaks in each answer.
    Cut,
    /// The user cancels the run while the model is silent.
    Cancel,
    /// The agent calls a host tool over the Model Context Protocol. One without it reads how its shell calls the tool.
    HostTool,
    /// The agent takes three turns of a thread in one workspace.
    Thread,
}

impl AgentScenario {
    /// All scenarios.
    pub const ALL: [Self; 8] = [
        Self::OneShot,
        Self::ToolLoop,
        Self::ProjectSettings,
        Self::Refusal,
        Self::Cut,
        Self::Cancel,
        Self::HostTool,
        Self::Thread,
    ];
}

/// A scenario that had its expected outcome.
#[derive(Debug, Serialize)]
pub struct ScenarioRecord {
    /// Name of the agent.
    pub agent: &'static str,
    /// Version of its package.
    pub version: String,
    /// Provider.
    pub upstream: AgentUpstream,
    /// Scenario.
    pub scenario: AgentScenario,
    /// Answer, changed file, or error code.
    pub result: String,
    /// Duration, from the command to its end.
    pub ms: u128,
}

impl CodingAgent {
    /// Builds the image with `sluice agents add`, and returns a world with the entry that it wrote.
    ///
    /// # Panics
    /// If the agent cannot be added.
    pub async fn add(&self, upstream: AgentUpstream) -> AgentWorld {
        let added_to = upstream.world().await;
        let added = added_to
            .world
            .sluice()
            .within(BUILD_TIMEOUT)
            .run(&["--set", DOCKER, "agents", "add", self.name])
            .await;
        assert_eq!(added.code, Some(0), "{added:?}");
        added_to
    }

    /// Builds its image with the common tools, and the slim one. Returns their names.
    ///
    /// # Panics
    /// If one cannot be built.
    pub async fn images(&self) -> [String; 2] {
        let AgentWorld { world, .. } = AgentUpstream::Scripted.world().await;
        let add = async |options: &[&str]| {
            let arguments =
                [&["--set", DOCKER, "agents", "add", self.name, "--force", "--json"], options].concat();
            let added = world.sluice().within(BUILD_TIMEOUT).run(&arguments).await;
            assert_eq!(added.code, Some(0), "{added:?}");
            added.result()["image"].as_str().unwrap().to_owned()
        };
        [add(&[]).await, add(&["--slim"]).await]
    }

    /// Returns the version of its package.
    ///
    /// # Panics
    /// If the agent is not listed.
    pub async fn version(&self, world: &World) -> String {
        let listed =
            world.sluice().run(&["--set", DOCKER, "agents", "ls", "--available", "--json"]).await.result();
        let agents = listed["available"].as_array().unwrap();
        let agent = agents.iter().find(|agent| agent["name"] == self.name).unwrap();
        assert_eq!((&agent["added"], &agent["imagePresent"]), (&json!(true), &json!(true)), "{agent}");
        agent["version"].as_str().unwrap().to_owned()
    }

    /// Plays `scenario` and checks its outcome.
    ///
    /// # Panics
    /// If the outcome is another.
    pub async fn play(&self, played_in: &AgentWorld, scenario: AgentScenario) -> ScenarioRecord {
        let world = &played_in.world;
        let version = self.version(world).await;
        let began = Instant::now();
        let result = match scenario {
            AgentScenario::OneShot => self.one_shot(world).await,
            AgentScenario::ToolLoop => self.tool_loop(world).await,
            AgentScenario::ProjectSettings => self.project_settings(world).await,
            AgentScenario::Refusal => self.failure(world, "fake-status400", &["model_refused"]).await,
            AgentScenario::Cut => self.failure(world, "fake-cut2", played_in.upstream().cut_codes()).await,
            AgentScenario::Cancel => self.cancel(world).await,
            AgentScenario::HostTool => self.host_tool(world).await,
            AgentScenario::Thread => self.thread(world).await,
        };
        world.assert_nothing_left().await;
        let ms = began.elapsed().as_millis();
        ScenarioRecord { agent: self.name, version, upstream: played_in.upstream(), scenario, result, ms }
    }

    async fn run(&self, world: &World, model: &str, question: &[&str]) -> Outcome {
        let arguments = ["run", "--agent", self.name, "--model", model, "--json"];
        world.sluice().within(RUN_TIMEOUT).run(&[&arguments[..], question].concat()).await
    }

    async fn one_shot(&self, world: &World) -> String {
        let outcome = self.run(world, "fake", &["Hello"]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let text = text_of(&outcome);
        assert_eq!(text, SENTENCE, "{outcome:?}");
        assert!(outcome.events().iter().any(|event| event["type"] == "agent_usage"), "{outcome:?}");
        text
    }

    async fn tool_loop(&self, world: &World) -> String {
        let files = world.path().join("files");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("a.txt"), "one\n").unwrap();
        let Some(edit) = self.edit else {
            return self.edit_by_text(world, &files).await;
        };
        let question = format!("\nDo this:\ncall: {edit}\nsay: Edited.\n");
        let options = ["--workspace", files.to_str().unwrap(), &question];
        let outcome = self.run(world, "fake-steps", &options).await;
        assert_eq!(text_of(&outcome), "Edited.", "{outcome:?}");
        let events = outcome.events();
        let of = |kind: &str| {
            events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{outcome:?}"))
        };
        let (call, answer) = (of("tool_call"), of("tool_result"));
        assert_eq!((&call["id"], &answer["is_error"]), (&answer["id"], &json!(false)), "{outcome:?}");
        assert!(call["arguments"].as_str().unwrap().contains("sed -i"), "{call}");
        assert!(answer["result"].as_str().unwrap().contains("two"), "{answer}");
        changed_file(world, &outcome, &files).await
    }

    /// Lets an agent without tools edit a file: the upstream repeats the question, which has the new content.
    async fn edit_by_text(&self, world: &World, files: &Path) -> String {
        let question = "Change it:\n\na.txt\n```\ntwo\n```\n";
        let options = ["--workspace", files.to_str().unwrap(), question];
        let outcome = self.run(world, "fake-echo", &options).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.events().iter().any(|event| event["type"] == "tool_result"), "{outcome:?}");
        changed_file(world, &outcome, files).await
    }

    /// Runs in a project with settings that would lead each agent elsewhere.
    async fn project_settings(&self, world: &World) -> String {
        let project = world.path().join("project");
        for (name, text) in PROJECT_SETTINGS {
            let file = project.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let earlier = world.upstream.ledger().all().len();
        let options = ["--workspace", project.to_str().unwrap(), "--all", "--include", ".env", "Hello"];
        let outcome = self.run(world, "fake", &options).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(text_of(&outcome), SENTENCE, "{outcome:?}");
        let calls = world.upstream.ledger().all().split_off(earlier);
        let is_of_run = |call: &Entry| call.json().is_ok_and(|body| body["model"] == "fake");
        assert!(!calls.is_empty() && calls.iter().all(is_of_run), "{calls:?}");
        let removed = world.sluice().run(&["runs", "gc", "--kept"]).await;
        assert_eq!(removed.code, Some(0), "{removed:?}");
        "the run's model".to_owned()
    }

    async fn failure(&self, world: &World, model: &str, expected: &[&str]) -> String {
        let outcome = self.run(world, model, &["Hello"]).await;
        let result = outcome.result();
        let code = result["error"]["code"].as_str().unwrap_or_default();
        assert!(expected.contains(&code), "{outcome:?}");
        code.to_owned()
    }

    async fn cancel(&self, world: &World) -> String {
        let earlier = world.upstream.ledger().all().len();
        let arguments = ["run", "--agent", self.name, "--model", "fake-hang", "--json", "Hello"];
        let running = world.sluice().spawn(&arguments);
        let calls = || async { world.upstream.ledger().all().len() };
        eventually_within(RUN_TIMEOUT, "it asks", calls, |calls| *calls > earlier).await;
        interrupt(&running);
        let ended = tokio::time::timeout(RUN_TIMEOUT, running.wait_with_output()).await;
        let outcome = Outcome::from(ended.expect("the run ends").unwrap());
        assert_eq!(outcome.code, Some(130), "{outcome:?}");
        "cancelled".to_owned()
    }

    /// Takes three turns of a thread. The workspace stays, and the last request has the whole conversation.
    async fn thread(&self, world: &World) -> String {
        let entry = format!("[agents.\"sandbox:{}\"]\n", self.name);
        let setting = format!("{entry}workspace = \"thread\"\n");
        world.reconfigure(&entry, &setting);
        let questions = ["What is first?", "What is second?", "What is third?"];
        for question in questions {
            let outcome = self.run(world, "fake", &["--state-key", "chat", question]).await;
            assert_eq!(outcome.code, Some(0), "{question} {outcome:?}");
            assert_eq!(text_of(&outcome), SENTENCE, "{outcome:?}");
        }
        let last = world.upstream.ledger().last().unwrap().json().unwrap().to_string();
        assert!(questions.iter().all(|question| last.contains(question)), "{last}");
        let listed = fs::read_dir(world.path().join("workspaces")).unwrap().count();
        assert!(listed > 0, "the workspace stays");
        world.reconfigure(&setting, &entry);
        let removed = world.sluice().run(&["runs", "gc", "--kept"]).await;
        assert_eq!(removed.code, Some(0), "{removed:?}");
        format!("{} turns", questions.len())
    }
}

impl CodingAgent {
    async fn host_tool(&self, world: &World) -> String {
        let order = async |question: String| self.run(world, "fake-steps", &[&question]).await;
        HostToolRun { agent: self.name, tool: self.clock }.play(world, order).await
    }
}

/// Returns the answer of a run.
fn text_of(outcome: &Outcome) -> String {
    outcome.result()["text"].as_str().unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

/// Returns the changed line of the run's copy. The directory that was copied is as it was.
async fn changed_file(world: &World, outcome: &Outcome, files: &Path) -> String {
    let run = outcome.result()["run_id"].as_str().map(str::to_owned).unwrap_or_else(|| panic!("{outcome:?}"));
    let diff = world.sluice().run(&["runs", "diff", &run]).await;
    assert_eq!(fs::read_to_string(files.join("a.txt")).unwrap(), "one\n");
    assert!(diff.stdout.contains("\n-one\n+two\n"), "{diff:?}");
    let removed = world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    "a.txt: one -> two".to_owned()
}

/// Returns the table "works with" of the book, from a record of all agents.
///
/// # Panics
/// If the record has another form.
#[must_use]
pub fn works_with(record: &Value) -> String {
    let found = record["scenarios"].as_array().unwrap();
    let mut table = "| agent | version | model's provider | one answer | edits a copied file | hostile project | refusal | broken connection | cancel | host tool | three turns |\n\
        |---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for agent in CODING_AGENTS {
        for upstream in AgentUpstream::ALL {
            let own = |one: &&Value| one["agent"] == agent.name && one["upstream"] == json!(upstream);
            let own: Vec<_> = found.iter().filter(own).collect();
            let cells = AgentScenario::ALL
                .map(|scenario| own.iter().find(|one| one["scenario"] == json!(scenario)))
                .map(|played| played.map_or_else(|| "not tested".to_owned(), |one| cell(one)));
            let version = own.first().and_then(|one| one["version"].as_str()).unwrap_or("not tested");
            let provider = upstream.name();
            table.push_str(&format!(
                "| `{}` | {version} | {provider} | {} |\n",
                agent.name,
                cells.join(" | ")
            ));
        }
    }
    table
}

/// Returns the table's cell of a scenario that was played.
fn cell(played: &Value) -> String {
    let ms = played["ms"].as_u64().unwrap();
    let seconds = format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    match played["scenario"].as_str() {
        Some("refusal" | "cut") => format!("`{}`, {seconds}", played["result"].as_str().unwrap()),
        _ => format!("yes, {seconds}"),
    }
}

//! Tests the real OpenClaw in its own sandbox for each run, with only the model scripted.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use harness::{Outcome, World, docker::docker, eventually::eventually_within};
use platform_core::record::Outcome as Called;
use serde_json::{Value, json};

const IMAGE: &str = "sluicegate/sandbox-openclaw:latest";

/// The entry that README.md tells users to add.
const ENTRY: &str = "[agents.'sandbox:openclaw']\nargv = ['node', '/agent/run.mjs']\nname = 'OpenClaw'\nimage = 'sluicegate/sandbox-openclaw:latest'\n\
    memory = '2GiB'\n";

/// Longest duration of a run: OpenClaw takes seconds to start, and many on a busy machine.
const PATIENCE: Duration = Duration::from_secs(110);
/// Longest duration of a run while several execute at once.
const LONG_PATIENCE: Duration = Duration::from_secs(210);

/// Starts a world with the agent, which has a run timeout of `seconds`.
async fn world(seconds: u32, more: &str) -> World {
    World::with(&format!("{ENTRY}run_timeout = '{seconds}s'\n{more}\n")).await
}

async fn run(world: &World, id: &str, model: &str, question: &[&str]) -> Outcome {
    let arguments = ["run", "--agent", "sandbox:openclaw", "--account", "acct-1", "--keep", "--json"];
    let own = ["--run-id", id, "--model", model];
    world.sluice().within(PATIENCE).run(&[&arguments[..], &own, question].concat()).await
}

/// Returns a list of tool calls in the form that the scripted model reads.
fn steps(calls: &[(&str, Value)], answer: &str) -> String {
    let calls = calls.iter().map(|(tool, input)| format!("call: {tool} {input}\n"));
    format!("Please:\n{}say: {answer}", calls.collect::<String>())
}

fn exec(command: &str) -> (&'static str, Value) {
    ("exec", json!({ "command": command }))
}

/// Returns the answer of a run that succeeded.
fn answer(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()["text"].as_str().unwrap().to_owned()
}

/// Returns the last request to the model.
fn last_request(world: &World) -> Value {
    world.upstream.ledger().last().unwrap().json().unwrap()
}

#[tokio::test]
async fn a_tool_loop_edits_and_commits() {
    let world = world(100, "").await;
    let edit = json!({ "path": "repo/file", "edits": [{ "oldText": "one", "newText": "two" }] });
    let question = steps(
        &[
            exec(
                "git init -q -b main repo && cd repo && echo one > file && git add . && git commit -qm first",
            ),
            ("edit", edit),
            exec(
                "cd repo && git commit -qam second && git log --format=%s,%an && cat file && git status --short",
            ),
        ],
        "Both are committed.",
    );
    let outcome = run(&world, "r1", "fake-steps", &[&question]).await;
    assert_eq!(answer(&outcome), "Both are committed.");
    let tools: Vec<_> = outcome
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool")
        .map(|event| event["name"].clone())
        .collect();
    assert_eq!(tools, ["exec", "edit", "exec"], "while it worked");

    let repo = world.workspace("r1").await.join("repo");
    assert_eq!(fs::read_to_string(repo.join("file")).unwrap(), "two\n");
    let last = last_request(&world);
    assert!(last.to_string().contains("second,Sandboxed agent"), "{last}");
    let (ledger, journal) = (world.upstream.ledger().all(), world.records(4).await);
    assert_eq!((ledger.len(), journal.len()), (4, 4), "a call for each step and one for the answer");
    for (call, line) in ledger.iter().zip(&journal) {
        assert_eq!(
            (call.header("x-litellm-end-user-id"), line.record.outcome),
            (vec!["acct-1"], Called::Complete)
        );
        assert_eq!((line.record.run_id.as_str(), line.record.account.as_str()), ("r1", "acct-1"));
    }
    assert_closed(&last, &world.workspace("r1").await).await;
}

/// An agent of the entry that only reads, and one that writes.
const DESCRIBED: &str = "[agents.'sandbox:openclaw'.openclaw_agents]\nreviewer = { tools = ['read'] }\nauthor = { tools = ['write'] }";

/// Runs one agent of the entry, and the model makes `calls`; returns its workspace and the last request.
async fn works(world: &World, id: &str, options: &[&str], calls: &[(&str, Value)]) -> (PathBuf, Value) {
    let question = steps(calls, "Reviewed.");
    let outcome = run(world, id, "fake-steps", &[options, &[&question]].concat()).await;
    assert_eq!(answer(&outcome), "Reviewed.");
    (world.workspace(id).await, last_request(world))
}

/// The control is the same entry without a name.
#[tokio::test]
async fn a_reviewer_of_openclaw_executes_nothing() {
    let world = world(100, DESCRIBED).await;
    let executes = exec("touch /workspace/executed; echo done-$((6 * 7))");
    let reads = ("read", json!({ "path": ".cogni/prompt.txt" }));
    let calls = [executes.clone(), reads];
    let (workspace, request) = works(&world, "r1", &["--gateway-agent", "reviewer"], &calls).await;
    assert_eq!(offered(&request), ["read".to_owned()].into());
    let told = results(&request);
    assert!(told[0].contains("not found"), "it was told so: {told:?}");
    assert!(told[1].contains("touch /workspace/executed"), "it reads: {told:?}");
    assert!(!workspace.join("executed").exists());
    let prompt = request["messages"][0]["content"].to_string();
    assert!(prompt.contains("You can read files below") && !prompt.contains("You can run commands"));

    let (workspace, request) = works(&world, "r2", &[], &calls).await;
    assert!(results(&request)[0].contains("done-42"), "the control: {request}");
    assert!(workspace.join("executed").exists(), "the control");

    // One that writes gets neither what comes with `write`, nor more by OpenClaw's own configuration.
    let configures = ("write", json!({ "path": ".openclaw-state/openclaw.json", "content": "{}" }));
    let calls = [configures, executes];
    let (workspace, request) = works(&world, "r3", &["--gateway-agent", "author"], &calls).await;
    assert_eq!(offered(&request), ["write".to_owned()].into());
    let told = results(&request);
    assert!(told[0].contains("wrote") && told[1].contains("not found"), "{told:?}");
    assert!(!workspace.join("executed").exists());
}

/// Returns the tools that a request offers the model.
fn offered(request: &Value) -> BTreeSet<String> {
    let tools = request["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the results of tools in a request.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect()
}

/// Checks OpenClaw's own report of its configuration, and the tools that it offered.
async fn assert_closed(request: &Value, workspace: &Path) {
    let all = ["apply_patch", "edit", "exec", "process", "read", "write"];
    assert_eq!(offered(request), all.map(str::to_owned).into());
    let prompt = request["messages"][0]["content"].to_string();
    assert!(
        prompt.contains("coding agent in a closed container") && prompt.contains("Be direct and concise")
    );

    let config = reported(&workspace.join(".openclaw-state/openclaw.json")).await;
    let of = |path: &str| config.pointer(path).unwrap_or(&Value::Null).clone();
    for (path, value) in [
        ("/agents/defaults/sandbox/mode", json!("off")),
        ("/agents/defaults/heartbeat/every", json!("0m")),
        ("/tools/elevated/enabled", json!(false)),
        ("/tools/toolSearch", json!(false)),
        ("/cron/enabled", json!(false)),
        ("/models/mode", json!("replace")),
        ("/models/providers/cogni/baseUrl", json!("http://localhost:8080/v1")),
    ] {
        assert_eq!(of(path), value, "{path}");
    }
    assert_eq!(config["models"]["providers"].as_object().unwrap().len(), 1);
}

/// Returns the configuration in `file` as OpenClaw parses it.
async fn reported(file: &Path) -> Value {
    let script = "for part in agents tools cron models; do \
        printf '{\"%s\":' $part; node --disable-warning=ExperimentalWarning \"$0\" config get $part --json || exit; echo '}'; done";
    let mount = format!("{}:/openclaw.json:ro", file.display());
    let start = ["run", "--rm", "--network", "none", "--entrypoint", "bash", "--volume", &mount];
    let environment = [
        "--env",
        "HOME=/tmp",
        "--env",
        "OPENCLAW_CONFIG_PATH=/openclaw.json",
        "--env",
        "OPENCLAW_NO_RESPAWN=1",
    ];
    let command = [IMAGE, "-c", script, "/opt/openclaw/node_modules/openclaw/openclaw.mjs"];
    let output = docker(&[&start[..], &environment, &command].concat()).await;
    let parts = serde_json::Deserializer::from_str(&output).into_iter::<serde_json::Map<String, Value>>();
    Value::Object(parts.flat_map(|part| part.unwrap_or_else(|error| panic!("{error}: {output}"))).collect())
}

#[tokio::test]
async fn history_and_four_mebibytes_reach_the_model() {
    let world = world(100, "environment = { COGNI_CONTEXT_WINDOW = '4000000' }").await;
    let history = world.path().join("said.json");
    let messages = json!([{ "role": "user", "content": "My name is Ada." }, { "role": "assistant", "content": "Hello, Ada." }]);
    fs::write(&history, messages.to_string()).unwrap();
    // Together with the history and the headings, this is the largest prompt that OpenClaw accepts.
    let question = world.path().join("question");
    fs::write(&question, format!("Begin {}end.", "0123456789abcde ".repeat((4 << 20) / 16 - 32))).unwrap();
    let arguments = [
        "run",
        "--agent",
        "sandbox:openclaw",
        "--run-id",
        "r1",
        "--json",
        "--history",
        history.to_str().unwrap(),
        "-",
    ];
    let outcome =
        world.sluice().within(PATIENCE).stdin(fs::File::open(&question).unwrap()).run(&arguments).await;
    assert!(answer(&outcome).contains("lovely day"), "{outcome:?}");
    let prompt = last_request(&world)["messages"].to_string();
    assert!(prompt.len() > (4 << 20) - 1024, "{}", prompt.len());
    for words in [
        "My name is Ada.",
        "## assistant\\n\\n```\\nHello, Ada.",
        "# Message to answer\\n\\nBegin 0123",
        "abcde end.",
    ] {
        assert!(prompt.contains(words), "{words}");
    }
    assert_eq!(world.records(1).await.len(), 1);
    world.assert_nothing_left().await;
}

/// The second turn finds what a failed one left of OpenClaw's state, and the third that of a turn that succeeded.
#[tokio::test]
async fn openclaw_takes_three_turns_in_a_workspace() {
    let world = world(100, "workspace = 'thread'").await;
    let turns = [("fake-status400", "Is this first?", 1), ("fake", "Then?", 0), ("fake", "And last?", 0)];
    for (model, question, code) in turns {
        let own = ["--model", model, "--state-key", "chat", question];
        let arguments = [&["run", "--agent", "sandbox:openclaw", "--json"][..], &own].concat();
        let outcome = world.sluice().within(PATIENCE).run(&arguments).await;
        assert_eq!(outcome.code, Some(code), "{question} {outcome:?}");
        // OpenClaw ends each turn with such a line.
        let is_logged = outcome.stdout.contains("ended with stopReason=");
        assert!(code != 0 || !is_logged, "it logs beside its answer: {outcome:?}");
    }
    let last = last_request(&world).to_string();
    assert!(["Then?", "And last?"].iter().all(|question| last.contains(question)), "{last}");
    let removed = world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    world.assert_nothing_left().await;
}

/// A run that fails: its agent and model, its error code, and the number of calls at the proxy and at the upstream.
struct FailingRun {
    agent: &'static str,
    model: &'static str,
    code: &'static str,
    calls: usize,
    upstream: usize,
}

impl FailingRun {
    /// Returns its run id.
    fn run(&self) -> String {
        format!("r-{}-{}", self.agent.rsplit(':').next().unwrap_or_default(), self.model)
    }
}

const fn failing(model: &'static str, code: &'static str, calls: usize) -> FailingRun {
    FailingRun { agent: "sandbox:openclaw", model, code, calls, upstream: calls }
}

/// Failures that OpenClaw can meet. It retries a passing failure twice, and an empty answer once.
const FAILING: [FailingRun; 10] = [
    failing("fake-status401", "model_refused", 1),
    failing("fake-status402", "model_refused", 1),
    failing("fake-status400", "model_refused", 1),
    failing("fake-toolong", "context_overflow", 1),
    failing("fake-status429", "model_busy", 3),
    failing("fake-status500", "model_busy", 3),
    failing("fake-cut2", "model_unavailable", 3),
    failing("fake-words0", "no_answer", 2),
    FailingRun { agent: "test:spent", upstream: 0, ..failing("fake", "quota_exhausted", 1) },
    FailingRun { agent: "test:other", upstream: 0, ..failing("fake", "model_refused", 1) },
];

/// Returns entries of three agents: with a tiny budget, with a model that is not granted, and with a short timeout.
fn limited_agents() -> String {
    let entry = |name: &str, settings: &str| {
        let argv = if settings.contains("argv") { "" } else { "argv = ['node', '/agent/run.mjs']\n" };
        format!("[agents.'test:{name}']\n{argv}image = '{IMAGE}'\nmemory = '2GiB'\n{settings}\n")
    };
    let other = "run_timeout = '200s'\nmodels = ['fake']\n\
        argv = ['env', 'COGNI_MODEL=fake-echo', 'node', '/agent/run.mjs']";
    entry("spent", "run_timeout = '200s'\ntotal_tokens = 100")
        + &entry("other", other)
        + &entry("brief", "run_timeout = '60s'")
}

/// Runs at a time: each needs more than half a gigabyte and a whole processor.
const AT_ONCE: usize = 4;

/// Each is reported soon.
#[tokio::test]
async fn model_failures_have_one_name_in_openclaw() {
    let world = world(200, &limited_agents()).await;
    let hangs = FailingRun { agent: "test:brief", ..failing("fake-hang", "timeout", 1) };
    let waits = failed(&world, &hangs);
    let rest = async {
        // The run with the short timeout starts alone, so that it reaches its model call in time.
        let calls = || async { world.upstream.ledger().all().len() };
        eventually_within(PATIENCE, "it asks", calls, |calls| *calls == 1).await;
        stream::iter(&FAILING)
            .map(|case| failed(&world, case))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
    };
    let (hung, mut ended) = tokio::join!(waits, rest);
    assert_eq!(hung.1["error"]["message"], "stopped after 1m");
    ended.push(hung);
    let journal = world.records(ended.iter().map(|(case, _)| case.calls).sum()).await;
    let recorded = |run: &str| journal.iter().filter(|line| line.record.run_id.as_str() == run).count();
    for (case, result) in &ended {
        let run = case.run();
        assert_eq!(result["error"]["code"], case.code, "{run}: {result}");
        let upstream = world.upstream.ledger().all();
        let upstream = upstream.iter().filter(|call| call.header("x-cogni-run-id") == [&run]).count();
        assert_eq!((recorded(&run), upstream), (case.calls, case.upstream), "{run}: calls");
    }
    world.assert_nothing_left().await;
}

/// Returns the report of `sluice` on a run that fails.
async fn failed<'c>(world: &World, case: &'c FailingRun) -> (&'c FailingRun, Value) {
    let arguments =
        ["run", "--agent", case.agent, "--run-id", &case.run(), "--model", case.model, "--json", "Hi"];
    let outcome = world.sluice().within(LONG_PATIENCE).run(&arguments).await;
    let result = outcome.result();
    assert_eq!(result["ok"], false, "{outcome:?}");
    (case, result)
}

/// Files of a repository that configure a program started in it.
const PLANTED: [(&str, &str); 3] = [
    (".env", "PLANTED=by-the-repository"),
    ("openclaw.json", r#"{"models":{"providers":{"planted":{"baseUrl":"http://planted"}}}}"#),
    (".openclaw/openclaw.json", r#"{"models":{"providers":{"planted":{"baseUrl":"http://planted"}}}}"#),
];

#[tokio::test]
async fn a_repositorys_plants_configure_nothing() {
    let own = "exec node /agent/run.mjs";
    // The control: OpenClaw started in the repository, as people usually start it.
    let plain = "exec node /opt/openclaw/node_modules/openclaw/openclaw.mjs agent exec --json --cwd /workspace \
        --config /workspace/repo/control.json --message-file /workspace/.cogni/prompt.txt";
    let entry = |name: &str, protocol: &str, start: &str| {
        format!(
            "[agents.'test:{name}']\nimage = '{IMAGE}'\nmemory = '2GiB'\nrun_timeout = '100s'\nprotocol = '{protocol}'\n\
             argv = ['bash', '-c', {}]\n",
            json!(format!("{}cd repo && {start}", repository_script()).replace('{', "{{").replace('}', "}}"))
        )
    };
    let world = World::with(&(entry("ours", "envelope", own) + &entry("control", "text", plain))).await;
    let question = steps(&[exec("cd repo && env")], "Looked.");
    let last_prompt = async |agent: &str, id: &str| {
        let arguments =
            ["run", "--agent", agent, "--run-id", id, "--model", "fake-steps", "--json", &question];
        let outcome = world.sluice().within(PATIENCE).run(&arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        last_request(&world).to_string()
    };
    let ours = last_prompt("test:ours", "r1").await;
    assert!(ours.contains("RUN_ID=r1") && !ours.contains("by-the-repository"), "{ours}");
    assert_eq!(world.upstream.ledger().all().len(), 2, "the model of the run, by the provider of the run");
    let control = last_prompt("test:control", "r2").await;
    assert!(
        control.contains("RUN_ID=r2") && control.contains("PLANTED=by-the-repository"),
        "control: {control}"
    );
}

/// Returns a script that creates the repository, and a configuration for the control.
fn repository_script() -> String {
    let control = json!({
        "models": { "mode": "replace", "providers": { "cogni": {
            "baseUrl": "http://localhost:8080/v1", "apiKey": "none", "api": "openai-completions",
            "models": [{ "id": "fake-steps", "name": "fake-steps", "contextWindow": 200_000, "maxTokens": 1000 }],
        } } },
        "agents": { "defaults": { "model": { "primary": "cogni/fake-steps" } } },
        "tools": { "allow": ["exec"], "toolSearch": false },
    })
    .to_string();
    let write = |(name, text): (&str, &str)| format!("printf '%s\\n' '{text}' > repo/{name}\n");
    let files = PLANTED.into_iter().chain([("control.json", control.as_str())]);
    "mkdir -p repo/.openclaw\n".to_owned() + &files.map(write).collect::<String>()
}

//! Tests chats while their processes are killed between any two events of the answer. The client resumes, and nothing
//! is lost or repeated: what it reads is what is stored.

use std::{fs, net::SocketAddr, os::unix::process::ExitStatusExt, path::PathBuf, time::Duration};

use harness::{
    Agent, Up, World,
    agent::{BoxError, Stream},
    bridge::free_port,
    eventually::eventually_within,
    pace,
    shell_agents::{prints, reporting_agent},
};
use http::Method;
use runner_model::failpoint::Point;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    answer_reader::{AnswerReader, written},
    chat::{CHAT, last_text, says},
};
use crate::{
    recovery::survival::{PATIENCE, record},
    runs::events::asks,
    sandbox::shell_agent,
};

/// Steps of an agent: the line that it prints, and the answer after it.
fn steps() -> Vec<(Value, &'static str)> {
    let call = |id: &str| json!({ "type": "tool_call", "id": id, "name": "sh", "arguments": { "n": 1 } });
    let result = |id: &str| json!({ "type": "tool_result", "id": id, "result": "out" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    vec![
        (text("Let me "), "[Let me "),
        (text("look."), "[Let me look."),
        (call("a"), r#"[Let me look.]<"a" "sh" {"n":1}"#),
        (result("a"), r#"[Let me look.]<"a" "sh" {"n":1}: "out">"#),
        (call("b"), r#"[Let me look.]<"a" "sh" {"n":1}: "out"><"b" "sh" {"n":1}"#),
        (result("b"), r#"[Let me look.]<"a" "sh" {"n":1}: "out"><"b" "sh" {"n":1}: "out">"#),
        (text("It is "), r#"[Let me look.]<"a" "sh" {"n":1}: "out"><"b" "sh" {"n":1}: "out">[It is "#),
        (text("done"), r#"[Let me look.]<"a" "sh" {"n":1}: "out"><"b" "sh" {"n":1}: "out">[It is done"#),
        (json!({ "type": "result", "text": "It is done" }), ANSWER),
    ]
}

/// Whole answer of the agent.
const ANSWER: &str = r#"[Let me look.]<"a" "sh" {"n":1}: "out"><"b" "sh" {"n":1}: "out">[It is done]"#;
/// Lease that is as short as it may be, so that a run is soon taken over after its worker died.
const LEASE: &str = "[worker]\nlease_duration = '1s'\n";
const SETTINGS: &str = "stream = 'answer'\nrun_timeout = '110s'";

/// Chat with processes that may die.
struct Chat {
    world: World,
    api: Agent,
    address: SocketAddr,
}

impl Chat {
    /// Starts a world with this agent, and without a process that serves or executes. Those that come adopt its proxy.
    async fn with(agent: &str) -> Self {
        let address = free_port();
        let world = World::with(&format!("{agent}{LEASE}")).await;
        Self { world, api: Agent::over_tcp(address).searched(), address }
    }

    /// Starts a world with an agent that takes each of its steps when it is let go.
    async fn of_steps() -> Self {
        let waits = |n: usize| format!("until [ -e go-{n} ]; do sleep 0.02; done; ");
        let lines = steps().into_iter().map(|(line, _)| prints(&[line])).enumerate();
        let script: String = lines.map(|(n, prints)| waits(n) + &prints).collect();
        Self::with(&reporting_agent(&script, SETTINGS)).await
    }

    /// Returns `sluice` with the address of the API, and variables.
    fn served(&self, variables: &[(&str, &str)]) -> harness::sluice::Sluice {
        let sluice = self.world.sluice().log_to(&self.world.path().join("up.log"));
        let sluice = sluice.env("SLUICE_API_LISTEN", &self.address.to_string());
        let sluice = sluice.env("SLUICE_API_ANONYMOUS_ACCOUNT", "acct-7");
        variables.iter().fold(sluice, |sluice, (name, value)| sluice.env(name, value))
    }

    async fn order(&self) -> Result<Stream, BoxError> {
        self.api.send(Method::POST, CHAT, says("t1", "m1", "q").to_string().into()).await
    }

    async fn resume(&self) -> Result<Stream, BoxError> {
        self.api.send(Method::GET, &format!("{CHAT}/t1/stream"), "".into()).await
    }

    /// Orders the answer; returns its run, a reader of it, and the workspace, once the agent runs.
    async fn begun(&self) -> (String, AnswerReader<'static>, PathBuf) {
        let head = self.order().await.unwrap();
        let run = run_id(&head);
        let mut reader = AnswerReader::of(head, ANSWER);
        reader.until_running().await;
        let workspace = self.workspace(&run).await;
        (run, reader, workspace)
    }

    /// Resumes an answer that has not ended.
    async fn resumed<'e>(&self, expected: &'e str) -> AnswerReader<'e> {
        AnswerReader::of(self.resume().await.unwrap(), expected)
    }

    /// Returns the run's workspace.
    async fn workspace(&self, run: &str) -> PathBuf {
        self.world.workspace(run).await
    }

    /// Lets the agent go on to its end, once a worker reads what it prints.
    async fn end_agent(&self, reader: &mut AnswerReader<'_>, run: &str) {
        let workspace = self.workspace(run).await;
        let go = |n: usize| fs::write(workspace.join(format!("go-{n}")), "").unwrap();
        go(0);
        reader.until(steps()[0].1).await;
        (1..steps().len()).for_each(go);
    }

    /// Checks that the stored answer is `expected`.
    async fn is_stored(&self, expected: &str) {
        let thread = || async { self.api.get("/api/v1/threads/t1").await.json() };
        let has_answer = |thread: &Value| thread["messages"].as_array().unwrap().len() == 2;
        let thread = eventually_within(PATIENCE, "the answer is stored", thread, has_answer).await;
        assert_eq!(written(&thread["messages"][1]["parts"]), expected);
    }

    /// Ends the last process. Nothing may be left.
    async fn end(self, last: Up) {
        eventually_within(PATIENCE, "nothing is left", || self.world.left(), Vec::is_empty).await;
        last.stop(Signal::TERM).await;
    }
}

fn run_id(head: &Stream) -> String {
    head.headers["x-cogni-run-id"].to_str().unwrap().to_owned()
}

async fn killed(mut up: Up) {
    up.child.start_kill().unwrap();
    assert_eq!(up.death().await, Some(9));
}

/// The process serves the stream and executes the run. At each second position, the agent goes on while no process
/// reads it.
#[tokio::test]
async fn a_chat_survives_a_kill_after_each_event() {
    let chat = Chat::of_steps().await;
    let mut up = Up::start(chat.served(&[])).await;
    let (run, mut reader, workspace) = chat.begun().await;
    for (n, (_, after)) in steps().into_iter().enumerate() {
        killed(up).await;
        reader.until_break().await;
        assert!(!reader.has_ended, "a break must not look like an end");
        let go = || fs::write(workspace.join(format!("go-{n}")), "").unwrap();
        if n % 2 == 0 {
            go();
        }
        up = Up::start(chat.served(&[])).await;
        reader = chat.resumed(ANSWER).await;
        if n % 2 == 1 {
            go();
        }
        reader.until(after).await;
    }
    reader.finish().await;
    chat.is_stored(ANSWER).await;
    let record = record(&chat.world, &run).await;
    let workers = steps().len() + 1;
    assert_eq!((&record["state"], &record["epoch"]), (&json!("succeeded"), &json!(workers)), "{record:#}");
    chat.end(up).await;
}

/// The client holds one stream open all the time, at a process that executes nothing.
#[tokio::test]
async fn a_stream_survives_each_kill_of_its_worker() {
    let chat = Chat::of_steps().await;
    let serves = chat.served(&[("SLUICE_SANDBOX_DOCKER_SOCKET", "/nowhere/docker.sock")]);
    let serving = Up::start(serves).await;
    let works = || Up::start(chat.world.sluice().log_to(&chat.world.path().join("worker.log")));
    let mut worker = works().await;
    let (run, mut reader, workspace) = chat.begun().await;
    for (n, (_, after)) in steps().into_iter().enumerate() {
        killed(worker).await;
        fs::write(workspace.join(format!("go-{n}")), "").unwrap();
        worker = works().await;
        reader.until(after).await;
    }
    reader.finish().await;
    chat.is_stored(ANSWER).await;
    assert_eq!(record(&chat.world, &run).await["epoch"], steps().len() + 1);
    worker.stop(Signal::TERM).await;
    chat.end(serving).await;
}

/// A client that got no answer to its message sends the message again, which is the same run.
#[tokio::test]
async fn a_chat_survives_a_kill_at_each_failpoint() {
    let chat = Chat::of_steps().await;
    let mut runs = Vec::new();
    let mut ends = 0;
    for point in Point::ALL {
        let failpoint = format!("{}:kill", point.name());
        let mut up = chat.served(&[("SLUICE_FAILPOINT", &failpoint)]).silent().spawn(&["up"]);
        let reads = async {
            loop {
                let opened = if runs.is_empty() { chat.order().await } else { chat.resume().await };
                if let Ok(head) = opened
                    && head.status == 200
                {
                    runs.push(run_id(&head));
                    let mut reader = AnswerReader::of(head, ANSWER);
                    if point == Point::Ended {
                        chat.end_agent(&mut reader, &runs[0]).await;
                    }
                    reader.until_break().await;
                    ends += usize::from(reader.has_ended);
                }
                pace(Duration::from_millis(20)).await;
            }
        };
        let status = tokio::select! {
            status = timeout(PATIENCE, up.wait()) => status.unwrap_or_else(|_| panic!("{failpoint}")).unwrap(),
            () = reads => unreachable!("it reads for ever"),
        };
        assert_eq!(status.signal(), Some(9), "{failpoint} was reached");
    }
    let last = Up::start(chat.served(&[])).await;
    assert_eq!(chat.resume().await.unwrap().status, 204, "the end is stored before the last step");
    chat.is_stored(ANSWER).await;
    let again = chat.order().await.unwrap();
    runs.push(run_id(&again));
    AnswerReader::of(again, ANSWER).finish().await;
    runs.dedup();
    assert_eq!(runs.len(), 1, "one message is one run: {runs:?}");
    assert!(ends <= 1, "the stream that ends is the last");
    assert_eq!(record(&chat.world, &runs[0]).await["epoch"], Point::ALL.len());
    chat.end(last).await;
}

/// Live text has no number: the tap repeats it, or the answer replaces it.
#[tokio::test]
async fn a_chat_with_live_text_survives_a_kill() {
    let script =
        format!("{}; until [ -e go ]; do sleep 0.02; done; echo it is done", asks("fake-words5-gap20ms"));
    let chat = Chat::with(&shell_agent(&script, SETTINGS)).await;
    let up = Up::start(chat.served(&[])).await;
    let mut head = chat.order().await.unwrap();
    let run = run_id(&head);
    let mut received = String::new();
    while !received.contains("text-delta") {
        let (piece, _) = head.next().await.unwrap().expect("live text");
        received += std::str::from_utf8(&piece).unwrap();
    }
    killed(up).await;
    let up = Up::start(chat.served(&[])).await;
    let resumed = chat.resume().await.unwrap();
    fs::write(chat.workspace(&run).await.join("go"), "").unwrap();
    let received = super::chat::chunks(&resumed.whole().await.unwrap());
    assert_eq!(received.last().unwrap()["type"], "finish");
    assert_eq!(last_text(&received), "it is done");
    chat.is_stored("[it is done]").await;
    chat.end(up).await;
}

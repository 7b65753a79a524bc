//! Tests kills in the middle of a call that writes: it is made once, and no program pretends to know how it ended.

use std::{fs, sync::Arc, time::Duration};

use harness::{
    GitHost, Outcome, Up, World,
    eventually::eventually_within,
    github::{GitHubFault, GitHubRoute, StoredIssue},
    sluice::Sluice,
};
use platform_core::{
    host_tools::ToolOutcome,
    record::{self, JournalLine, Kind},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::sandbox::shell_agent;

/// Setting by which the agent may comment.
const COMMENT: &str = "host_tools = ['github__comment']\nrun_timeout = '100s'\n";
/// Script that makes call `c1`, and after the kill `c1` twice and `c2`. Each prints its exit code and its answer.
const SCRIPT: &str = r#"call() { cogni-tool exec --call-id "$1" github__comment '{"number":1,"body":"Done."}' >/tmp/out 2>/tmp/err
      jq -nc --arg id "$1" --arg code $? --arg said "$(cat /tmp/out /tmp/err)" '{$id, $code, $said}'; }
    until_served() { until cogni-tool list >/dev/null 2>&1; do sleep 0.1; done; }
    call c1; until [ -e /workspace/again ]; do sleep 0.05; done; until_served; call c1; call c1; call c2"#;
/// Longest wait for the comment: the container of the run has to start first.
const PATIENCE: Duration = Duration::from_secs(60);

/// World with an agent that comments, on an issue of a GitHub that holds its answer to the first comment.
struct Commented {
    world: World,
    host: GitHost,
    /// Lets GitHub answer.
    release: Arc<Notify>,
    /// A `sluice up` that executes the tools.
    up: Up,
}

/// The same before its `sluice up`.
struct Unserved {
    world: World,
    host: GitHost,
    release: Arc<Notify>,
}

impl Unserved {
    async fn start() -> Self {
        let host = GitHost::start().await;
        let release = Arc::new(Notify::new());
        let _remote = host.repository("app");
        host.github.add_issue(StoredIssue {
            repository: "octo/app".to_owned(),
            number: 1,
            ..StoredIssue::default()
        });
        host.github.script(GitHubRoute::Comment, [GitHubFault::Held(Arc::clone(&release))]);
        let world = World::with(&format!("{}{}", shell_agent(SCRIPT, COMMENT), host.settings())).await;
        Self { world, host, release }
    }

    async fn serve(self) -> Commented {
        let Self { world, host, release } = self;
        let up = Up::start(host.authorize(world.sluice())).await;
        Commented { world, host, release, up }
    }
}

impl Commented {
    /// Starts it with a `sluice up` that supervises the proxy.
    async fn supervised() -> Self {
        let mut unserved = Unserved::start().await;
        assert!(unserved.world.stop_proxy().await);
        unserved.serve().await
    }

    /// Starts it with a proxy that the world ends, whatever becomes of `sluice up`.
    async fn beside_a_proxy() -> Self {
        Unserved::start().await.serve().await
    }

    fn sluice(&self) -> Sluice {
        self.host.authorize(self.world.sluice())
    }

    fn comments(&self) -> usize {
        self.host.github.issues()[0].comments.len()
    }

    /// Runs the agent. The command itself executes the run, so that the kill of `sluice up` leaves it alone.
    fn run(&self) -> impl Future<Output = Outcome> + use<> {
        let (url, sluice) = (self.host.url("app"), self.sluice().within(Duration::from_secs(110)));
        async move {
            let order = ["run", "--agent", "test:sh", "--run-id", "r1", "--repo", &url, "--json", "q"];
            sluice.run(&order).await
        }
    }

    /// Waits until GitHub has the comment and holds the answer to it.
    async fn held(&self) {
        let made = || async { self.host.github.count(GitHubRoute::Comment) };
        eventually_within(PATIENCE, "the comment is made", made, |count| *count == 1).await;
    }

    /// Lets the agent go on.
    async fn go_on(&self) {
        fs::write(self.world.workspace("r1").await.join("again"), "").unwrap();
    }

    async fn json(&self, arguments: &[&str]) -> Outcome {
        let outcome = self.world.sluice().run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome
    }

    /// Returns id and state of each stored call of the run.
    async fn stored(&self) -> Vec<(String, String)> {
        let explained = self.json(&["tools", "explain", "r1", "--json"]).await.result();
        let text = |call: &Value, name: &str| call[name].as_str().unwrap().to_owned();
        let calls = explained["calls"].as_array().unwrap();
        calls.iter().map(|call| (text(call, "id"), text(call, "state"))).collect()
    }

    /// Returns the states of calls of host tools in the events of the run, in their order.
    async fn states(&self) -> Vec<String> {
        let events = self.json(&["runs", "events", "r1", "--json"]).await.events();
        assert_eq!(events.last().unwrap()["type"], "done", "nothing follows the end: {events:#?}");
        let of_tools = events.iter().filter(|event| event["type"] == "host_tool");
        of_tools.map(|event| event["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the records of comments.
    async fn records(&self) -> Vec<JournalLine> {
        let is_comment = |line: &JournalLine| line.record.kind == Kind::Tool && line.record.tool.is_some();
        self.world.journal().await.into_iter().filter(is_comment).collect()
    }
}

/// Returns what the agent printed: id, exit code and error code of each call.
fn printed(outcome: &Outcome) -> Vec<(String, String, Value)> {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"));
        let said: Value = serde_json::from_str(line["said"].as_str().unwrap()).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        (text("id"), text("code"), said["code"].clone())
    };
    text.lines().map(line).collect()
}

fn outcomes(records: &[JournalLine]) -> Vec<ToolOutcome> {
    records.iter().map(|line| line.record.tool.as_ref().unwrap().outcome).collect()
}

#[tokio::test]
async fn a_killed_control_plane_repeats_no_comment() {
    let mut commented = Commented::beside_a_proxy().await;
    let kill = async |commented: &mut Commented| {
        commented.held().await;
        let pid = Pid::from_raw(commented.up.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(commented.up.death().await, Some(Signal::KILL.as_raw()));
        commented.up = Up::start(commented.sluice()).await;
        commented.go_on().await;
    };
    let running = commented.run();
    let (outcome, ()) = tokio::join!(running, kill(&mut commented));
    let unknown = json!("outcome_unknown");
    let call = |id: &str, code: &str, error: &Value| (id.to_owned(), code.to_owned(), error.clone());
    let expected = [
        call("c1", "1", &unknown),
        call("c1", "1", &unknown),
        call("c1", "1", &unknown),
        call("c2", "0", &Value::Null),
    ];
    assert_eq!(printed(&outcome), expected, "{outcome:?}");
    assert_eq!(commented.comments(), 2, "one of c1, and one of c2, the control");
    let states = |states: &[&str]| states.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        commented.stored().await,
        [("c1", "unknown"), ("c2", "done")].map(|(id, state)| (id.to_owned(), state.to_owned()))
    );
    assert_eq!(commented.states().await, states(&["executing", "unknown", "executing", "done"]));
    let records = commented.records().await;
    let [lost, again, once_more, control] = &outcomes(&records)[..] else { panic!("{records:#?}") };
    assert_eq!([lost, again, once_more], [&ToolOutcome::Unknown; 3]);
    assert_eq!(*control, ToolOutcome::Done);
    commented.up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_killed_proxy_records_its_call_once() {
    let commented = Commented::supervised().await;
    let kill = async {
        commented.held().await;
        commented.up.kill_proxy().await;
        commented.release.notify_one();
        // The call goes on without the proxy.
        let stored = || commented.stored();
        let is_done = |calls: &Vec<(String, String)>| calls.iter().all(|(_, state)| state == "done");
        eventually_within(PATIENCE, "the call is done", stored, is_done).await;
        commented.go_on().await;
    };
    let (outcome, ()) = tokio::join!(commented.run(), kill);
    let called = printed(&outcome);
    let codes: Vec<_> = called.iter().map(|(id, code, _)| (id.as_str(), code.as_str())).collect();
    let expected = [("c1", "1"), ("c1", "0"), ("c1", "0"), ("c2", "0")];
    assert_eq!(codes, expected, "the repeated id is answered from the store: {called:?}");
    assert_eq!(called[0].2, json!("outcome_unknown"), "{called:?}");
    assert_eq!(commented.states().await, ["executing", "done", "executing", "done"]);
    assert_eq!(commented.comments(), 2, "one of c1, and one of c2, the control");
    let records = commented.records().await;
    let interrupted: Vec<_> =
        records.iter().filter(|line| line.record.outcome == record::Outcome::Interrupted).collect();
    assert_eq!((records.len(), interrupted.len()), (4, 1), "{records:#?}");
    commented.up.stop(Signal::TERM).await;
}

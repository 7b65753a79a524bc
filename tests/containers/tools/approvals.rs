//! Tests whole runs with calls of host tools that wait for a person, who decides with `sluice tools` or over the API.

use std::time::Duration;

use harness::{Outcome, Up, World, eventually::eventually_within, served::served};
use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox::{run, shell_agent};

/// Settings by which calls of the clock wait.
const CLOCK: &str = "host_tools = ['core__get_current_time']\n[tools]\napproval = ['core__get_current_time']";
/// Longest wait for a call: the container of its run has to start first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Script that calls the clock, and prints what the agent sees.
const SCRIPT: &str = "cogni-tool exec core__get_current_time '{}' >/tmp/out 2>/tmp/err; code=$?; \
     jq -n --arg out \"$(cat /tmp/out)\" --arg err \"$(cat /tmp/err)\" --arg code $code '{$out, $err, $code}'";

/// Waits for a call that waits, and returns its run and its id.
async fn waiting(world: &World) -> (String, String) {
    let pending = async || {
        let pending = world.sluice().run(&["tools", "pending", "--json"]).await;
        let pending: Value = serde_json::from_str(&pending.stdout).unwrap();
        pending["calls"].as_array().unwrap().first().cloned()
    };
    let call = eventually_within(START_TIMEOUT, "a call waits", pending, Option::is_some).await.unwrap();
    let text = |name: &str| call[name].as_str().unwrap().to_owned();
    assert_eq!((text("tool").as_str(), text("state").as_str()), ("core__get_current_time", "waiting"));
    (text("run_id"), text("call"))
}

/// Returns the report that the agent printed.
fn report(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs the agent, while a person decides with `verdict`.
async fn decided(verdict: &[&str]) -> (Value, ToolOutcome) {
    let world = World::with(&shell_agent(SCRIPT, CLOCK)).await;
    let up = Up::start(world.sluice()).await;
    let person = async {
        let (run_id, call_id) = waiting(&world).await;
        let shown = world.sluice().run(&["runs", "show", &run_id]).await;
        assert!(shown.stdout.contains(&format!("sluice tools approve {run_id} {call_id}")), "{shown:?}");
        let arguments = [&["tools", verdict[0], &run_id, &call_id], &verdict[1..]].concat();
        let first = world.sluice().run(&arguments).await;
        assert_eq!(first.code, Some(0), "{first:?}");
        let second = world.sluice().run(&arguments).await;
        assert_eq!(second.code, Some(1), "{second:?}");
        assert!(second.stderr.contains("does not wait") && second.stderr.contains("sluice tools pending"));
    };
    let (outcome, ()) = tokio::join!(run(&world), person);
    let records = world.records(1).await;
    assert_eq!((records.len(), records[0].record.kind), (1, Kind::Tool), "{records:?}");
    let events = outcome.events();
    let at =
        |is: &dyn Fn(&Value) -> bool| events.iter().position(is).unwrap_or_else(|| panic!("{outcome:?}"));
    let end = if verdict[0] == "approve" { "done" } else { "denied" };
    let shown =
        ["waiting", end].map(|state| at(&|event| event["type"] == "host_tool" && event["state"] == state));
    let last = at(&|event| event["type"] == "assistant_final");
    assert!(shown[0] < shown[1] && shown[1] < last, "{events:#?}");
    let outcome_of_call = records[0].record.tool.as_ref().unwrap().outcome;
    up.stop(Signal::TERM).await;
    (report(&outcome), outcome_of_call)
}

/// The run's own process says so, although `sluice up` executes the call.
#[tokio::test]
async fn a_run_says_that_it_waits_for_an_approval() {
    let world = World::with(&shell_agent(SCRIPT, &format!("{CLOCK}\napproval_timeout = '3s'"))).await;
    let up = Up::start(world.sluice()).await;
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let said = "core__get_current_time waiting; `sluice tools pending` has the command that decides";
    assert!(outcome.stderr.contains(said), "{outcome:?}");
    for said in
        ["no member of the account and no operator decided", "tools.approval_timeout", "sluice tools pending"]
    {
        assert!(outcome.stdout.contains(said), "the agent is told: {outcome:?}");
    }
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn an_approved_call_of_a_run_succeeds() {
    let (report, outcome) = decided(&["approve"]).await;
    assert_eq!((&report["code"], outcome), (&json!("0"), ToolOutcome::Done), "{report}");
}

#[tokio::test]
async fn a_denied_call_of_a_run_exits_with_three() {
    let (report, outcome) = decided(&["deny", "--reason", "not today"]).await;
    assert_eq!((&report["code"], outcome), (&json!("3"), ToolOutcome::Denied), "{report}");
    let error = report["err"].as_str().unwrap();
    assert!(error.contains("approval_denied") && error.contains("not today"), "{report}");
}

#[tokio::test]
async fn a_principal_decides_about_its_own_account() {
    let agent = shell_agent(SCRIPT, CLOCK);
    let (world, up, api) = served("", &format!("{agent}\n")).await;
    let principal = async |name: &str, account: &str, rights: &[&str]| {
        let add = [&["principals", "add", name, "--account", account, "--role"], rights].concat();
        let token = world.sluice().run(&add).await.stdout;
        api.clone().with_header("authorization", &format!("Bearer {}", token.trim()))
    };
    let own = principal("own", "acct-7", &["member"]).await;
    let viewer = principal("viewer", "acct-7", &["viewer"]).await;
    let bound = principal("bound", "acct-7", &["member", "--agent", "test:other"]).await;
    let other = principal("other", "acct-8", &["member"]).await;
    let order = json!({ "agentId": "test:sh", "model": "fake", "input": "q" });
    let ordered = own.post("/api/v1/runs", &order).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let (run_id, call_id) = waiting(&world).await;
    assert_eq!(other.get("/api/v1/approvals").await.json()["approvals"], json!([]));
    for reader in [&viewer, &bound] {
        let listed = reader.get("/api/v1/approvals").await.json();
        assert_eq!(listed["approvals"][0]["callId"], json!(call_id), "{listed}");
    }
    let details = own.get(&format!("/api/v1/runs/{run_id}")).await.json();
    assert_eq!(details["waitingToolCalls"], json!([call_id]), "{details}");
    let path = format!("/api/v1/runs/{run_id}/tools/{call_id}");
    for (caller, path, status) in [
        (&other, format!("{path}/approve"), 404),
        (&other, format!("{path}/deny"), 404),
        (&viewer, format!("{path}/approve"), 403),
        (&bound, format!("{path}/approve"), 403),
        (&bound, format!("{path}/deny"), 403),
        (&own, format!("/api/v1/runs/{run_id}/tools/nothing/approve"), 409),
    ] {
        let refused = caller.post(&path, &json!({})).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
    }
    let approved = own.post(&format!("{path}/approve"), &json!({})).await;
    assert_eq!((approved.status.as_u16(), &approved.json()["state"]), (200, &json!("approved")));
    assert_eq!(approved.json()["decidedBy"], "principal/own");
    let again = own.post(&format!("{path}/deny"), &json!({ "reason": "late" })).await;
    assert_eq!((again.status.as_u16(), &again.json()["code"]), (409, &json!("call_not_waiting")));
    let waited = world.sluice().run(&["runs", "wait", &run_id]).await;
    let tools = format!("/api/v1/runs/{run_id}/tools");
    let listed = viewer.get(&tools).await.json();
    let call = &listed["calls"][0];
    assert_eq!(
        [&call["callId"], &call["state"], &call["decidedBy"], &call["arguments"]],
        [&json!(call_id), &json!("done"), &json!("principal/own"), &json!("{}")],
        "{listed}"
    );
    assert!(call["decidedAt"].is_string() && call["durationMs"].is_u64(), "{listed}");
    let page = viewer.get(&format!("{tools}?limit=1")).await.json();
    assert_eq!((page["calls"].as_array().unwrap().len(), &page["nextCursor"]), (1, &Value::Null));
    assert_eq!(viewer.get(&format!("{tools}?cursor=x")).await.status, 400);
    assert_eq!(other.get(&tools).await.status, 404, "for others the run is absent");
    let events = world.sluice().run(&["runs", "events", &run_id, "--json"]).await.events();
    let states: Vec<_> = events.iter().filter(|event| event["type"] == "host_tool").collect();
    let words: Vec<_> = states.iter().map(|event| event["state"].as_str().unwrap()).collect();
    assert_eq!(words, ["waiting", "approved", "executing", "done"], "{events:#?}");
    assert!(states.iter().all(|event| event["id"] == json!(call_id)), "{states:#?}");
    assert_eq!(serde_json::from_str::<Value>(&waited.stdout).unwrap()["code"], "0", "{waited:?}");
    up.stop(Signal::TERM).await;
}

//! Tests whole runs: an agent in a real container calls host tools with `cogni-tool`, and `sluice up` executes them.

use harness::{Outcome, Up, World, served::served};
use platform_core::{host_tools::ToolOutcome, record::Kind};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox::{run, shell_agent};

/// Setting by which the agent has the clock.
const CLOCK: &str = "host_tools = ['core__get_current_time']";

/// Returns a script that prints standard output, standard error and exit code of `command` as JSON.
fn reporting(command: &str) -> String {
    format!(
        "{command} >/tmp/out 2>/tmp/err; code=$?; \
         jq -n --arg out \"$(cat /tmp/out)\" --arg err \"$(cat /tmp/err)\" --arg code $code '{{$out, $err, $code}}'"
    )
}

/// Returns what the agent printed in a run that has succeeded.
fn report(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the one line of JSON in this part of a report.
fn json_of(report: &Value, part: &str) -> Value {
    let text = report[part].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {report}"))
}

#[tokio::test]
async fn a_granted_tool_gives_a_result() {
    let script = reporting("cogni-tool exec core__get_current_time '{}'");
    let world = World::with(&shell_agent(&script, CLOCK)).await;
    let up = Up::start(world.sluice()).await;
    let report = report(&run(&world).await);
    assert_eq!((&report["code"], &report["err"]), (&json!("0"), &json!("")), "{report}");
    assert!(json_of(&report, "out").is_object(), "{report}");
    let records = world.records(1).await;
    assert_eq!(records.len(), 1, "{records:?}");
    let record = &records[0].record;
    let tool = record.tool.as_ref().unwrap();
    assert_eq!((record.kind, tool.name.as_str()), (Kind::Tool, "core__get_current_time"));
    assert_eq!((tool.outcome, tool.args_sha256.is_some()), (ToolOutcome::Done, true));
    let explained = world.sluice().run(&["tools", "explain", "r1", "--json"]).await;
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    let calls = explained["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{explained}");
    assert_eq!((&calls[0]["tool"], &calls[0]["state"]), (&json!("core__get_current_time"), &json!("done")));
    world.assert_nothing_left().await;
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn granted_tools_are_listed() {
    let script = reporting("{ cogni-tool list --json && echo $COGNI_HOST_TOOLS >&2; }");
    let world = World::with(&shell_agent(&script, CLOCK)).await;
    let up = Up::start(world.sluice()).await;
    let report = report(&run(&world).await);
    assert_eq!(
        (&report["code"], &report["err"]),
        (&json!("0"), &json!("core__get_current_time")),
        "{report}"
    );
    let tools = json_of(&report, "out");
    assert_eq!(tools.as_array().unwrap().len(), 1, "{tools}");
    assert_eq!(
        (&tools[0]["name"], &tools[0]["inputSchema"]["type"]),
        (&json!("core__get_current_time"), &json!("object"))
    );
    up.stop(Signal::TERM).await;
}

/// Agent, account and order each leave it out; the control is the test above.
#[tokio::test]
async fn a_tool_that_is_not_granted_is_denied() {
    let script = reporting("cogni-tool exec core__get_current_time '{}'");
    for (settings, arguments, lacking) in [
        ("host_tools = ['runs__status']".to_owned(), &[][..], "agent"),
        (format!("{CLOCK}\n[accounts.local]\nhost_tools = []"), &[], "account"),
        (
            "host_tools = ['core__get_current_time', 'runs__status']".to_owned(),
            &["--host-tool", "runs__status"],
            "run",
        ),
    ] {
        let world = World::with(&shell_agent(&script, &settings)).await;
        let up = Up::start(world.sluice()).await;
        let run = ["run", "--agent", "test:sh", "--run-id", "r1", "--json"];
        let outcome = world.sluice().run(&[&run, arguments, &["q"]].concat()).await;
        let report = report(&outcome);
        assert_eq!(report["code"], "3", "{lacking}: {report}");
        assert_eq!(json_of(&report, "err")["code"], "policy_denied", "{lacking}: {report}");
        let records = world.records(1).await;
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(
            (records[0].record.kind, records[0].record.tool.as_ref().unwrap().outcome),
            (Kind::Tool, ToolOutcome::Denied)
        );
        let explained = world.sluice().run(&["tools", "explain", "r1", "--json"]).await;
        let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
        let tools = explained["tools"].as_array().unwrap();
        let clock = tools.iter().find(|tool| tool["name"] == "core__get_current_time").unwrap();
        assert_eq!((&clock["allowed"], &clock["lacking"]), (&json!(false), &json!(lacking)));
        assert_eq!(explained["calls"], json!([]), "nothing ran");
        up.stop(Signal::TERM).await;
    }
}

#[tokio::test]
async fn an_order_beyond_the_agents_tools_is_refused() {
    let world = World::with(&shell_agent("true", CLOCK)).await;
    let order = ["run", "--agent", "test:sh", "--host-tool", "runs__status", "--json", "q"];
    let outcome = world.sluice().run(&order).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    for words in ["runs__status", "`host_tools` of test:sh", "core__get_current_time", "tool_not_granted"] {
        assert!(format!("{outcome:?}").contains(words), "{words} is not in {outcome:?}");
    }
}

#[tokio::test]
async fn an_unknown_tool_in_the_configuration_is_named() {
    let world = World::with(&shell_agent("true", "host_tools = ['core__get_curent_time']")).await;
    let outcome = world.sluice().run(&["config", "check"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("did you mean core__get_current_time?"), "{outcome:?}");
    // Control.
    world.reconfigure("core__get_curent_time", "core__get_current_time");
    assert_eq!(world.sluice().run(&["config", "check"]).await.code, Some(0));
}

#[tokio::test]
async fn tools_are_away_without_the_control_plane() {
    let model = "curl -s -o /dev/null -w %{http_code} http://localhost:8080/v1/chat/completions -d '{\"model\":\"fake\",\"messages\":[]}'";
    let script = reporting(&format!("{{ {model}; cogni-tool exec core__get_current_time '{{}}'; }}"));
    let world = World::with(&shell_agent(&script, CLOCK)).await;
    let report = report(&run(&world).await);
    assert_eq!((&report["code"], &report["out"]), (&json!("4"), &json!("200")), "{report}");
    assert_eq!(json_of(&report, "err")["code"], "tools_unavailable", "{report}");
    let kinds: Vec<_> = world.records(2).await.iter().map(|line| line.record.kind).collect();
    assert_eq!(kinds, [Kind::Model, Kind::Tool]);
}

#[tokio::test]
async fn an_operator_tries_a_tool() {
    let world = World::start().await;
    let tried = world.sluice().run(&["tools", "test", "core__get_current_time", "{}"]).await;
    assert_eq!(tried.code, Some(0), "{tried:?}");
    assert!(serde_json::from_str::<Value>(&tried.stdout).unwrap().is_object());
    for (tool, arguments, code) in [
        ("core__get_current_time", r#"{"x": 1}"#, "invalid_arguments"),
        ("core__nothing", "{}", "tool_unknown"),
    ] {
        let failed = world.sluice().run(&["tools", "test", tool, arguments]).await;
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.stderr.contains(code) && failed.stderr.contains("sluice tools ls"), "{failed:?}");
    }
    let listed = world.sluice().run(&["tools", "ls", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let clock = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "core__get_current_time")
        .unwrap();
    assert_eq!((&clock["effect"], &clock["accounts"]["allowed"]), (&json!("reads"), &json!(["*"])));
}

#[tokio::test]
async fn an_application_orders_fewer_tools() {
    let script = "echo ${COGNI_HOST_TOOLS-none}";
    let agent = shell_agent(script, "host_tools = ['core__get_current_time', 'runs__status']");
    let (world, up, api) =
        served("", &format!("{agent}[accounts.acct-7]\nhost_tools = ['runs__status']\n")).await;
    let token = world.sluice().run(&["principals", "add", "app", "--account", "acct-7"]).await.stdout;
    let app = api.with_header("authorization", &format!("Bearer {}", token.trim()));
    let order =
        |tools: Value| json!({ "agentId": "test:sh", "model": "fake", "input": "q", "hostTools": tools });
    for tools in [json!(["core__get_current_time"]), json!(["runs__status", "repo_refresh"])] {
        let refused = app.post("/api/v1/runs", &order(tools)).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["code"]),
            (403, &json!("tool_not_granted")),
            "{}",
            refused.text()
        );
    }
    for (tools, granted) in
        [(json!(null), "runs__status"), (json!(["runs__status"]), "runs__status"), (json!([]), "none")]
    {
        let ordered = app.post("/api/v1/runs", &order(tools)).await;
        assert_eq!(ordered.status, 201, "{}", ordered.text());
        let run_id = ordered.json()["runId"].as_str().unwrap().to_owned();
        let waited = world.sluice().run(&["runs", "wait", &run_id]).await;
        assert_eq!(waited.stdout.trim(), granted, "{waited:?}");
    }
    up.stop(Signal::TERM).await;
}

//! Tests agents that report their events themselves, with `protocol = "events"`.

use harness::{
    Outcome, Up, World,
    eventually::eventually_within,
    shell_agents::{prints, reporting_agent},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::events::{Follower, asks, counts_on, events, kill, numbers, words};
use crate::{
    recovery::survival::{LEASE, PATIENCE, let_go, order},
    sandbox::run,
};

fn reported() -> [Value; 5] {
    [
        json!({ "type": "text", "text": "Let me look." }),
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": { "command": "ls -la" } }),
        json!({ "type": "tool_result", "id": "c1", "result": "one\ntwo", "is_error": true }),
        json!({ "type": "usage", "input_tokens": 7, "output_tokens": 3, "cached_tokens": 1 }),
        json!({ "type": "result", "text": "the answer" }),
    ]
}

#[tokio::test]
async fn an_agents_own_events_are_stored() {
    let script = format!("{}; echo not an event; {}", asks("fake-tools"), prints(&reported()));
    let world = World::with(&reporting_agent(&script, "")).await;
    let outcome = run(&world).await;
    assert_eq!((outcome.code, &outcome.result()["text"]), (Some(0), &json!("the answer")), "{outcome:?}");
    let all = events(&world, &["r1"]).await;
    let kinds = [
        ["preparing", "starting", "running", "log", "progress", "tool_call", "tool_result"].as_slice(),
        &["agent_usage", "settling", "assistant_final", "usage_report", "done"],
    ];
    assert_eq!(words(&all), kinds.concat(), "the tap's tool call is left out: {all:#?}");
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>());
    let field = |kind: &str, name: &str| {
        all.iter().find(|event| event["type"] == kind).map_or(Value::Null, |event| event[name].clone())
    };
    assert_eq!(field("log", "text"), "not an event\n");
    assert_eq!(field("progress", "text"), "Let me look.");
    assert_eq!(field("tool_call", "arguments"), r#"{"command":"ls -la"}"#);
    assert_eq!(
        (field("tool_result", "result"), field("tool_result", "is_error")),
        (json!("one\ntwo"), json!(true))
    );
    assert_eq!(
        (field("agent_usage", "input_tokens"), field("agent_usage", "cached_tokens")),
        (json!(7), json!(1))
    );
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn tool_calls_are_shown_to_a_person() {
    let hostile =
        json!({ "type": "tool_call", "id": "c2", "name": "bash", "arguments": { "command": "\u{1b}[2Jx" } });
    let script = prints(&[[hostile].as_slice(), &reported()].concat());
    let world = World::with(&reporting_agent(&script, "")).await;
    let shown =
        world.sluice().on_terminal(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]).await.text();
    for line in ["· bash  ls -la", "· failed: one  (+1)", "· bash  x", "the answer"] {
        assert!(shown.contains(line), "{line} is not in {shown:?}");
    }
    assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
    let listed = world.sluice().on_terminal(&["runs", "events", "r1"]).await.text();
    for line in ["tool_call       bash  ls -la", "tool_error      one  (+1)", "7 tokens in, 3 out"] {
        assert!(listed.contains(line), "{line} is not in {listed:?}");
    }
    // In a pipe, only the answer is printed.
    let piped = world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("the answer\n", ""), "{piped:?}");
}

#[tokio::test]
async fn a_reported_failure_is_the_runs_failure() {
    let error = json!({ "type": "error", "code": "not_logged_in", "message": "no key" });
    for (script, code, message) in [
        (format!("{} exit 1", prints(&[error])), "container_failed", "not_logged_in: no key"),
        (prints(&reported()[..2]), "container_failed", "stdout has no line with the result"),
    ] {
        let world = World::with(&reporting_agent(&script, "")).await;
        let outcome = run(&world).await;
        let failure = &outcome.result()["error"];
        assert_eq!((outcome.code, &failure["code"]), (Some(1), &json!(code)), "{outcome:?}");
        assert!(failure["message"].as_str().unwrap().starts_with(message), "{failure}");
    }
}

/// Reports a tool call about 30 times a second, each in two writes: a kill hits the middle of a line.
const REPORTS: &str = r#"n=0; until [ -e go ]; do n=$((n+1))
    printf '{"type":"tool_call","id":"c%d","name":"count",' $n; sleep 0.03; printf '"arguments":%d}\n' $n
    echo $n >counted
done; echo '{"type":"result","text":"'$n'"}'"#;

#[tokio::test]
async fn each_reported_event_is_stored_once() {
    let agent = reporting_agent(REPORTS, "run_timeout = '60s'");
    let mut world = World::with(&format!("{agent}{LEASE}")).await;
    assert!(world.stop_proxy().await);
    let mut up = Up::start(world.sluice()).await;
    order(&world, "r1", "test:sh").await;
    let mut follower = Follower::start(&world, &["runs", "events", "-f", "r1"]);
    let is_call = |event: &&Value| event["type"] == "tool_call";
    let mut seen = Vec::new();
    while seen.iter().filter(is_call).count() < 20 {
        seen.push(follower.next().await);
    }
    kill(up.child.id().unwrap());
    up.child.wait().await.unwrap();
    counts_on(&world, "r1").await;
    let next = Up::start(world.sluice()).await;
    let taken = |shown: &Outcome| shown.result()["epoch"] == 2;
    let show = || world.sluice().run(&["runs", "show", "r1", "--json"]);
    eventually_within(PATIENCE, "it is taken over", show, taken).await;
    let_go(&world, "r1").await;
    let (rest, code) = follower.rest().await;
    seen.extend(rest);
    assert_eq!((words(&seen).last(), code), (Some(&"done"), Some(0)));
    let answer = seen.iter().find(|event| event["type"] == "assistant_final").unwrap();
    let last: u64 = answer["content"].as_str().unwrap().parse().unwrap();
    let counted: Vec<_> = seen.iter().filter(is_call).map(|event| event["arguments"].clone()).collect();
    let expected: Vec<_> = (1..=last).map(|n| json!(n.to_string())).collect();
    assert!(last > 35, "{last} are too few");
    assert_eq!(counted, expected);
    assert!(!words(&seen).contains(&"log"), "no half line is taken for output: {seen:#?}");
    next.stop(Signal::TERM).await;
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

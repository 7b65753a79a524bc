//! Tests the log of `sluice up`: one line when an agent starts, one when its run ends, and nothing of what was said.

use std::{fs, path::PathBuf};

use harness::{Up, World, eventually::eventually_within};
use runner_model::failpoint::Point;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, order},
    sandbox::shell_agent,
};

const STARTED: &str = "sandbox.execution.started";
const COMPLETE: &str = "sandbox.execution.complete";
const PROMPT: &str = "a-question-of-nobody-elses-concern";

/// Starts a world without a proxy: `sluice up` starts one.
async fn world(agent: &str) -> World {
    let mut world = World::with(&format!("{agent}{LEASE}")).await;
    assert!(world.stop_proxy().await);
    world
}

fn log(world: &World) -> PathBuf {
    world.path().join("up.log")
}

/// Returns the lines of executions among those of `text`.
fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "sandbox").collect()
}

/// Counts the lines that report `run` as started, and those that report it as over.
fn told(lines: &[Value], run: &str) -> (usize, usize) {
    let of = |message: &str| {
        lines.iter().filter(|line| line["message"] == message && line["run_id"] == run).count()
    };
    (of(STARTED), of(COMPLETE))
}

/// Returns a line without its time, level, target and durations.
fn said(line: &Value) -> Value {
    let mut line = line.clone();
    for word in ["timestamp", "level", "target", "start_ms", "duration_ms"] {
        assert!(line.as_object_mut().unwrap().remove(word).is_some() || word.ends_with("_ms"), "{line}");
    }
    line
}

/// The log has no word of questions and answers.
#[tokio::test]
async fn a_runs_start_and_end_are_logged() {
    let script =
        "echo an-answer-of-nobody-elses-concern; exit $(( $(cat .cogni/messages.json | wc -c) < 90 ))";
    let world = world(&shell_agent(script, "")).await;
    let up = Up::start(world.sluice().log_to(&log(&world))).await;
    let ask = async |run: &str, agent: &str, question: &str| {
        let words = ["run", "--detach", "--run-id", run, "--agent", agent, "--account", "acct-7", question];
        assert_eq!(world.sluice().run(&words).await.code, Some(0));
        ended(&world, run).await
    };
    let called = ask("calls", "sandbox:agent", PROMPT).await;
    ask("fails", "test:sh", "q").await;
    ask("prints", "test:sh", &format!("{PROMPT}{}", ".".repeat(100))).await;
    up.stop(Signal::TERM).await;

    let text = fs::read_to_string(log(&world)).unwrap();
    assert!(!text.contains("nobody-elses-concern"), "{text}");
    let lines = lines(&text);
    assert_eq!(lines.len(), 6, "{lines:#?}");
    let both = |message: &str, run: &str, agent: &str| {
        json!({
            "message": message, "run_id": run, "attempt": 0, "epoch": 1, "agent_variant": agent,
            "execution_mode": "ephemeral", "account": "acct-7", "model": "fake",
        })
    };
    let with = |mut line: Value, more: Value| {
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let tokens = &called["usage"]["tokens"];
    let used = json!({
        "outcome": "succeeded", "exit_code": 0, "start": "cold", "calls": 1, "refused_calls": 0,
        "input_tokens": tokens["input"], "output_tokens": tokens["output"],
    });
    assert_eq!(said(&lines[0]), both(STARTED, "calls", "sandbox:agent"));
    assert_eq!(said(&lines[1]), with(both(COMPLETE, "calls", "sandbox:agent"), used));
    let failed = json!({
        "outcome": "failed", "error_code": "container_failed", "exit_code": 1, "start": "cold", "calls": 0, "refused_calls": 0,
        "input_tokens": 0, "output_tokens": 0,
    });
    assert_eq!(said(&lines[3]), with(both(COMPLETE, "fails", "test:sh"), failed));
    let took = called["ended_ms"].as_u64().unwrap() - called["created_ms"].as_u64().unwrap();
    assert_eq!(lines[1]["duration_ms"], took);
    assert!(lines[1]["start_ms"].as_u64().unwrap() <= took, "{lines:#?}");
}

#[tokio::test]
async fn a_run_by_hand_is_logged_on_request() {
    let world = World::with(&shell_agent("echo done", "")).await;
    let run = ["run", "--agent", "test:sh", "--run-id", "r1", "q"];
    let outcome = world.sluice().env("SLUICE_LOG", "sandbox=info").run(&run).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "done\n"), "{outcome:?}");
    assert_eq!(told(&lines(&outcome.stderr), "r1"), (1, 1), "{outcome:?}");
    let again = world.sluice().env("SLUICE_LOG", "sandbox=info").run(&run).await;
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "it was told, and is not executed again");
}

#[tokio::test]
async fn a_run_is_logged_once_whatever_is_killed() {
    let world = world("").await;
    for point in [Point::Booked, Point::RunStored, Point::Started, Point::SettleStored, Point::Finished] {
        let run = format!("r-{}", point.name());
        let armed = world.sluice().env("SLUICE_FAILPOINT", &format!("{}:kill", point.name()));
        let mut up = Up::start(armed.log_to(&log(&world))).await;
        order(&world, &run, "sandbox:agent").await;
        assert_eq!(up.death().await, Some(9), "{} was reached", point.name());
        let next = Up::start(world.sluice().log_to(&log(&world))).await;
        assert_eq!(ended(&world, &run).await["state"], "succeeded");
        eventually_within(PATIENCE, "nothing is left", || world.left(), Vec::is_empty).await;
        next.stop(Signal::TERM).await;
        // It may be gone already, which is as good.
        up.kill_proxy().await;
        let lines = lines(&fs::read_to_string(log(&world)).unwrap());
        assert_eq!(told(&lines, &run), (1, 1), "{}: {lines:#?}", point.name());
    }
}

//! Tests the events of a run as a follower reads them: in order, and from any point. It does not matter which process
//! works on the run and what is restarted.

use std::fs;

use harness::{Outcome, Up, World, eventually, eventually::eventually_within, store_lock::StoreLock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
};

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, let_go, order, state},
    sandbox::{run, shell_agent, world_with},
};

/// Returns a script that asks the model for a stream and discards the answer.
pub(super) fn asks(model: &str) -> String {
    format!(
        r#"curl --silent --output /dev/null http://localhost:8080/v1/chat/completions --json '
        {{ "model": "{model}", "stream": true, "messages": [{{ "role": "user", "content": "q" }}] }}'"#
    )
}

pub(super) async fn events(world: &World, more: &[&str]) -> Vec<Value> {
    let outcome = world.sluice().run(&[&["runs", "events"], more].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.events()
}

async fn logs(world: &World, more: &[&str]) -> Outcome {
    let outcome = world.sluice().run(&[&["runs", "logs"], more].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome
}

/// Returns one word for each event: its phase, or its type.
pub(super) fn words(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["phase"].as_str().or(event["type"].as_str()).unwrap()).collect()
}

/// Returns the numbers of the stored events.
pub(super) fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

/// A program that follows a run, and what it prints.
pub(super) struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    pub(super) fn start(world: &World, arguments: &[&str]) -> Self {
        let mut child = world.sluice().spawn(arguments);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    pub(super) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a line");
        serde_json::from_str(&line.unwrap().expect("more lines")).unwrap()
    }

    /// Returns all events that are still to come, with the exit code.
    pub(super) async fn rest(mut self) -> (Vec<Value>, Option<i32>) {
        let mut rest = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        (rest, self.child.wait().await.unwrap().code())
    }
}

#[tokio::test]
async fn events_can_be_read_from_any_point() {
    let script = format!("echo before; {}; echo after >&2; sleep 0.5; echo end", asks("fake-tools"));
    let world = world_with(&script).await;
    assert_eq!(run(&world).await.code, Some(0));
    let all = events(&world, &["r1"]).await;
    let mut kinds = words(&all);
    // Timing decides whether the text in between is one event or two.
    kinds.retain(|kind| *kind != "tool");
    kinds.dedup();
    let expected =
        ["preparing", "starting", "running", "log", "settling", "assistant_final", "usage_report", "done"];
    assert_eq!(kinds, expected, "{all:#?}");
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>(), "no number is left out");
    let tools: Vec<_> = all.iter().filter(|event| event["type"] == "tool").collect();
    assert!(tools.len() == 1 && tools[0]["name"] == "get_weather", "{tools:?}");
    for after in 0..=all.len() {
        let rest = events(&world, &["--after", &after.to_string(), "-f", "r1"]).await;
        assert_eq!(rest, all[after..], "after {after}");
    }
    let printed = logs(&world, &["r1"]).await;
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("before\nend\n", "after\n"));
    let only = logs(&world, &["--stderr", "r1"]).await;
    assert_eq!((only.stdout.as_str(), only.stderr.as_str()), ("", "after\n"));
    let unknown = world.sluice().run(&["runs", "events", "r9"]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("no run r9"), "{unknown:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_that_fails_ends_with_its_error() {
    let world = world_with("echo why >&2; exit 3").await;
    assert_eq!(run(&world).await.code, Some(1));
    let all = events(&world, &["-f", "r1"]).await;
    let last = all.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("container_failed")), "{last}");
    assert!(last["message"].as_str().unwrap().contains("why"), "{last}");
}

/// The bytes that are cut are counted.
#[tokio::test]
async fn long_output_is_stored_as_head_and_tail() {
    const SENT: u64 = 3_000_000;
    let world =
        world_with(&format!("echo BEGIN; head -c {SENT} /dev/zero | tr '\\0' x; echo; echo END")).await;
    assert_eq!(run(&world).await.code, Some(0));
    let printed = logs(&world, &["r1"]).await.stdout;
    let (head, rest) = printed.split_once("\n[… ").unwrap();
    let (cut, tail) = rest.split_once(" bytes cut …]\n").unwrap();
    assert!(head.starts_with("BEGIN\nxxx") && tail.ends_with("xxx\nEND\n"));
    let whole = SENT + "BEGIN\n\nEND\n".len() as u64;
    assert_eq!(head.len() as u64 + cut.parse::<u64>().unwrap() + tail.len() as u64, whole);
    // The limit counts bytes as stored, in which a line feed has two.
    let half = 256 << 10;
    assert!(
        (half - 8..half + (16 << 10)).contains(&head.len()) && (half - 8..=half).contains(&tail.len()),
        "{} {}",
        head.len(),
        tail.len()
    );
}

/// Script of an agent that counts until it is released, so that a test can check that each number is stored once.
const COUNTS: &str =
    "n=0; until [ -e go ]; do n=$((n+1)); echo $n; echo $n >counted; sleep 0.02; done; echo last $n";

/// Returns the text of all logs.
fn printed(events: &[Value]) -> String {
    events
        .iter()
        .filter(|event| event["type"] == "log")
        .map(|event| event["text"].as_str().unwrap())
        .collect()
}

pub(super) fn kill(pid: u32) {
    // It may be gone already, which is as good.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).ok();
}

/// Waits until an agent that writes its count to `counted` has gone on, while no worker listens.
pub(super) async fn counts_on(world: &World, run: &str) {
    let file = world.workspace(run).await.join("counted");
    let count = || async { fs::read_to_string(&file).unwrap().trim().parse().unwrap_or(0) };
    let before: u64 = count().await;
    eventually("the agent goes on", count, |count| *count > before + 20).await;
}

/// Worker and proxy are killed meanwhile.
#[tokio::test]
async fn a_follower_sees_each_event_once() {
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(COUNTS, "run_timeout = '60s'"))).await;
    assert!(world.stop_proxy().await);
    let mut up = Up::start(world.sluice()).await;
    order(&world, "r1", "test:sh").await;
    let mut follower = Follower::start(&world, &["runs", "events", "-f", "r1"]);
    let lines = world.sluice().spawn(&["runs", "logs", "-f", "r1"]);
    let mut seen = Vec::new();
    while !printed(&seen).contains("\n20\n") {
        seen.push(follower.next().await);
    }
    kill(up.child.id().unwrap());
    up.child.wait().await.unwrap();
    counts_on(&world, "r1").await;
    let next = Up::start(world.sluice()).await;
    let taken = |shown: &Outcome| shown.result()["epoch"] == 2;
    let show = || world.sluice().run(&["runs", "show", "r1", "--json"]);
    eventually_within(PATIENCE, "it is taken over", show, taken).await;
    kill(up.proxy_pid);
    let back = || async { world.control.health().await.map_or(up.proxy_pid, |health| health.pid) };
    let proxy = eventually_within(PATIENCE, "the proxy is back", back, |pid| *pid != up.proxy_pid).await;
    let from = seen.last().unwrap()["seq"].as_u64().unwrap();
    let later = Follower::start(&world, &["runs", "events", "-f", "--after", &from.to_string(), "r1"]);
    let_go(&world, "r1").await;
    let (rest, code) = follower.rest().await;
    assert_eq!(
        (later.rest().await, code),
        ((rest.clone(), Some(0)), Some(0)),
        "and from a point, exactly the rest"
    );
    seen.extend(rest);
    assert_eq!(numbers(&seen), (1..=seen.len() as u64).collect::<Vec<_>>());
    let all = printed(&seen);
    let last = all.lines().last().unwrap().strip_prefix("last ").unwrap().parse::<u64>().unwrap();
    let expected: String = (1..=last).map(|n| format!("{n}\n")).collect();
    assert_eq!(all, format!("{expected}last {last}\n"));
    assert_eq!(String::from_utf8(lines.wait_with_output().await.unwrap().stdout).unwrap(), all);
    assert_eq!(words(&seen).last(), Some(&"done"));
    next.stop(Signal::TERM).await;
    kill(proxy);
    world.assert_nothing_left().await;
}

/// Several workers have the run, one after the other.
#[tokio::test]
async fn a_follower_sees_each_tool_call_once() {
    let script = format!(
        "until [ -e go ]; do {}; echo asked; sleep 0.1; done; {}",
        asks("fake-tools"),
        asks("fake-tools")
    );
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(&script, "run_timeout = '60s'"))).await;
    assert!(world.stop_proxy().await);
    let mut up = Up::start(world.sluice()).await;
    order(&world, "r1", "test:sh").await;
    let mut follower = Follower::start(&world, &["runs", "events", "-f", "r1"]);
    let is_tool = |event: &&Value| event["type"] == "tool";
    let mut seen = Vec::new();
    while seen.iter().filter(is_tool).count() < 3 {
        seen.push(follower.next().await);
    }
    kill(up.child.id().unwrap());
    up.child.wait().await.unwrap();
    // The agent goes on asking while no worker has its run.
    let calls = || async { world.records(1).await.len() };
    let before = calls().await;
    eventually_within(PATIENCE, "it asks", calls, |calls| *calls > before + 3).await;
    let next = Up::start(world.sluice()).await;
    let taken = |shown: &Outcome| shown.result()["epoch"] == 2;
    let show = || world.sluice().run(&["runs", "show", "r1", "--json"]);
    eventually_within(PATIENCE, "it is taken over", show, taken).await;
    let_go(&world, "r1").await;
    let (rest, code) = follower.rest().await;
    seen.extend(rest);
    assert_eq!((words(&seen).last(), code), (Some(&"done"), Some(0)));
    assert_eq!(numbers(&seen), (1..=seen.len() as u64).collect::<Vec<_>>(), "all of it is stored, once");
    let used = seen.iter().find(|event| event["type"] == "usage_report").unwrap();
    let tools = seen.iter().filter(is_tool).count() as u64;
    assert!(tools > 7 && used["calls"] == tools, "{tools} tools of {used}");
    assert_eq!(events(&world, &["r1"]).await, seen);
    next.stop(Signal::TERM).await;
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn output_is_exact_after_a_takeover() {
    // Docker's logs are in pieces of 16 KiB, which break lines and letters in two.
    let line = "head -c 50001 /dev/zero | sed 's/\\x0/\u{e4}/g'; echo";
    let script = format!(
        "{line}; echo short; {line}; printf 'no end'; until [ -e go ]; do sleep 0.1; done; echo '!'; {line}"
    );
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(&script, "run_timeout = '60s'"))).await;
    assert!(world.stop_proxy().await);
    // Of the first worker nothing is stored: it dies too soon.
    let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", "started:kill")).await;
    order(&world, "r1", "test:sh").await;
    up.child.wait().await.unwrap();
    let next = Up::start(world.sluice()).await;
    let_go(&world, "r1").await;
    let record = ended(&world, "r1").await;
    let long = "\u{e4}".repeat(50001);
    let expected = format!("{long}\nshort\n{long}\nno end!\n{long}");
    assert!(record["answer"].as_str() == Some(&expected[..256 << 10]), "the answer is not what was printed");
    let stored = logs(&world, &["r1"]).await.stdout;
    assert!(stored.trim_end_matches('\n') == expected, "the log is not what was printed");
    next.stop(Signal::TERM).await;
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

/// The agent itself answers only at its end.
#[tokio::test]
async fn progress_shows_what_the_model_writes() {
    let world = world_with(&format!("{}; echo the answer", asks("fake-gap100ms"))).await;
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
    let look = || async { world.sluice().run(&["runs", "show", "r1"]).await.code };
    eventually_within(PATIENCE, "it is there", look, |code| *code == Some(0)).await;
    let mut follower = Follower::start(&world, &["runs", "events", "-f", "r1"]);
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Value| event["type"] == "progress") {
        seen.push(follower.next().await);
    }
    assert_eq!(state(&world, "r1").await, "running", "while it is written");
    let (rest, code) = follower.rest().await;
    seen.extend(rest);
    let said: String = seen
        .iter()
        .filter_map(|event| event["text"].as_str().filter(|_| event["type"] == "progress"))
        .collect();
    assert_eq!(said, "Hello from the scripted upstream, it is a lovely day.");
    assert!(
        seen.iter().all(|event| {
            let is_live = event["type"] == "progress";
            event["seq"].is_u64() != is_live && (event.get("live") == Some(&json!(true))) == is_live
        }),
        "live text has no number, and says what it is: {seen:#?}"
    );
    assert!(!words(&seen).contains(&"text_delta"), "its agent does not say that this is the answer");
    let answer = seen.iter().find(|event| event["type"] == "assistant_final").unwrap();
    assert_eq!((&answer["content"], code), (&json!("the answer"), Some(0)));
    // The command that runs it receives the same.
    let own = Outcome::from(child.wait_with_output().await.unwrap());
    assert!(own.events().iter().any(|event| event["type"] == "progress"), "{own:?}");

    // A late follower receives the stored events and the end.
    let late = events(&world, &["-f", "r1"]).await;
    assert_eq!(numbers(&late), (1..=late.len() as u64).collect::<Vec<_>>(), "nothing of it is stored");
}

#[tokio::test]
async fn a_follower_that_does_not_read_delays_no_run() {
    const WORDS: u64 = 20_000;
    let script =
        format!("{}; until [ -e go ]; do sleep 0.1; done; seq 100000", asks(&format!("fake-words{WORDS}")));
    let world = World::with(&shell_agent(&script, "run_timeout = '60s'")).await;
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
    let look = || async { world.sluice().run(&["runs", "show", "r1"]).await.code };
    eventually_within(PATIENCE, "it is there", look, |code| *code == Some(0)).await;
    // No process reads the output of these commands, nor this tap.
    let deaf: Vec<_> = (0..4).map(|_| world.sluice().spawn(&["runs", "events", "-f", "r1"])).collect();
    let mut late = Follower::start(&world, &["runs", "events", "-f", "r1"]);
    let run = platform_core::id::RunId::parse("r1").unwrap();
    let registered = || async { world.control.run(&run).await.is_ok() };
    eventually_within(PATIENCE, "it is registered", registered, |there| *there).await;
    let tap = world.control.tap(&run).await;
    // Before it ends, the whole answer has streamed by.
    world.records(1).await;
    let metrics = world.sluice().run(&["metrics"]).await.stdout;
    let held = metrics.lines().find_map(|line| line.strip_prefix("sluicegate_tap_bytes ")).unwrap();
    let held: f64 = held.parse().unwrap();
    assert!(held > 100_000.0 && held <= f64::from(256 << 10), "{held} bytes are held");
    // This follower does read: it missed pieces, receives their number, and has the others.
    let (mut seen, mut missed, mut pieces) = (Vec::new(), 0, 0);
    while missed + pieces < WORDS {
        let event = late.next().await;
        // Pieces that the run's worker has missed are stored, and of no interest here.
        let is_ours = event["type"] == "missed" && event["live"] == true;
        missed += event["count"].as_u64().filter(|_| is_ours).unwrap_or_default();
        pieces += u64::from(event["type"] == "progress");
        seen.push(event);
    }
    assert!(missed > 0 && missed + pieces == WORDS, "{missed} missed and {pieces} told of {WORDS}");
    let_go(&world, "r1").await;
    let own = Outcome::from(child.wait_with_output().await.unwrap());
    assert_eq!(own.code, Some(0));
    drop(tap);
    let (rest, code) = late.rest().await;
    seen.extend(rest);
    assert_eq!((words(&seen).last(), code), (Some(&"done"), Some(0)));
    assert_eq!(numbers(&seen), (1..=numbers(&seen).len() as u64).collect::<Vec<_>>());
    for mut deaf in deaf {
        deaf.kill().await.unwrap();
    }
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_blocked_store_delays_no_agent_or_follower() {
    let world = world_with(COUNTS).await;
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"];
    let mut run = Follower::start(&world, &arguments);
    let mut seen = vec![run.next().await];
    while !printed(&seen).contains("\n5\n") {
        seen.push(run.next().await);
    }
    let lock = StoreLock::take(&world).await;
    let before = printed(&seen).lines().last().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
    while !printed(&seen).contains(&format!("\n{}\n", before + 100)) {
        seen.push(run.next().await);
    }
    let stored = printed(&events(&world, &["r1"]).await);
    assert!(!stored.contains(&format!("\n{}\n", before + 90)), "control: the store had it all the same");
    lock.release().await;
    let_go(&world, "r1").await;
    let (rest, code) = run.rest().await;
    seen.extend(rest);
    assert_eq!(code, Some(0));
    let all = events(&world, &["r1"]).await;
    assert_eq!(printed(&all), printed(&seen), "and now it has everything, once");
    world.assert_nothing_left().await;
}

/// Returns the most memory that `sluice run` has had, in KiB, with an agent that runs `script`.
async fn most_memory(script: &str, output: &str) -> (u64, Value, World) {
    let world = World::with(&shell_agent(
        script,
        &format!("run_timeout = '110s'\noutput_capture_limit = '{output}'"),
    ))
    .await;
    let most = harness::output::most_memory(&world, "test:sh").await;
    let record = ended(&world, "r1").await;
    (most, record, world)
}

/// The output is counted to the byte.
#[tokio::test]
async fn a_gigabyte_of_output_takes_no_memory() {
    const SENT: u64 = 1 << 30;
    const GROWTH: u64 = 32 << 10;
    let quiet = most_memory("true", "2 MiB").await.0;
    let script = format!("echo BEGIN; head -c {SENT} /dev/zero | tr '\\0' x; echo; echo END");
    let (most, record, world) = most_memory(&script, "2 MiB").await;
    println!("{quiet} KiB without output, {most} KiB with a gigabyte of it");
    assert_eq!(record["state"], "succeeded", "{record:#}");
    assert!(most < quiet + GROWTH, "grew from {quiet} to {most} KiB");
    let all = events(&world, &["r1"]).await;
    let cut: u64 = all
        .iter()
        .filter(|event| event["type"] == "log_cut")
        .map(|event| event["bytes"].as_u64().unwrap())
        .sum();
    let kept = printed(&all);
    assert_eq!(kept.len() as u64 + cut, SENT + "BEGIN\n\nEND\n".len() as u64);
    assert!(kept.starts_with("BEGIN\nx") && kept.ends_with("x\nEND\n"));

    // Control: an agent that may keep more than that makes it grow by more.
    let script = "head -c 100000000 /dev/zero | tr '\\0' x";
    let kept = most_memory(script, "100 MiB").await.0;
    assert!(kept > quiet + GROWTH, "{kept} KiB: what is measured does not tell");
}

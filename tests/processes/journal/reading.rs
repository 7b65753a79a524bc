//! Tests the readers of the journal: over rotations and restarts, at their own pace, and with the records kept for
//! them.

use std::{fs, path::PathBuf};

use harness::{Run, World, eventually, lines::Lines};
use http::{Method, StatusCode};
use platform_core::{
    control::{Consumer, Cursor, JournalState},
    record::{JournalLine, Outcome},
};
use platform_runtime::task;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Files of some thirty lines.
const SMALL: &str = "[journal]\nsegment_size = '20 KiB'";
/// Files of a line or two, and space for some twenty.
const TIGHT: &str = "[journal]\nsegment_size = '1 KiB'\ndisk_budget = '16 KiB'";
const CALLS: usize = 240;

pub(super) fn segments(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path().join("state/journal")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    paths.sort();
    paths
}

/// Makes calls from four clients at once.
pub(super) async fn load(run: &Run, calls: usize) {
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let agent = run.agent.clone();
            task::spawn("caller", async move {
                for _ in 0..calls / 4 {
                    assert_eq!(agent.chat("fake").await.status, 200);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Reads on from `cursor` until line `last`, as a reader that keeps a cursor does.
async fn read_on(world: &World, journal: &str, seen: &mut Vec<u64>, last: u64) {
    let after = seen.last().copied().unwrap_or_default();
    let path = format!("/v1/journal?after={after}&journal={journal}&follow");
    let mut lines = Lines::of(world.control.follow(&path).await);
    while seen.last().copied().unwrap_or_default() < last {
        seen.push(lines.next().await.unwrap()["seq"].as_u64().unwrap());
    }
}

/// Files are rotated and the proxy is restarted meanwhile.
#[tokio::test]
async fn a_follower_gets_each_line_once() {
    let mut world = World::with(SMALL).await;
    let journal = world.control.health().await.unwrap().journal_id;
    let mut seen = Vec::new();
    for round in 1..=3 {
        let run = world.run(&format!("r{round}"), "acct-1").await;
        let last = (CALLS * round) as u64;
        tokio::join!(load(&run, CALLS), read_on(&world, &journal, &mut seen, last));
        if round == 1 {
            assert!(world.stop_proxy().await);
        } else {
            world.kill_proxy().await;
        }
        world.start_proxy().await;
    }
    assert_eq!(seen, (1..=(3 * CALLS) as u64).collect::<Vec<_>>());
    assert!(segments(&world).len() > 10, "{:?}", segments(&world));
    assert_chained(&segments(&world), 3 * CALLS);
}

/// Asserts that the chain goes on from file to file.
fn assert_chained(segments: &[PathBuf], count: usize) {
    let text: String = segments.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut before = "0".repeat(64);
    for line in text.lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["prev"], before);
        before = hash(line);
    }
    assert_eq!(text.lines().count(), count);
}

fn hash(line: &str) -> String {
    Sha256::digest(line.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn ask(world: &World, method: Method, path: &str, body: String) -> (StatusCode, Value) {
    let answer = world.control.send(method, path, body).await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_wrong_journal_and_removed_lines_are_named() {
    let world = World::with(TIGHT).await;
    let run = world.run("r1", "acct-1").await;
    load(&run, 60).await;
    let id = world.control.health().await.unwrap().journal_id;
    let (status, problem) =
        ask(&world, Method::GET, "/v1/journal?after=1&journal=other", String::new()).await;
    assert_eq!((status, &problem["error"]["code"]), (StatusCode::CONFLICT, &json!("journal_changed")));
    assert!(problem["error"]["message"].as_str().unwrap().contains(&id), "{problem}");
    let gone = || async { !world.journal_file().exists() };
    eventually("the first file is removed", gone, |gone| *gone).await;
    // More of them may go while it is looked.
    let look = || async {
        let first = format!("/v1/journal?after=0&journal={id}");
        let before = oldest(&world);
        (before, ask(&world, Method::GET, &first, String::new()).await, oldest(&world))
    };
    let (oldest, (status, problem), _) =
        eventually("no file goes meanwhile", look, |(before, _, after)| before == after).await;
    assert_eq!((status, &problem["error"]["code"]), (StatusCode::GONE, &json!("journal_removed")));
    assert!(problem["error"]["message"].as_str().unwrap().ends_with(&format!(" {oldest}")), "{problem}");
}

/// Returns the number of the oldest line that is kept, by the name of its file.
fn oldest(world: &World) -> u64 {
    segments(world)[0].file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

/// Returns the cursor of line `seq`.
async fn cursor(world: &World, seq: u64) -> Cursor {
    let answer =
        world.control.send(Method::GET, &format!("/v1/journal?after={}", seq - 1), String::new()).await;
    let line = answer.text().lines().next().unwrap().to_owned();
    Cursor { journal: world.control.health().await.unwrap().journal_id, seq, hash: hash(&line) }
}

/// A consumer's lines go only when they would fill the disk.
#[tokio::test]
async fn unacknowledged_lines_are_kept() {
    let mut world = World::with(TIGHT).await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    let first = json!(cursor(&world, 1).await).to_string();
    let (status, told) = ask(&world, Method::PUT, "/v1/consumers/billing", first.clone()).await;
    assert_eq!((status, &told["lag"]), (StatusCode::OK, &json!(0)));
    let refused = || async { run.agent.chat("fake").await };
    let refused = eventually("calls are refused", refused, |answer| answer.status == 503).await;
    assert!(refused.text().contains("journal_unavailable"), "{}", refused.text());
    assert_eq!(world.control.health().await.unwrap().journal, JournalState::Closed);
    assert!(world.journal_file().exists(), "nothing was removed");
    let metrics = world.control.send(Method::GET, "/v1/metrics", String::new()).await;
    assert!(metrics.text().contains("\nsluicegate_journal_consumers 1\n"), "{}", metrics.text());
    assert!(metrics.text().contains("\nsluicegate_journal_open 0\n"), "{}", metrics.text());

    // Also by a proxy that starts anew.
    world.kill_proxy().await;
    world.start_proxy().await;
    let (_, consumers) = ask(&world, Method::GET, "/v1/consumers", String::new()).await;
    let consumers: Vec<Consumer> = serde_json::from_value(consumers).unwrap();
    assert_eq!((consumers[0].name.as_str(), consumers[0].acknowledged.seq), ("billing", 1));
    let last = world.control.health().await.unwrap().journal_seq;
    assert_eq!(consumers[0].lag, last - 1);
    let forged = Cursor { seq: 2, ..cursor(&world, 1).await };
    let (status, problem) =
        ask(&world, Method::PUT, "/v1/consumers/billing", json!(forged).to_string()).await;
    assert_eq!((status, &problem["error"]["code"]), (StatusCode::CONFLICT, &json!("journal_rewritten")));
    let read = json!(cursor(&world, last).await).to_string();
    assert_eq!(ask(&world, Method::PUT, "/v1/consumers/billing", read).await.0, StatusCode::OK);
    let (status, problem) = ask(&world, Method::PUT, "/v1/consumers/billing", first).await;
    assert_eq!((status, &problem["error"]["code"]), (StatusCode::CONFLICT, &json!("acknowledged_before")));
    let run = world.run("r2", "acct-1").await;
    eventually("what was read is removed", || async { world.journal_file().exists() }, |there| !there).await;
    let chat = || async { run.agent.chat("fake").await.status };
    eventually("calls pass", chat, |status| *status == 200).await;
    let verified = world.sluice().run(&["audit", "verify", "--json"]).await;
    let report: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(
        (verified.code, &report["agrees"]),
        (Some(0), &json!([format!("consumer billing (record {last})")]))
    );
    let (status, _) = ask(&world, Method::DELETE, "/v1/consumers/billing", String::new()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        ask(&world, Method::DELETE, "/v1/consumers/billing", String::new()).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn spending_outlives_removed_lines() {
    let mut world = World::with(TIGHT).await;
    let run = world.run("r1", "acct-1").await;
    load(&run, 60).await;
    let gone = || async { !world.journal_file().exists() };
    eventually("old files are removed", gone, |gone| *gone).await;
    let before = world.control.run(&run.grant.run_id).await.unwrap().usage;
    let accounts = ask(&world, Method::GET, "/v1/accounts", String::new()).await;
    world.kill_proxy().await;
    world.start_proxy().await;
    assert_eq!(ask(&world, Method::GET, "/v1/accounts", String::new()).await, accounts);
    world.run("r1", "acct-1").await;
    assert_eq!(world.control.run(&run.grant.run_id).await.unwrap().usage, before);
    assert_eq!(before.calls, 60);
    // The rest of the journal is as easy to read as before.
    for command in [
        &["tail", "-n", "1"][..],
        &["stats"],
        &["verify"],
        &["top", "--json"],
        &["export", "--format", "csv"],
    ] {
        let outcome = world.sluice().run(&[&["audit"], command].concat()).await;
        assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
    }
}

/// Makes `count` calls that are refused, ends the run, and returns its lines.
async fn refused(world: &World, name: &str, count: usize) -> Vec<JournalLine> {
    let run = world.run(name, "acct-1").await;
    for _ in 0..count {
        assert_eq!(run.agent.post("/v1/files", &json!({})).await.status, 404);
    }
    let usage = world.control.close(&run.grant.run_id, 0).await.unwrap().usage;
    assert_eq!(usage.refused, count as u64);
    let mut lines = world.journal().await;
    lines.retain(|line| line.record.run_id == run.grant.run_id);
    assert!(lines.iter().all(|line| line.record.outcome == Outcome::Refused));
    lines
}

/// All of them are counted.
#[tokio::test]
async fn a_flood_of_refusals_is_summed_up() {
    let mut world = World::start().await;
    assert_eq!(refused(&world, "calm", 50).await.len(), 50, "the control: few are told one by one");
    let flood = refused(&world, "flood", 600).await;
    assert!(flood.len() < 400, "{} lines", flood.len());
    assert_eq!(flood.iter().map(|line| line.record.calls).sum::<u64>(), 600);
    let run = world.run("later", "acct-1").await;
    for _ in 0..300 {
        run.agent.post("/v1/files", &json!({})).await;
    }
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    world.run("later", "acct-1").await;
    let usage = world.control.run(&run.grant.run_id).await.unwrap().usage;
    assert_eq!(usage.refused, 300, "what was counted is written when the proxy stops");
}

/// Returns the number of lines of `run`, and of the calls they stand for.
async fn told(world: &World, run: &Run) -> (usize, u64) {
    let mut lines = world.journal().await;
    lines.retain(|line| line.record.run_id == run.grant.run_id);
    (lines.len(), lines.iter().map(|line| line.record.calls).sum())
}

/// Local answers are those that need no call of the upstream.
#[tokio::test]
async fn a_flood_of_local_answers_is_summed_up() {
    let mut world = World::start().await;
    let (flood, calls) = (world.run("flood", "acct-1").await, world.run("calls", "acct-1").await);
    for _ in 0..600 {
        assert_eq!(flood.agent.get("/v1/models").await.status, 200);
    }
    let usage = world.control.run(&flood.grant.run_id).await.unwrap().usage;
    assert_eq!((usage.calls, usage.refused), (600, 0));
    // The control: calls that were sent have a line each, however many.
    for _ in 0..200 {
        assert_eq!(calls.agent.chat("fake").await.status, 200);
    }
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let (lines, counted) = told(&world, &flood).await;
    assert!(lines < 400, "{lines} lines");
    assert_eq!(counted, 600);
    assert_eq!(told(&world, &calls).await, (200, 200));
    assert_eq!(world.control.run(&flood.grant.run_id).await.unwrap().usage, usage);
}

/// An operator removes a file of the journal: the recorded spending stays, and no number is used twice. The proxy's
/// health and log, `audit verify` and `doctor` report the loss.
#[tokio::test]
async fn a_lost_file_is_told_and_its_spending_stays() {
    let mut world = World::with(SMALL).await;
    let run = world.run("r1", "acct-1").await;
    load(&run, CALLS).await;
    let mut calls = CALLS as u64;
    let mut last = world.control.health().await.unwrap().journal_seq;
    for lost in ["one in the middle", "all that are left"] {
        assert!(world.stop_proxy().await);
        let mut files = segments(&world);
        let files = if lost == "one in the middle" { files.drain(2..3) } else { files.drain(..) };
        files.for_each(|file| fs::remove_file(file).unwrap());
        world.start_proxy().await;
        let health = world.control.health().await.unwrap();
        assert_eq!(health.lost.len(), 1, "{lost}: {:?}", health.lost);
        assert_eq!(world.control.run(&run.grant.run_id).await.unwrap().usage.calls, calls, "{lost}");
        assert_eq!(run.agent.chat("fake").await.status, 200);
        calls += 1;
        let seq = world.control.health().await.unwrap().journal_seq;
        assert!(seq > last, "{lost}: {seq} after {last}");
        last = seq;
        let told = world.sluice().run(&["audit", "verify"]).await;
        assert_eq!(told.code, Some(1), "{told:?}");
        assert!(told.stdout.contains("The proxy noticed when it started that"), "{told:?}");
        let doctor = world.sluice().run(&["doctor"]).await;
        assert!(doctor.stdout.contains("lines of its journal are gone"), "{doctor:?}");
    }
    assert!(world.log().contains("lines of the journal are gone"), "the log says so");
}

//! A disk that is full: no new calls, and a record for every call that was let through.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{
    Agent, World, eventually,
    eventually::PATIENCE,
    shared::{register_shared, share, token},
};
use http::Method;
use platform_core::{
    control::{JournalState, Unstored},
    record::{JournalLine, Outcome},
    refusal::Refusal,
};
use serde_json::json;

/// Calls under way when the disk fills up.
const UNDER_WAY: usize = 8;

/// A small file system. It is unmounted on drop.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path, size: &str) -> Self {
        fs::create_dir_all(path).unwrap();
        let options = format!("size={size},mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).status().unwrap();
        assert!(mounted.success(), "this test mounts a small file system, for which it has to be root");
        Self(path.to_owned())
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut filler = fs::File::create(self.0.join("filler")).unwrap();
        for piece in [64 << 10, 4 << 10, 1] {
            let full = loop {
                if let Err(error) = io::Write::write_all(&mut filler, &vec![1; piece]) {
                    break error;
                }
            };
            assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        }
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// Starts a world with its proxy's state on a disk of `size`; the disk is to be dropped first.
pub(super) async fn small_world(size: &str) -> (World, SmallDisk) {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let disk = SmallDisk::mount(&world.path().join("state"), size);
    world.start_proxy().await;
    (world, disk)
}

fn count(lines: &[JournalLine], refusal: Option<Refusal>) -> u64 {
    lines.iter().filter(|line| line.record.refusal == refusal).map(|line| line.record.calls).sum()
}

/// Calls in flight go on and are recorded.
#[tokio::test]
async fn a_full_disk_stops_only_new_calls() {
    let (mut world, disk) = small_world("1m").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let mut under_way = Vec::new();
    for _ in 0..UNDER_WAY {
        under_way.push(run.agent.stream("fake-words20-gap100ms").await);
    }
    disk.fill();
    assert!(fs::write(disk.0.join("control"), vec![1; 8192]).is_err(), "the disk is really full");

    // Calls may still use space that was reserved before.
    let chat = || async { run.agent.chat("fake").await };
    let refused = eventually("no call is let through", chat, |answer| answer.status == 503).await;
    assert!(refused.text().contains("journal_unavailable"), "{}", refused.text());
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(world.control.health().await.unwrap().journal, JournalState::Full);
    let mut refusals = 1;
    for _ in 0..20 {
        refusals += u64::from(run.agent.chat("fake").await.status == 503);
    }
    for stream in under_way {
        let (text, ended) = stream.until_break().await;
        assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{text}");
    }
    let whole = |lines: &Vec<JournalLine>| {
        lines.iter().filter(|line| line.record.stream && line.record.outcome == Outcome::Complete).count()
    };
    let lines = eventually("all are recorded", || world.journal(), |lines| whole(lines) == UNDER_WAY).await;
    assert_eq!(
        lines.iter().filter(|line| line.record.outcome == Outcome::Complete).count(),
        world.upstream.ledger().len()
    );

    disk.empty();
    let passed = eventually("calls pass again", chat, |answer| answer.status == 200).await;
    assert_eq!(passed.status, 200);
    let state = || async { world.control.health().await.unwrap().journal };
    eventually("the journal says so", state, |state| *state == JournalState::Open).await;
    let unavailable = Some(Refusal::JournalUnavailable);
    eventually(
        "those that were refused are told of",
        || world.journal(),
        |lines| count(lines, unavailable) >= refusals,
    )
    .await;
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
}

/// The journal has space ahead for lines, and a thread's file of marks has none to grow: the thread refuses each call.
/// Health says so, and nothing but space is needed to go on: a balancer sends no call to a proxy that is not ready.
#[tokio::test]
async fn a_thread_that_cannot_mark_is_not_ready() {
    let (world, disk) = small_world("16m").await;
    let run = world.run("r1", "acct-1").await;
    let readiness = || async { world.control.send(Method::GET, "/v1/ready", String::new()).await };
    assert_eq!(readiness().await.status, 200, "before");
    disk.fill();
    let chat = || async { run.agent.chat("fake").await };
    let refused = chat().await;
    assert_eq!(refused.status, 503, "its first mark needs space: {}", refused.text());
    assert!(refused.text().contains("journal_unavailable"), "{}", refused.text());
    let not_ready = readiness().await;
    assert_eq!(not_ready.status, 503);
    assert_eq!(not_ready.json()["reasons"], json!([{ "reason": "journal", "state": "unmarked" }]));
    assert_eq!(world.control.health().await.unwrap().journal, JournalState::Unmarked);
    let doctor = world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("cannot mark calls"), "{doctor:?}");

    disk.empty();
    eventually("it is ready without a call", readiness, |answer| answer.status == 200).await;
    assert_eq!(world.control.health().await.unwrap().journal, JournalState::Open);
    assert_eq!(chat().await.status, 200);
}

#[tokio::test]
async fn a_kill_on_a_full_disk_loses_no_record() {
    let (mut world, disk) = small_world("1m").await;
    let run = world.run("r1", "acct-1").await;
    let mut under_way = Vec::new();
    for _ in 0..UNDER_WAY {
        under_way.push(run.agent.stream("fake-stall1").await);
    }
    world.upstream.ledger().wait_for(UNDER_WAY, PATIENCE).await.unwrap();
    disk.fill();
    world.kill_proxy().await;
    world.start_proxy().await;
    let lines = world.journal().await;
    assert_eq!(lines.len(), UNDER_WAY);
    assert!(lines.iter().all(|line| line.record.outcome == Outcome::Interrupted));
}

/// An operator freezes and revokes on a full disk. Both hold and are stored, in space that is reserved for them.
#[tokio::test]
async fn freezes_and_revocations_hold_on_a_full_disk() {
    let (mut world, disk) = small_world("4m").await;
    share(&mut world, "clients").await;
    let run = world.run("r1", "acct-1").await;
    let address = register_shared(&world, harness::grant("r2", "acct-2")).await;
    let with_token =
        |address| Agent::over_tcp(address).with_header("x-run-token", &token("r2", 0, "new", 3600));
    let by_token = with_token(address);
    let mut frozen = run.agent.stream("fake-stall2").await;
    let mut revoked = by_token.stream("fake-stall2").await;
    frozen.next().await.unwrap();
    revoked.next().await.unwrap();
    disk.fill();
    assert!(fs::write(disk.0.join("control"), vec![1; 8192]).is_err(), "the disk is really full");
    assert_eq!(run.agent.chat("fake").await.status, 200, "calls pass in space that is set aside");

    for command in [["freeze", "--account", "acct-1"], ["token", "revoke", "--run=r2"]] {
        let stopped = world.sluice().run(&command).await;
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
    }
    assert!(frozen.whole().await.is_err() && revoked.whole().await.is_err(), "what is in flight is cut");
    let code = |answer: harness::Answer| answer.json()["error"]["code"].clone();
    assert_eq!(code(run.agent.chat("fake").await), "frozen");
    assert_eq!(code(by_token.chat("fake").await), "token_revoked");
    assert_eq!(world.control.health().await.unwrap().unstored, []);

    world.kill_proxy().await;
    world.start_proxy().await;
    assert_eq!(code(run.agent.chat("fake").await), "frozen", "also after a restart");
    let by_token = with_token(register_shared(&world, harness::grant("r2", "acct-2")).await);
    assert_eq!(code(by_token.chat("fake").await), "token_revoked");
}

/// An operator makes more freezes than the reserved space can store. All of them hold; the answer says that they are
/// not stored, and they are stored as soon as there is space.
#[tokio::test]
async fn a_freeze_that_cannot_be_stored_still_holds() {
    let (mut world, disk) = small_world("4m").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200, "there is space for records");
    disk.fill();
    let freeze = async |names: Vec<String>| {
        let named: Vec<_> = names.iter().map(|name| json!({ "kind": "account", "name": name })).collect();
        world.control.send(Method::POST, "/v1/freeze", json!(named).to_string()).await
    };
    let many = |round: usize| (0..300).map(|n| format!("{:x<120}", format!("a{round}-{n}-"))).collect();
    let rounds = async {
        for round in 0..8 {
            let answer = freeze(many(round)).await;
            if answer.status != 200 {
                return answer;
            }
        }
        panic!("the space that is set aside has no end");
    };
    let refused = rounds.await;
    let problem = refused.json()["error"].clone();
    assert_eq!((refused.status.as_u16(), problem["code"].as_str()), (507, Some("not_stored")), "{problem}");
    assert!(problem["message"].as_str().unwrap().contains("holds from now on"), "{problem}");
    let frozen = freeze(vec!["acct-1".to_owned()]).await;
    assert_eq!(frozen.status, 507);
    assert_eq!(run.agent.chat("fake").await.json()["error"]["code"], "frozen", "it holds");
    assert_eq!(world.control.health().await.unwrap().unstored, [Unstored::Freezes]);

    disk.empty();
    let unstored = || async { world.control.health().await.unwrap().unstored };
    eventually("it is stored", unstored, Vec::is_empty).await;
    world.kill_proxy().await;
    world.start_proxy().await;
    assert_eq!(run.agent.chat("fake").await.json()["error"]["code"], "frozen", "also after a restart");
}

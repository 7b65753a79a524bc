//! A disk that is full: no new calls, and a record for every call that was let through.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use harness::{World, eventually};
use platform_core::{
    control::JournalState,
    record::{JournalLine, Outcome},
    refusal::Refusal,
};

/// Calls under way when the disk fills up.
const UNDER_WAY: usize = 8;

/// A small file system. Gone on drop.
struct SmallDisk(PathBuf);

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

/// A world whose proxy has its state on a disk of `size`, and the disk, which is to be dropped first.
async fn small_world(size: &str) -> (World, SmallDisk) {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let disk = SmallDisk::mount(&world.path().join("state"), size);
    world.start_proxy().await;
    (world, disk)
}

fn count(lines: &[JournalLine], refusal: Option<Refusal>) -> u64 {
    lines.iter().filter(|line| line.record.refusal == refusal).map(|line| line.record.calls).sum()
}

#[tokio::test]
async fn a_full_disk_stops_calls_that_begin_and_none_that_ends() {
    let (mut world, disk) = small_world("1m").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let mut under_way = Vec::new();
    for _ in 0..UNDER_WAY {
        under_way.push(run.agent.stream("fake-words20-gap100ms").await);
    }
    disk.fill();
    assert!(fs::write(disk.0.join("control"), vec![1; 8192]).is_err(), "the disk is really full");

    // What is set aside already may still be given out.
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

#[tokio::test]
async fn a_proxy_that_is_killed_on_a_full_disk_records_what_was_under_way() {
    let (mut world, disk) = small_world("1m").await;
    let run = world.run("r1", "acct-1").await;
    let mut under_way = Vec::new();
    for _ in 0..UNDER_WAY {
        under_way.push(run.agent.stream("fake-stall1").await);
    }
    world.upstream.ledger().wait_for(UNDER_WAY, Duration::from_secs(5)).await.unwrap();
    disk.fill();
    world.kill_proxy().await;
    world.start_proxy().await;
    let lines = world.journal().await;
    assert_eq!(lines.len(), UNDER_WAY);
    assert!(lines.iter().all(|line| line.record.outcome == Outcome::Interrupted));
}

//! Tests which threads wait for the file system when the journal goes on in the next file: not those that serve calls.

use std::{collections::BTreeSet, path::PathBuf};

use harness::{
    World, eventually,
    file_calls::{FileCall, FileCallRecorder},
};

use super::{
    reading::{load, segments},
    space::small_world,
};

/// Files of some hundred lines.
const SMALL: &str = "[journal]\nsegment_size = '64 KiB'";
/// Files that are filled.
const FILES: usize = 6;
/// Thread that maintains the journal.
const MAINTENANCE: &str = "journal";

/// Starts the world's proxy again, and records its calls.
async fn record(world: &mut World) -> FileCallRecorder {
    let recorder = FileCallRecorder::new(world.path());
    world.kill_proxy().await;
    world.start_proxy_with(&recorder.variables()).await;
    recorder
}

/// Returns the calls for the journal's lines, without those of a start.
fn of_lines(world: &World, recorder: &FileCallRecorder) -> Vec<FileCall> {
    let mut calls = recorder.below(&world.path().join("state/journal"));
    calls.retain(|call| call.thread != "sluice-proxy");
    calls
}

fn threads(calls: &[FileCall], name: &str) -> BTreeSet<String> {
    calls.iter().filter(|call| call.name == name).map(|call| call.thread.clone()).collect()
}

#[tokio::test]
async fn no_call_waits_for_a_files_allocation() {
    let mut world = World::with(SMALL).await;
    let recorder = record(&mut world).await;
    let run = world.run("r1", "acct-1").await;
    let next = world.path().join("state/journal/next");
    for files in 1..=FILES {
        let is_ready = || async { next.exists() };
        eventually("the next file is ready", is_ready, |is_ready| *is_ready).await;
        while segments(&world).len() <= files {
            load(&run, 16).await;
        }
    }
    let full: BTreeSet<PathBuf> = segments(&world).into_iter().take(FILES).collect();
    let shortened = || async {
        let calls = of_lines(&world, &recorder).into_iter().filter(|call| call.name == "ftruncate");
        calls.map(|call| call.path).filter(|path| full.contains(path)).collect::<BTreeSet<_>>()
    };
    eventually("the space behind full files goes back", shortened, |paths| *paths == full).await;
    let calls = of_lines(&world, &recorder);
    for name in ["fallocate", "ftruncate"] {
        assert_eq!(threads(&calls, name), BTreeSet::from([MAINTENANCE.to_owned()]), "{name}: {calls:?}");
    }
}

/// The control: without space ahead, the threads of calls allocate it, and it is seen.
#[tokio::test]
async fn a_call_on_a_small_disk_allocates_itself() {
    let (mut world, _disk) = small_world("1m").await;
    let recorder = record(&mut world).await;
    let run = world.run("r1", "acct-1").await;
    load(&run, 16).await;
    let calls = of_lines(&world, &recorder);
    let by_planes = threads(&calls, "fallocate").into_iter().filter(|thread| thread.starts_with("plane-"));
    assert!(by_planes.count() > 0, "{calls:?}");
}

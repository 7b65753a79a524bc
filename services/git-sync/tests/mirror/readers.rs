//! Tests that no reader sees a part of a tree, or none, while commits are swapped.

use std::{
    fs, io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use platform_core::name::git_sync;
use rustix::{
    fs::{Mode, OFlags, openat},
    process::Signal,
};

use crate::{
    process::GitSync,
    remote::{FILES, Remote, git, run},
};

/// Swaps that a reader sees.
const SWAPS: usize = 20;

/// Reads that a reader did, and those that found a part of a tree or none.
#[derive(Debug, Default)]
struct Seen {
    reads: AtomicUsize,
    broken: AtomicUsize,
}

/// Reads all files of the tree at `path`, as a program does that opens its directory once and works in it.
fn is_whole(path: &Path) -> bool {
    let number = |file: usize, dir: &rustix::fd::OwnedFd| {
        let name = format!("file-{file:02}");
        let opened = openat(dir, name, OFlags::RDONLY, Mode::empty()).map_err(io::Error::from)?;
        io::read_to_string(fs::File::from(opened))
    };
    let dir = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let Ok(dir) = dir else { return false };
    let numbers: Result<Vec<_>, io::Error> = (0..FILES).map(|file| number(file, &dir)).collect();
    numbers.is_ok_and(|numbers| !numbers[0].is_empty() && numbers.iter().all(|number| *number == numbers[0]))
}

/// Reads the tree at `path` over and over while `change` runs.
fn read_during(path: &Path, change: impl FnOnce()) -> Seen {
    let seen = Seen::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                seen.reads.fetch_add(1, Ordering::Relaxed);
                seen.broken.fetch_add(usize::from(!is_whole(path)), Ordering::Relaxed);
            }
        });
        change();
        done.store(true, Ordering::Relaxed);
    });
    seen
}

#[test]
fn no_reader_sees_a_part_of_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    mirror.synced();
    let seen = read_during(&mirror.root.join(git_sync::LINK), || {
        for number in 1..=SWAPS {
            remote.push(number);
            mirror.signal(Signal::HUP);
            assert!(mirror.synced().changed);
        }
    });
    assert_eq!(seen.broken.into_inner(), 0);
    assert!(seen.reads.into_inner() > SWAPS, "the reader was there at each swap");

    // Control: the reader sees parts of trees where git writes into the tree that is read.
    let pulled = dir.path().join("pulled");
    run(git(dir.path()).args(["clone", "--quiet", &remote.url()]).arg(&pulled));
    let seen = read_during(&pulled, || {
        for number in 1..=SWAPS {
            remote.push(SWAPS + number);
            run(git(&pulled).args(["pull", "--quiet"]));
        }
    });
    assert!(seen.broken.into_inner() > 0, "{:?} reads of a tree that is pulled in place", seen.reads);
}

//! Tests which trees there are, and when they go.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use platform_core::name::git_sync;
use rustix::process::Signal;

use crate::{
    process::GitSync,
    remote::{Remote, git, run},
};

/// Longest wait for the removal of a tree after its time is over.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_replaced_tree_stays_for_its_readers() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[("GITSYNC_STALE_WORKTREE_TIMEOUT", "3s")]);
    let old = mirror.synced().commit.unwrap();
    let inside = fs::canonicalize(mirror.root.join(git_sync::LINK)).unwrap();
    let new = remote.push(1);
    mirror.signal(Signal::HUP);
    mirror.synced();
    assert_eq!(fs::read_to_string(inside.join("file-00")).unwrap(), "0", "a reader goes on in the old tree");
    assert_eq!(mirror.trees().len(), 2);

    let end = Instant::now() + REMOVAL_TIMEOUT;
    while mirror.trees().len() > 1 {
        assert!(Instant::now() < end, "{old} was replaced long ago");
        mirror.signal(Signal::HUP);
        mirror.synced();
    }
    assert_eq!(mirror.trees(), [new]);
    assert_eq!(mirror.shown("file-00"), "1");
}

#[test]
fn a_commit_that_returns_is_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    let old = mirror.synced().commit.unwrap();
    remote.push(1);
    mirror.signal(Signal::HUP);
    mirror.synced();
    run(git(&remote.bare).args(["update-ref", "refs/heads/main", &old]));
    mirror.signal(Signal::HUP);
    assert_eq!(mirror.synced().commit, Some(old));
    assert_eq!(mirror.shown("file-39"), "0");
}

/// A process that is killed leaves a part of a tree, a new link that took no place, or a credential.
#[test]
fn what_a_killed_process_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mut mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    let commit = mirror.synced().commit.unwrap();
    assert!(!mirror.stop(Signal::KILL));
    let trees = mirror.root.join(git_sync::WORKTREES);
    for part in [format!("{commit}.unfinished"), format!("{commit}.removed"), "other".to_owned()] {
        fs::create_dir_all(trees.join(part).join("below")).unwrap();
    }
    symlink("nowhere", mirror.root.join(".current.new")).unwrap();

    let again = GitSync::start(dir.path(), &remote.url(), &[]);
    let report = again.synced();
    assert_eq!((report.commit, report.changed), (Some(commit.clone()), false));
    assert_eq!(again.trees(), [commit]);
    remote.push(1);
    again.signal(Signal::HUP);
    assert!(again.synced().changed, "the link that took no place is replaced");
}

#[test]
fn two_processes_never_share_a_mirror() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    mirror.synced();
    let second = GitSync::start(dir.path(), &remote.url(), &[]);
    assert!(second.reports_within(Duration::from_secs(5)).is_empty(), "it ends and reports no sync");
}

/// Readers get files, a history as deep as asked, and nothing that names the remote.
#[test]
fn a_tree_is_a_repository_without_a_remote() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    remote.push(1);
    remote.push(2);
    let mirror = GitSync::start(dir.path(), &remote.url(), &[("GITSYNC_DEPTH", "2")]);
    mirror.synced();
    let current = mirror.root.join(git_sync::LINK);
    assert_eq!(run(git(&current).args(["log", "--format=%s"])), "2\n1");
    assert_eq!(run(git(&current).arg("remote")), "");
    assert_eq!(run(git(&current).args(["status", "--porcelain", "--branch"])), "## main");
    let config = fs::read_to_string(current.join(".git/config")).unwrap();
    assert!(!config.contains("upstream.git"), "{config}");
    let status: serde_json::Value =
        serde_json::from_slice(&fs::read(mirror.state.join(git_sync::STATUS_FILE)).unwrap()).unwrap();
    assert_eq!((&status["commit"], &status["error"]), (&remote.tip().into(), &serde_json::Value::Null));
}

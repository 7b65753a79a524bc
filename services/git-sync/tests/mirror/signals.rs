//! Tests what signals do.

use std::time::Duration;

use rustix::process::Signal;

use crate::{process::GitSync, remote::Remote};

#[test]
fn sighup_shows_a_pushed_commit_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mut mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    let first = mirror.synced();
    assert_eq!((first.commit, first.changed), (Some(remote.tip()), true));
    assert_eq!(mirror.shown("file-07"), "0");

    let pushed = remote.push(1);
    assert_eq!(mirror.shown("file-07"), "0", "control: the period is long");
    mirror.signal(Signal::HUP);
    let second = mirror.synced();
    assert_eq!((second.commit, second.changed), (Some(pushed), true));
    assert!(second.began_ns > first.ended_ns && second.ended_ns > second.began_ns);
    assert_eq!(mirror.shown("file-07"), "1");

    mirror.signal(Signal::HUP);
    assert!(!mirror.synced().changed, "nothing was pushed since");
    assert!(mirror.stop(Signal::TERM), "a stop is not a failure");
}

#[test]
fn fifty_signals_lead_to_few_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    mirror.synced();
    for _ in 0..50 {
        mirror.signal(Signal::HUP);
    }
    let last = remote.push(1);
    mirror.signal(Signal::HUP);
    let reports = mirror.reports_within(Duration::from_secs(2));
    assert!((1..=3).contains(&reports.len()), "one sync runs and one waits: {reports:?}");
    assert_eq!(reports.last().unwrap().commit, Some(last), "the last signal came after the push");
}

#[test]
fn a_period_shows_a_commit_without_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mirror = GitSync::start(dir.path(), &remote.url(), &[("GITSYNC_PERIOD", "100ms")]);
    mirror.synced();
    let pushed = remote.push(1);
    let shown = std::iter::repeat_with(|| mirror.synced()).take(100);
    assert!(shown.into_iter().any(|report| report.commit.as_ref() == Some(&pushed)));
}

#[test]
fn an_unreachable_remote_keeps_the_last_tree() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let mut mirror = GitSync::start(dir.path(), &remote.url(), &[]);
    let first = mirror.synced();
    let gone = dir.path().join("gone.git");
    std::fs::rename(&remote.bare, &gone).unwrap();
    mirror.signal(Signal::HUP);
    let failed = mirror.report();
    assert!(failed.error.is_some() && !failed.changed, "{failed:?}");
    assert_eq!((failed.commit, mirror.shown("file-00").as_str()), (first.commit, "0"));

    std::fs::rename(&gone, &remote.bare).unwrap();
    mirror.signal(Signal::HUP);
    mirror.synced();
    assert!(mirror.stop(Signal::INT));
}

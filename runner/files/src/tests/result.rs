//! Tests results: differences that the real git accepts, traps of agents, copies of results.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{ffi::OsStrExt, net::UnixListener},
    process::{Command, Stdio},
};

use super::*;
use crate::{ChangeForm, Error, FileFigures, stat_text};

/// Returns each changed path with its change.
fn changed(stage: &Stage, result: &ResultTree) -> Vec<(String, ChangeForm)> {
    let changes = Changes::between(stage, result).unwrap();
    changes.all().iter().map(|change| (change.path.to_string(), change.form)).collect()
}

/// Applies `diff` to the user's directory with the real git.
fn git_apply(fixture: &Fixture, diff: &[u8]) {
    let mut git = Command::new("git");
    git.args(["apply", "--verbose", "-"]).current_dir(fixture.source()).stdin(Stdio::piped());
    let mut child = git.env("GIT_DIR", "/nowhere").stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(diff).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}\n{}", String::from_utf8_lossy(diff));
}

#[test]
fn git_applies_the_difference() {
    let lines: String = (1..40).map(|line| format!("line {line}\n")).collect();
    let fixture = Fixture::with(&[
        ("long.txt", &lines),
        ("no newline", "end"),
        ("gone", "bye\n"),
        ("gone empty", ""),
        ("script", "#!/bin/sh\n"),
        ("cr", "a\rb\r\nc\n"),
        ("ä\"\\.txt", "x\n"),
        ("becomes a link", "x\n"),
    ]);
    link("old", fixture.source().join("link"));
    let stage = fixture.start_run();
    fixture
        .agent_writes("long.txt", &lines.replace("line 3\n", "").replace("line 30\n", "line thirty\nmore\n"));
    fixture.agent_writes("no newline", "end\n");
    fs::remove_file(fixture.repo().join("gone")).unwrap();
    fs::remove_file(fixture.repo().join("gone empty")).unwrap();
    set_mode(&fixture.repo().join("script"), 0o755);
    fixture.agent_writes("cr", "a\rb\r\nd\n");
    fixture.agent_writes("ä\"\\.txt", "y");
    fixture.agent_writes("new/dir/file", "new\n");
    fixture.agent_writes("new/empty", "");
    fixture.agent_writes("tab\tname", "t\n");
    fs::remove_file(fixture.repo().join("link")).unwrap();
    link("new", fixture.repo().join("link"));
    fs::remove_file(fixture.repo().join("becomes a link")).unwrap();
    link("x", fixture.repo().join("becomes a link"));
    let result = fixture.result(&stage);
    let text = diff(&stage, &result);
    git_apply(&fixture, &text);
    // What git made of the user's directory is what the agent has.
    let other = Fixture { dir: tempfile::TempDir::new().unwrap(), run_id: fixture.run_id.clone() };
    fs::rename(fixture.source(), other.source()).unwrap();
    fs::create_dir(other.tree()).unwrap();
    let applied = other.start_run();
    let names = |stage: &Stage| -> Vec<_> {
        stage.manifest().entries().iter().map(|entry| entry.path.clone()).collect()
    };
    assert_eq!(changed(&applied, &result), [], "{:?}", names(&applied));
    let expected = [ChangeForm::TypeChanged, ChangeForm::Modified, ChangeForm::Deleted, ChangeForm::Deleted];
    assert_eq!(changed(&stage, &result).iter().take(4).map(|change| change.1).collect::<Vec<_>>(), expected);
}

#[test]
fn differences_and_figures_read_as_gits() {
    let fixture = Fixture::with(&[("a.txt", "one\ntwo\n"), ("b", "\0old"), ("esc\x1b", "x\n")]);
    let stage = fixture.start_run();
    fixture.agent_writes("a.txt", "one\n2\n3");
    fixture.agent_writes("b", "\0newer");
    fixture.agent_writes("esc\x1b", "y\n");
    let result = fixture.result(&stage);
    let expected = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n\\ No newline at end of file\n\
                    diff --git a/b b/b\nBinary files a/b and b/b differ\n\
                    diff --git \"a/esc\\033\" \"b/esc\\033\"\n--- \"a/esc\\033\"\n+++ \"b/esc\\033\"\n@@ -1 +1 @@\n-x\n+y\n";
    assert_eq!(String::from_utf8(diff(&stage, &result)).unwrap(), expected);
    let reader = DiffReader { stage: &stage, result: &result };
    let changes = Changes::between(&stage, &result).unwrap();
    let figures = |change: &crate::Change| FileFigures {
        path: change.path.clone(),
        figures: reader.diff(change).unwrap().figures,
    };
    let figures: Vec<_> = changes.all().iter().map(figures).collect();
    let expected = " a.txt     | 3 ++-\n b         | Bin 4 -> 6 bytes\n \"esc\\033\" | 2 +-\n 3 files changed, 3 insertions(+), 2 deletions(-)\n";
    assert_eq!(stat_text(&figures), expected);
}

#[test]
fn ignored_additions_are_hidden() {
    let fixture = Fixture::with(&[(".gitignore", "target/\n*.o\n"), ("a", "")]);
    let stage = fixture.start_run();
    fixture.agent_writes("target/debug/app", "x");
    fixture.agent_writes("a.o", "x");
    fixture.agent_writes("b", "x");
    fixture.agent_writes(".git/config", "[core]\nfsmonitor = evil\n");
    fixture.agent_writes("sub/.gitignore", "*\n");
    let result = fixture.result(&stage);
    let added = |path: &str| (path.to_owned(), ChangeForm::Added);
    assert_eq!(
        changed(&stage, &result),
        [added("b"), added("sub/.gitignore")],
        "the agent's rules hide nothing"
    );
    assert_eq!(result.hidden().git_dirs, [path(".git")]);
    assert_eq!(result.hidden().ignored.len(), 2);
    let all = ResultTree::read(&fixture.tree(), &stage, Scope::All).unwrap();
    assert_eq!(changed(&stage, &all).len(), 4, "control");
}

#[test]
fn traps_in_a_result_are_not_read() {
    let fixture = Fixture::with(&[("dir/a", "a"), ("b", "b"), ("c", "c")]);
    fs::write(fixture.dir.path().join("secret"), "the host's own").unwrap();
    let stage = fixture.start_run();
    fs::remove_dir_all(fixture.repo().join("dir")).unwrap();
    fs::create_dir(fixture.dir.path().join("outside")).unwrap();
    fs::write(fixture.dir.path().join("outside/a"), "the host's own").unwrap();
    link("../../outside", fixture.repo().join("dir"));
    fs::remove_file(fixture.repo().join("b")).unwrap();
    make_fifo(&fixture.repo().join("b"));
    let _socket = UnixListener::bind(fixture.repo().join("socket")).unwrap();
    fs::hard_link(fixture.repo().join("c"), fixture.repo().join("other name")).unwrap();
    link("../../secret", fixture.repo().join("link"));
    fs::File::create(fixture.repo().join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap();
    let unreadable: Vec<_> =
        changes.unreadable().iter().map(|entry| format!("{} {}", entry.path, entry.why)).collect();
    let linked = "has 2 names (hard links) instead of one";
    let expected = [
        "b is a FIFO".to_owned(),
        format!("c {linked}"),
        format!("other name {linked}"),
        "socket is a socket".to_owned(),
    ];
    assert_eq!(unreadable, expected);
    let text = String::from_utf8(diff(&stage, &result)).unwrap();
    assert!(!text.contains("the host's own"), "{text}");
    assert!(text.contains("+../../secret\n") && text.contains("b/sparse differ"), "{text}");
    assert_eq!(fs::read_to_string(fixture.repo().join("link")).unwrap(), "the host's own", "control");
    assert_eq!(fs::read_to_string(fixture.repo().join("dir/a")).unwrap(), "the host's own", "control");
    let to = fixture.dir.path().join("pulled");
    let unbounded = result.pull(None, &to, &bounds());
    assert!(matches!(unbounded, Err(Error::ResultTooLarge { .. })), "{unbounded:?}");
    assert!(!to.exists(), "nothing was written");
    fs::remove_file(fixture.repo().join("sparse")).unwrap();
    let pulled = fixture.result(&stage).pull(None, &to, &bounds()).unwrap();
    assert_eq!((pulled.files, pulled.skipped.len()), (0, 6), "{pulled:?}");
}

#[test]
fn a_result_is_copied_to_a_new_directory() {
    let fixture = Fixture::with(&[("src/a", "a"), ("src/run", "x"), ("b", "b")]);
    set_mode(&fixture.source().join("src/run"), 0o755);
    let stage = fixture.start_run();
    fixture.agent_writes("new\nline", "n");
    let result = fixture.result(&stage);
    let to = fixture.dir.path().join("some/new");
    assert_eq!(result.pull(None, &to, &bounds()).unwrap().files, 4);
    assert_eq!(fs::read(to.join(OsStr::from_bytes(b"new\nline"))).unwrap(), b"n");
    let is_program = |path: &str| fs::metadata(to.join(path)).unwrap().permissions().mode() & 0o100 != 0;
    assert!(is_program("src/run") && !is_program("src/a"));
    assert!(
        matches!(result.pull(None, &to, &bounds()), Err(Error::NotEmpty { .. })),
        "nothing is overwritten"
    );
    let part = fixture.dir.path().join("part");
    assert_eq!(result.pull(Some(&path("src/a")), &part, &bounds()).unwrap().files, 1);
    assert_eq!(fs::read(part.join("src/a")).unwrap(), b"a");
    let missing = result.pull(Some(&path("none")), &fixture.dir.path().join("other"), &bounds());
    assert!(matches!(missing, Err(Error::NoSuchFile { .. })));
}

#[test]
fn a_bare_repository_is_not_copied() {
    let fixture = Fixture::with(&[("a", "a")]);
    let stage = fixture.start_run();
    for name in ["HEAD", "config", "objects/x", "refs/x"] {
        fixture.agent_writes(&format!("sub/{name}"), "");
    }
    let to = fixture.dir.path().join("pulled");
    let pulled = fixture.result(&stage).pull(None, &to, &bounds()).unwrap();
    assert_eq!(pulled.files, 1, "{pulled:?}");
    assert!(to.join("a").exists() && !to.join("sub/config").exists());
    assert!(pulled.skipped.iter().any(|entry| entry.path == path("sub/config")), "it is named");
}

#[test]
fn a_result_without_its_directory_is_named() {
    let fixture = Fixture::with(&[("a", "")]);
    let stage = fixture.start_run();
    fs::remove_dir_all(fixture.repo()).unwrap();
    let read = || ResultTree::read(&fixture.tree(), &stage, Scope::Tracked);
    assert!(matches!(read(), Err(Error::NoResult { .. })));
    fs::create_dir(fixture.dir.path().join("outside")).unwrap();
    link("../outside", fixture.repo());
    assert!(matches!(read(), Err(Error::NoResult { .. })), "a link in its place");
}

#[test]
fn a_removed_workspace_deletes_nothing() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b")]);
    let stage = fixture.start_run();
    fs::remove_file(fixture.repo().join("b")).unwrap();
    let result = fixture.result(&stage);
    assert_eq!(changed(&stage, &result), [("b".to_owned(), ChangeForm::Deleted)], "control");
    let aside = fixture.dir.path().join("aside");
    fs::rename(fixture.tree(), &aside).unwrap();
    fs::remove_file(aside.join("repo/a")).unwrap();
    assert!(matches!(Changes::between(&stage, &result), Err(Error::ResultRemoved { .. })));
    let to = fixture.dir.path().join("pulled");
    assert!(matches!(result.pull(None, &to, &bounds()), Err(Error::ResultRemoved { .. })));
    fs::create_dir_all(fixture.repo()).unwrap();
    assert!(matches!(result.verify_kept(), Err(Error::ResultRemoved { .. })), "another in its place");
}

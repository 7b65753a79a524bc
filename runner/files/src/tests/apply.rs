//! Tests what `apply` writes, and that it refuses what would run by itself or leave the directory.

use std::{fs, os::unix::fs::MetadataExt};

use super::*;
use crate::{Applicable, AppliedChanges, ApplyError, ApplyProblem, ApplyRules, Error};

fn apply(fixture: &Fixture, stage: &Stage, allow: &[&str]) -> Result<AppliedChanges, ApplyError> {
    let result = fixture.result(stage);
    let changes = Changes::between(stage, &result).unwrap();
    Applicable::judge(&result, &changes, &fixture.source(), &rules(allow))?.write()
}

fn rules(allow: &[&str]) -> ApplyRules {
    ApplyRules { allow: patterns(allow), bounds: bounds() }
}

/// Returns the refused paths with a word for the reason.
fn refused(applied: Result<AppliedChanges, ApplyError>) -> Vec<String> {
    let Err(ApplyError::Refused { problems }) = applied else { panic!("{applied:?}") };
    let reason = |problem: &ApplyProblem| match problem {
        ApplyProblem::GitDir(_) => "git",
        ApplyProblem::Link(_) => "link",
        ApplyProblem::Unreadable { .. } => "unreadable",
        ApplyProblem::Protected { .. } => "protected",
        ApplyProblem::Conflict { .. } => "conflict",
    };
    problems.iter().map(|problem| format!("{}: {}", problem.path(), reason(problem))).collect()
}

#[test]
fn changes_are_applied() {
    let fixture = Fixture::with(&[
        ("src/a", "a"),
        ("src/deep/gone", "g"),
        ("run.sh", "#!"),
        ("file", "f"),
        ("same", "s"),
        ("untouched", "u"),
    ]);
    set_mode(&fixture.source().join("src/a"), 0o640);
    rustix::fs::chown(fixture.source().join("src/a").as_path(), Some(rustix::fs::Uid::from_raw(4711)), None)
        .unwrap();
    let stage = fixture.start_run();
    fixture.agent_writes("src/a", "new a");
    fs::remove_dir_all(fixture.repo().join("src/deep")).unwrap();
    set_mode(&fixture.repo().join("run.sh"), 0o755);
    fs::remove_file(fixture.repo().join("file")).unwrap();
    fixture.agent_writes("file/below", "now a directory");
    fixture.agent_writes("new/dir/b", "b");
    fixture.agent_writes("same", "t");
    fixture.write("same", "t");
    let applied = apply(&fixture, &stage, &[]).unwrap();
    let read = |path: &str| fs::read_to_string(fixture.source().join(path)).unwrap();
    assert_eq!(
        [read("src/a"), read("new/dir/b"), read("file/below"), read("untouched")],
        ["new a", "b", "now a directory", "u"]
    );
    assert!(!fixture.source().join("src/deep").exists(), "directories that became empty are gone");
    let found = fs::metadata(fixture.source().join("src/a")).unwrap();
    assert_eq!((found.mode() & 0o777, found.uid()), (0o640, 4711), "owner and mode stay");
    assert!(fs::metadata(fixture.source().join("run.sh")).unwrap().mode() & 0o100 != 0);
    assert_eq!(applied.unchanged, [path("same")]);
    assert_eq!(applied.applied.len(), 6);
    let again = apply(&fixture, &stage, &[]).unwrap();
    assert_eq!(again.applied, [], "a second time changes nothing");
    let left: Vec<_> = walk(&fixture.source());
    assert!(left.iter().all(|path| !path.contains(".sluice-")), "{left:?}");
}

fn walk(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { walk(&path) } else { vec![path.display().to_string()] };
    entries.flat_map(below).collect()
}

#[test]
fn what_runs_by_itself_needs_permission() {
    let fixture = Fixture::with(&[("a", "a"), (".github/workflows/ci.yml", "on: push\n")]);
    let stage = fixture.start_run();
    fixture.agent_writes("a", "b");
    fixture.agent_writes(".github/workflows/ci.yml", "on: [push, evil]\n");
    fixture.agent_writes(".envrc", "evil");
    fixture.agent_writes(".vscode/tasks.json", "{}");
    let expected =
        [".envrc: protected", ".github/workflows/ci.yml: protected", ".vscode/tasks.json: protected"];
    assert_eq!(refused(apply(&fixture, &stage, &[])), expected);
    assert_eq!(fs::read(fixture.source().join("a")).unwrap(), b"a", "nothing was written");
    assert_eq!(refused(apply(&fixture, &stage, &[".envrc", ".github/**"])), expected[2..]);
    assert_eq!(
        apply(&fixture, &stage, &[".envrc", ".github", ".vscode"]).unwrap().applied.len(),
        4,
        "control"
    );
}

#[test]
fn git_directories_and_links_are_never_applied() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b")]);
    let stage = fixture.start_run();
    fixture.agent_writes(".git/hooks/pre-commit", "evil");
    fixture.agent_writes("sub/.GIT/config", "evil");
    link("/etc/passwd", fixture.repo().join("link"));
    fs::remove_file(fixture.repo().join("a")).unwrap();
    link("b", fixture.repo().join("a"));
    make_fifo(&fixture.repo().join("pipe"));
    fixture.agent_writes("b", "changed");
    let mut found = refused(apply(&fixture, &stage, &["*"]));
    found.sort();
    assert_eq!(found, [".git: git", "a: link", "link: link", "pipe: unreadable", "sub/.GIT: git"]);
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap().within(&[path("b")]);
    let judged = Applicable::judge(&result, &changes, &fixture.source(), &rules(&[])).unwrap();
    assert_eq!(judged.write().unwrap().applied, [path("b")], "control: the rest can be named");
}

#[test]
fn conflicts_are_named_at_once() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b"), ("c", "c"), ("dir/d", "d"), ("fine", "f")]);
    let stage = fixture.start_run();
    for name in ["a", "b", "c", "dir/d", "fine", "added"] {
        fixture.agent_writes(name, "the agent's");
    }
    fixture.write("a", "the user's");
    fs::remove_file(fixture.source().join("b")).unwrap();
    fs::remove_file(fixture.source().join("c")).unwrap();
    fs::create_dir(fixture.source().join("c")).unwrap();
    fixture.write("added", "the user's");
    fs::rename(fixture.source().join("dir"), fixture.dir.path().join("moved")).unwrap();
    link("../moved", fixture.source().join("dir"));
    let expected = ["a", "added", "b", "c", "dir/d"].map(|path| format!("{path}: conflict"));
    assert_eq!(refused(apply(&fixture, &stage, &[])), expected);
    assert_eq!(fs::read(fixture.source().join("fine")).unwrap(), b"f", "nothing was written");
    assert_eq!(fs::read(fixture.dir.path().join("moved/d")).unwrap(), b"d");
}

#[test]
fn a_change_after_judgement_stops_the_writing() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b")]);
    let stage = fixture.start_run();
    fixture.agent_writes("a", "the agent's");
    fixture.agent_writes("b", "the agent's");
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap();
    let judged = || Applicable::judge(&result, &changes, &fixture.source(), &rules(&[])).unwrap();
    let late = judged();
    fixture.write("b", "the user's");
    let stopped = late.write();
    let Err(ApplyError::Io { applied, .. }) = &stopped else { panic!("{stopped:?}") };
    assert_eq!(*applied, [path("a")]);
    assert_eq!(fs::read(fixture.source().join("b")).unwrap(), b"the user's");
    fixture.write("b", "b");
    let late = judged();
    fixture.agent_writes("b", "another");
    assert!(late.write().is_err(), "only what was judged is written");
    assert_eq!(fs::read(fixture.source().join("b")).unwrap(), b"b");
    assert_eq!(judged().write().unwrap().applied, [path("b")], "control");
}

#[test]
fn a_bare_repository_is_never_applied() {
    let fixture = Fixture::with(&[("a", "a"), ("half/HEAD", "ref: refs/heads/main\n"), ("half/x", "x")]);
    fs::create_dir_all(fixture.source().join("half/refs")).unwrap();
    let stage = fixture.start_run();
    for name in ["HEAD", "config", "objects/x", "refs/x"] {
        fixture.agent_writes(&format!("sub/{name}"), "");
    }
    fixture.agent_writes("half/objects/x", "");
    let expected = ["half/objects/x", "sub/HEAD", "sub/config", "sub/objects/x", "sub/refs/x"];
    assert_eq!(refused(apply(&fixture, &stage, &["*"])), expected.map(|path| format!("{path}: git")));
    fs::remove_file(fixture.repo().join("sub/HEAD")).unwrap();
    fs::remove_dir_all(fixture.repo().join("half/objects")).unwrap();
    assert_eq!(apply(&fixture, &stage, &[]).unwrap().applied.len(), 3, "control: no head, no repository");
}

#[test]
fn the_place_of_the_directory_counts() {
    let fixture = Fixture::with(&[("a", "a")]);
    let stage = fixture.start_run();
    fixture.agent_writes("a", "b");
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap();
    let judge = |target: &str, allow: &[&str]| {
        let target = fixture.dir.path().join(target);
        write(&target, "a", "a");
        Applicable::judge(&result, &changes, &target, &rules(allow)).map(|judged| judged.paths().count())
    };
    for target in ["x/.git", "x/.git/hooks", "bare/sub"] {
        ["HEAD", "objects/x", "refs/x"]
            .iter()
            .for_each(|name| write(&fixture.dir.path().join("bare"), name, ""));
        let judged = judge(target, &["*"]);
        assert!(matches!(judged, Err(ApplyError::Files(Error::InGitDir { .. }))), "{target}: {judged:?}");
    }
    for target in ["x/.github", "x/.vscode/sub"] {
        assert!(matches!(judge(target, &[]), Err(ApplyError::Refused { .. })), "{target}");
        assert_eq!(judge(target, &["a"]).unwrap(), 1, "{target}: control");
    }
    fs::create_dir_all(fixture.dir.path().join("y/.claude/worktree/.git")).unwrap();
    assert_eq!(judge("y/.claude/worktree", &[]).unwrap(), 1, "a repository of its own");
}

#[test]
fn a_huge_file_is_refused_unread() {
    let fixture = Fixture::with(&[("a", "a")]);
    let stage = fixture.start_run();
    fs::File::create(fixture.repo().join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let refused = apply(&fixture, &stage, &[]);
    assert!(matches!(refused, Err(ApplyError::Files(Error::ResultTooLarge { .. }))), "{refused:?}");
    fs::File::create(fixture.repo().join("sparse")).unwrap();
    assert_eq!(apply(&fixture, &stage, &[]).unwrap().applied, [path("sparse")], "control");
}

#[test]
fn a_mode_that_the_user_changed_is_a_conflict() {
    let fixture = Fixture::with(&[("a", "a"), ("b", "b")]);
    let stage = fixture.start_run();
    fixture.agent_writes("a", "new");
    fixture.agent_writes("b", "new");
    set_mode(&fixture.repo().join("b"), 0o755);
    ["a", "b"].iter().for_each(|name| set_mode(&fixture.source().join(name), 0o755));
    assert_eq!(refused(apply(&fixture, &stage, &[])), ["a: conflict"], "both made b executable");
    set_mode(&fixture.source().join("a"), 0o644);
    assert_eq!(apply(&fixture, &stage, &[]).unwrap().applied.len(), 2, "control");
}

//! Tests fresh clones: whole history, nothing of the original's settings, nothing of it is run.

use std::fs;

use super::*;
use crate::{CopyBounds, Error, FreshClone};

fn repository() -> Fixture {
    let fixture = Fixture::with(&[("a", "a\n"), ("sub/b", "b\n"), (".env", "committed\n")]);
    let source = fixture.source();
    git(&source, &["init", "-q", "-b", "main"]);
    git(&source, &["add", "-A"]);
    git(&source, &["commit", "-q", "-m", "first"]);
    git(&source, &["remote", "add", "origin", "https://user:token@example.org/x.git"]);
    git(&source, &["config", "user.name", "Another User"]);
    fixture
}

fn make(fixture: &Fixture) -> Result<FreshClone, Error> {
    FreshClone::make(&fixture.stages(), &fixture.source(), CopyBounds::default(), ByteSize(0))
}

#[test]
fn a_clone_has_history_and_no_settings() {
    let fixture = repository();
    let clone = make(&fixture).unwrap();
    assert_eq!(clone.uncommitted_files().unwrap(), 0);
    let selection = clone.select(CopyBounds::default()).unwrap();
    Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |_| {}).unwrap();
    drop((selection, clone));
    assert_eq!(fs::read_dir(fixture.stages()).unwrap().count(), 1, "the clone itself is gone");
    let stage = Stage::open(&fixture.stages(), &fixture.run_id).unwrap();
    assert_eq!(stage.manifest().source_dir(), fixture.source().canonicalize().unwrap());
    stage.unpack(&fixture.tree()).unwrap();
    let repo = fixture.repo();
    let safe = format!("safe.directory={}", repo.display());
    assert!(git(&repo, &["-c", &safe, "log", "--format=%s"]).contains("first"));
    assert_eq!(git(&repo, &["-c", &safe, "status", "--porcelain"]), "");
    assert_eq!(git(&repo, &["-c", &safe, "remote"]), "");
    assert_eq!(git(&repo, &["-c", &safe, "branch", "-a"]).trim(), "* main");
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    assert!(config.contains("[core]") && !config.contains("token") && !config.contains("user"), "{config}");
    for path in ["hooks", "logs"] {
        assert!(!repo.join(".git").join(path).exists(), "{path}");
    }
    let source = fixture.source().display().to_string();
    for file in stage.manifest().entries() {
        let content = fs::read(repo.join(file.path.as_path())).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&content).contains(&source), "{} tells of the original", file.path);
    }
    fixture.agent_writes("a", "changed\n");
    fixture.agent_writes(".git/config", "[core]\nfsmonitor = evil\n");
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap();
    assert_eq!(changes.all().len(), 1, "git's own files are not result");
    assert_eq!(result.hidden().git_dirs, []);
}

#[test]
fn uncommitted_files_are_counted() {
    let fixture = repository();
    fixture.write("a", "changed\n");
    fixture.write("new", "");
    fs::remove_file(fixture.source().join("sub/b")).unwrap();
    let clone = make(&fixture).unwrap();
    assert_eq!(clone.uncommitted_files().unwrap(), 3);
}

#[test]
fn a_hostile_repository_runs_nothing() {
    let fixture = repository();
    let source = fixture.source();
    let touched = fixture.dir.path().join("touched");
    let script = fixture.dir.path().join("evil");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", touched.display())).unwrap();
    set_mode(&script, 0o755);
    let program = script.display().to_string();
    for name in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
        write(&source, &format!(".git/hooks/{name}"), &fs::read_to_string(&script).unwrap());
        set_mode(&source.join(".git/hooks").join(name), 0o755);
    }
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "uploadpack.packObjectsHook",
        "core.sshCommand",
    ] {
        git(&source, &["config", key, &program]);
    }
    fixture.write(".git/info/attributes", "* filter=evil\n");
    fixture.write("a", "changed\n");
    fs::remove_file(&touched).ok();
    let clone = make(&fixture).unwrap();
    assert_eq!(clone.uncommitted_files().unwrap(), 1);
    clone.select(CopyBounds::default()).unwrap();
    assert!(!touched.exists());
    git(&source, &["status", "--porcelain"]);
    assert!(touched.exists(), "control: a plain git runs them");
}

#[test]
fn only_a_repository_can_be_cloned() {
    let fixture = Fixture::with(&[("a", "a")]);
    let clone = || make(&fixture);
    assert!(matches!(clone(), Err(Error::NotARepository { .. })));
    git(&fixture.source(), &["init", "-q"]);
    assert!(matches!(clone(), Err(Error::NotARepository { .. })), "without a commit");
    assert_eq!(fs::read_dir(fixture.stages()).unwrap().count(), 0, "nothing stays");
}

#[test]
fn secrets_of_the_history_are_named() {
    let fixture = repository();
    let source = fixture.source();
    fixture.write("deploy/server.key", "k");
    git(&source, &["add", "-A"]);
    git(&source, &["commit", "-q", "-m", "second"]);
    git(&source, &["rm", "-q", "deploy/server.key"]);
    git(&source, &["commit", "-q", "-m", "third"]);
    let clone = make(&fixture).unwrap();
    assert_eq!(clone.secret_files().unwrap(), [path(".env"), path("deploy/server.key")]);
}

#[test]
fn a_large_repository_is_refused_early() {
    let fixture = repository();
    // Compressed, it has a few bytes.
    fixture.write("bomb", &"0".repeat(2 << 20));
    git(&fixture.source(), &["add", "-A"]);
    git(&fixture.source(), &["commit", "-q", "-m", "bomb"]);
    let make = |max: u64, reserve: u64| {
        let bounds = CopyBounds { files: 100, bytes: ByteSize(max) };
        FreshClone::make(&fixture.stages(), &fixture.source(), bounds, ByteSize(reserve))
    };
    for max in [1000, 1 << 20] {
        let refused = make(max, 0);
        assert!(matches!(refused, Err(Error::LargeRepository { .. })), "{max}: {refused:?}");
    }
    assert!(matches!(make(4 << 20, u64::MAX), Err(Error::NoRoom { .. })));
    assert_eq!(fs::read_dir(fixture.stages()).unwrap().count(), 0, "nothing stays");
    make(4 << 20, 0).expect("the control");
}

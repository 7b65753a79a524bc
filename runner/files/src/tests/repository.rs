//! Tests repositories that this host made for a run: they arrive as they are, and work for the sandbox's user.

use std::os::unix::process::CommandExt;

use platform_core::name::SANDBOX_UID;

use super::*;
use crate::{ChangeForm, CopyBounds, Error};

/// Directories without a file, which git keeps or needs.
const EMPTY_DIRS: [&str; 3] = [".git/refs/tags", ".git/objects/info", ".git/objects/pack"];

/// Makes a repository in the source directory, with a branch of an agent and rules above it.
fn repository() -> Fixture {
    let fixture =
        Fixture::with(&[("a", "a\n"), ("sub/b", "b\n"), (".env", "committed\n"), (".gitignore", "*.log\n")]);
    write(fixture.dir.path(), ".gitignore", "sub\n");
    let source = fixture.source();
    git(&source, &["init", "-q", "-b", "sandbox/run-1"]);
    git(&source, &["add", "-A"]);
    git(&source, &["commit", "-q", "-m", "first"]);
    fs::remove_dir_all(source.join(".git/hooks")).unwrap();
    fixture
}

/// Takes the repository into the workspace.
fn start(fixture: &Fixture) -> Stage {
    let selection = Selection::of_repository(&fixture.source(), CopyBounds::default()).unwrap();
    assert_eq!(selection.left_out(), []);
    Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |_| {}).unwrap();
    let stage = Stage::open(&fixture.stages(), &fixture.run_id).unwrap();
    stage.unpack(&fixture.tree()).unwrap();
    stage
}

/// Runs git in the workspace as the sandbox's user does.
fn agent_git(fixture: &Fixture, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .uid(SANDBOX_UID)
        .gid(SANDBOX_UID);
    git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(arguments).current_dir(fixture.repo());
    let output = git.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_repository_works_in_a_workspace() {
    let fixture = repository();
    start(&fixture);
    for dir in EMPTY_DIRS {
        let mut entries = fs::read_dir(fixture.repo().join(dir)).expect("an empty directory arrives");
        assert!(entries.next().is_none(), "{dir}");
    }
    // The temporary directory is for its user only.
    set_mode(fixture.dir.path(), 0o755);
    assert_eq!(agent_git(&fixture, &["status", "--porcelain"]), "");
    assert_eq!(agent_git(&fixture, &["fsck", "--strict"]), "");
    fixture.agent_writes("a", "changed\n");
    agent_git(&fixture, &["commit", "-q", "-a", "-m", "second"]);
    agent_git(&fixture, &["tag", "v1"]);
    agent_git(&fixture, &["gc", "-q"]);
    assert_eq!(agent_git(&fixture, &["rev-list", "--count", "sandbox/run-1"]), "2");
}

#[test]
fn changes_of_a_repository_are_without_git() {
    let fixture = repository();
    let stage = start(&fixture);
    fixture.agent_writes("a", "changed\n");
    fixture.agent_writes("sub/b", "changed\n");
    fixture.agent_writes("sub/new", "new\n");
    fixture.agent_writes("noise.log", "ignored by the repository's own rules\n");
    fixture.agent_writes(".git/config", "[core]\nfsmonitor = evil\n");
    fixture.agent_writes(".git/hooks/pre-commit", "evil\n");
    fs::remove_file(fixture.repo().join(".env")).unwrap();
    let result = fixture.result(&stage);
    let changes = Changes::between(&stage, &result).unwrap();
    let listed: Vec<_> = changes.all().iter().map(|change| change.path.to_string()).collect();
    // The rules above the source directory are not the repository's: `sub` counts.
    assert_eq!(listed, [".env", "a", "sub/b", "sub/new"]);
    assert_eq!(changes.all()[0].form, ChangeForm::Deleted);
    let text = String::from_utf8(diff(&stage, &result)).unwrap();
    assert!(text.contains("+changed") && !text.contains("evil"), "{text}");
    assert_eq!(result.hidden().git_dirs, []);
}

#[test]
fn a_repository_is_selected_within_bounds() {
    let fixture = repository();
    let bounds = CopyBounds { files: 3, bytes: ByteSize::mib(1) };
    let refused = Selection::of_repository(&fixture.source(), bounds);
    assert!(matches!(refused, Err(Error::Uncopyable { .. })), "{refused:?}");
    assert!(Selection::of_repository(&fixture.source().join("missing"), bounds).is_err());
}

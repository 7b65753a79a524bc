//! Tests workspaces that several runs use, one after the other: what stays, what is new, and traps of earlier agents.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
    time::Duration,
};

use platform_core::{id::RunId, limit::ByteSize, name::SANDBOX_UID};
use platform_runtime::settings::WorkspaceForm;
use runner_files::{CopyBounds, Selection, Stage, stages_dir};
use runner_model::{
    behaviour::BehaviourFile,
    conversation::{Message, Role},
};

use super::{super::InitialContent, BOTH, Fixture, Workspace, entries, mounts_below, until};

const SECRET: &str = "the host's own";

/// Returns the content of a later run, with behaviour files and a directory of files.
fn later(root: &Path) -> InitialContent {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("new.txt"), "new").unwrap();
    let bounds = CopyBounds { files: 10, bytes: ByteSize::mib(1) };
    let selection = Selection::of_repository(source.path(), bounds).unwrap();
    let (stages, run_id) = (stages_dir(root), RunId::parse("r2").unwrap());
    Stage::remove(&stages, &run_id).unwrap();
    Stage::write(&stages, &run_id, &selection, &mut |_progress| {}).unwrap();
    let files = Stage::open(&stages, &run_id).unwrap();
    let question = Message { role: Role::User, content: "second".to_owned() };
    let texts = [(BehaviourFile::Agents, "new rules"), (BehaviourFile::Memory, "no memory")];
    InitialContent {
        conversation: vec![question],
        behaviour: texts.map(|(file, text)| (file, text.to_owned())).into(),
        files: Some(files),
    }
}

/// Opens the workspace of `fixture` as the next run does.
async fn reopen(fixture: &Fixture) -> Workspace {
    let lock = fixture.all.lock(&fixture.id).await.unwrap();
    let workspace = fixture.all.durable().reopen(&fixture.id, &lock).await.unwrap();
    workspace.refresh(later(&fixture.root)).await.unwrap();
    assert_fresh(workspace.path());
    workspace
}

/// Asserts that `tree` holds the content of the later run, in plain files of the agent.
fn assert_fresh(tree: &Path) {
    for (file, content) in [
        (".cogni/prompt.txt", "second"),
        (".cogni/messages.json", "second"),
        (".cogni/conversation.md", "second"),
        ("AGENTS.md", "new rules"),
        ("repo/new.txt", "new"),
    ] {
        let path = tree.join(file);
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(found.is_file() && found.nlink() == 1 && found.uid() == SANDBOX_UID, "{file}: {found:?}");
        assert!(fs::read_to_string(&path).unwrap().contains(content), "{file}");
    }
    assert_eq!(entries(&tree.join("repo")), ["new.txt"], "nothing of an earlier directory is left");
}

/// Removes the workspace of `fixture`, and the files of the later run.
async fn remove(fixture: &Fixture) {
    fs::remove_dir_all(stages_dir(&fixture.root)).unwrap();
    fixture.remove().await;
}

#[tokio::test]
async fn a_later_run_finds_the_memory_and_a_new_turn() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        for (file, content) in [
            ("MEMORY.md", "remembered"),
            (".cogni/index.json", "{}"),
            (".cogni/pr.md", "of the first run"),
            ("AGENTS.md", "old rules"),
            ("own.txt", "its own"),
        ] {
            fs::write(tree.join(file), content).unwrap();
        }
        fs::create_dir_all(tree.join("repo/deep/er")).unwrap();
        fs::write(tree.join("repo/deep/er/old.txt"), "old").unwrap();
        fixture.all.put_away(&fixture.id).await.unwrap();
        let is_mounted = !mounts_below(&fixture.root).is_empty();
        assert!(!is_mounted, "{form:?}: it takes disk space alone");
        fixture.all.put_away(&fixture.id).await.unwrap();

        let workspace = reopen(&fixture).await;
        let read = |file: &str| fs::read_to_string(workspace.path().join(file)).unwrap();
        assert_eq!(read("MEMORY.md"), "remembered", "{form:?}: not what the operator's file says");
        assert_eq!((read(".cogni/index.json").as_str(), read("own.txt").as_str()), ("{}", "its own"));
        assert!(!workspace.path().join(".cogni/pr.md").exists(), "{form:?}");
        assert_eq!(workspace.exceeded().await.unwrap(), None);
        remove(&fixture).await;
    }
}

#[tokio::test]
async fn links_of_an_earlier_run_lead_nowhere() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, SECRET).unwrap();
        // Each of these catches a plain write or a plain removal.
        let bait = outside.path().join("bait");
        for planted in [".cogni/messages.json", "AGENTS.md"] {
            fs::remove_file(tree.join(planted)).ok();
            fs::write(&bait, SECRET).unwrap();
            symlink(&bait, tree.join(planted)).unwrap();
            fs::write(tree.join(planted), "followed").unwrap();
            assert_eq!(fs::read_to_string(&bait).unwrap(), "followed", "control: {form:?} {planted}");
            fs::remove_file(tree.join(planted)).unwrap();
            symlink(&secret, tree.join(planted)).unwrap();
        }
        fs::create_dir(outside.path().join("emptied")).unwrap();
        fs::write(outside.path().join("emptied/file"), SECRET).unwrap();
        symlink(outside.path().join("emptied"), tree.join("repo")).unwrap();
        for entry in fs::read_dir(tree.join("repo")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        assert_eq!(entries(&outside.path().join("emptied")), [""; 0], "control: {form:?} repo");
        fs::remove_file(tree.join("repo")).unwrap();
        symlink(outside.path(), tree.join("repo")).unwrap();
        // A second name of a file that stays.
        fs::write(tree.join("MEMORY.md"), "remembered").unwrap();
        fs::remove_file(tree.join(".cogni/prompt.txt")).unwrap();
        fs::hard_link(tree.join("MEMORY.md"), tree.join(".cogni/prompt.txt")).unwrap();

        let workspace = reopen(&fixture).await;
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET, "{form:?}");
        assert_eq!(fs::read_to_string(workspace.path().join("MEMORY.md")).unwrap(), "remembered");
        // The whole directory leads out.
        fs::rename(tree.join(".cogni"), tree.join("moved")).unwrap();
        fs::write(outside.path().join("prompt.txt"), SECRET).unwrap();
        symlink(outside.path(), tree.join(".cogni")).unwrap();
        reopen(&fixture).await;
        assert_eq!(fs::read_to_string(outside.path().join("prompt.txt")).unwrap(), SECRET, "{form:?}");
        assert_eq!(fs::read_to_string(tree.join("moved/prompt.txt")).unwrap(), "second", "{form:?}");
        assert!(!outside.path().join("messages.json").exists(), "{form:?}");
        remove(&fixture).await;
    }
}

#[tokio::test]
async fn entries_of_other_kinds_are_replaced() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        for directory in [".cogni/messages.json/deep", "AGENTS.md/deep"] {
            fs::remove_file(tree.join(directory).parent().unwrap()).ok();
            fs::create_dir_all(tree.join(directory)).unwrap();
        }
        fs::write(tree.join("repo"), "a file").unwrap();
        // The agent has closed everything to itself.
        for closed in [".cogni/messages.json", ".cogni", "AGENTS.md", "."] {
            fs::set_permissions(tree.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        reopen(&fixture).await;
        assert_eq!(fs::metadata(tree).unwrap().mode() & 0o777, 0o755, "{form:?}");
        fs::remove_dir_all(tree.join(".cogni")).unwrap();
        fs::write(tree.join(".cogni"), "a file").unwrap();
        reopen(&fixture).await;
        fs::remove_dir_all(tree.join(".cogni")).unwrap();
        reopen(&fixture).await;
        remove(&fixture).await;
    }
}

/// A person may have read it meanwhile, which makes an image read-only.
#[tokio::test]
async fn a_workspace_that_was_read_is_writable_again() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    fixture.all.keep(&fixture.id).await.unwrap();
    let refused = fs::write(fixture.tree().join("file"), "x").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "control");
    reopen(&fixture).await;
    remove(&fixture).await;
}

#[tokio::test]
async fn one_process_at_a_time_writes_into_it() {
    let fixture = Fixture::of(WorkspaceForm::Directory).await;
    let held = fixture.all.lock(&fixture.id).await.unwrap();
    let second = fixture.all.lock(&fixture.id);
    tokio::pin!(second);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut second).await;
    assert!(early.is_err(), "{early:?}");
    drop(held);
    second.await.unwrap();
    fixture.remove().await;
}

#[tokio::test]
async fn a_mount_waits_for_a_copy_of_the_mounts() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    fixture.all.keep(&fixture.id).await.unwrap();
    // Each container begins with such a copy.
    let mut copy = Command::new("unshare").args(["--mount", "sleep", "2"]).spawn().unwrap();
    let program = format!("/proc/{}/comm", copy.id());
    until("the mounts are copied", || fs::read_to_string(&program).unwrap() == "sleep\n").await;
    fixture.unmount();
    fixture.all.adopt(&fixture.id).await.unwrap();
    assert!(copy.try_wait().unwrap().is_some(), "it was mounted beside the copy");
    fs::write(fixture.tree().join("late"), "").unwrap();
    fixture.remove().await;
}

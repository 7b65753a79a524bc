//! Tests workspaces of warm containers: a conversation is written while a hostile process may be running there.

use std::os::unix::fs::symlink;

use platform_core::{
    name::path::{COGNI_DIR, CONVERSATION_FILE, MESSAGES_FILE, START_FILE},
    start::Start,
};

use super::*;

/// Creates a waiting workspace below a temporary directory.
async fn waiting(form: WorkspaceForm) -> (Fixture, Workspace, WorkspaceId) {
    let fixture = Fixture::of(form).await;
    let id = Workspaces::new_id();
    let workspace = fixture.all.create_waiting(&id).await.unwrap();
    (fixture, workspace, id)
}

fn start(program: &str) -> Start {
    Start::new(vec![program.to_owned()], [].into(), "/workspace".to_owned()).unwrap()
}

#[tokio::test]
async fn a_warm_workspace_is_empty_until_furnished() {
    for form in BOTH {
        let (fixture, workspace, id) = waiting(form).await;
        assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0, "{form:?}");
        assert!(fixture.all.waits(&id));
        assert!(!fixture.all.waits(&fixture.id), "one that was made for a run does not");
        workspace.furnish(content()).await.unwrap();
        for file in [MESSAGES_FILE, CONVERSATION_FILE] {
            let read = |tree: &Path| fs::read(tree.join(COGNI_DIR).join(file)).unwrap();
            assert_eq!(read(workspace.path()), read(fixture.tree()), "as in one that was made with it");
            let found = fs::metadata(workspace.path().join(COGNI_DIR).join(file)).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (1001, 1001, 0o644));
        }
        fixture.all.remove(&id).await.unwrap();
        assert!(!fixture.root.join(id.as_str()).exists());
    }
}

#[tokio::test]
async fn the_first_start_file_stays() {
    let (fixture, workspace, id) = waiting(WorkspaceForm::Directory).await;
    let dir = workspace.start_dir().unwrap().to_owned();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o755, "the sandbox's user watches it");
    let results = futures_util::future::join_all(
        (0..8).map(|n| workspace.place_start_file(start(&format!("agent-{n}")))),
    )
    .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let first: Start = serde_json::from_slice(&fs::read(dir.join(START_FILE)).unwrap()).unwrap();
    workspace.place_start_file(start("late")).await.unwrap();
    let still: Start = serde_json::from_slice(&fs::read(dir.join(START_FILE)).unwrap()).unwrap();
    assert_eq!(first, still);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(fs::metadata(dir.join(START_FILE)).unwrap().mode() & 0o7777, 0o644);
    assert!(!fixture.all.waits(&id));
    let again = fixture.all.adopt(&id).await.unwrap();
    assert_eq!(again.start_dir(), Some(dir.as_path()));
    fixture.workspace.place_start_file(start("unread")).await.unwrap();
    assert_eq!(fixture.workspace.start_dir(), None, "without a waiting container it has no effect");
}

/// Obstacles a first process could put in the way, each leading to `outside`.
const TRAPS: [fn(&Path, &Path); 4] = [
    |tree, outside| symlink(outside, tree.join(COGNI_DIR)).unwrap(),
    |tree, outside| {
        fs::create_dir(tree.join(COGNI_DIR)).unwrap();
        symlink(outside.join("victim"), tree.join(COGNI_DIR).join(MESSAGES_FILE)).unwrap();
    },
    |tree, outside| {
        fs::create_dir(tree.join(COGNI_DIR)).unwrap();
        symlink(outside.join("new"), tree.join(COGNI_DIR).join(CONVERSATION_FILE)).unwrap();
    },
    |tree, outside| {
        fs::create_dir(tree.join(COGNI_DIR)).unwrap();
        fs::hard_link(outside.join("victim"), tree.join(COGNI_DIR).join(MESSAGES_FILE)).unwrap();
    },
];

#[tokio::test]
async fn nothing_is_written_through_planted_files() {
    for (at, trap) in TRAPS.into_iter().enumerate() {
        let (fixture, workspace, _id) = waiting(WorkspaceForm::Directory).await;
        let outside = fixture.root.parent().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "as it was").unwrap();
        let before = fs::metadata(outside.join("victim")).unwrap();
        trap(workspace.path(), &outside);
        let error = workspace.furnish(content()).await.unwrap_err();
        assert!(report::chain(&error).contains("write the conversation"), "{at}: {error}");
        assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "as it was", "{at}");
        let after = fs::metadata(outside.join("victim")).unwrap();
        assert_eq!((after.uid(), after.mode()), (before.uid(), before.mode()), "{at}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{at}");
        // The control: a plain write to the path is led outside.
        let written = fs::write(workspace.path().join(COGNI_DIR).join(MESSAGES_FILE), "led astray");
        let harmed = fs::read_dir(&outside).unwrap().count() > 1
            || fs::read_to_string(outside.join("victim")).unwrap() != "as it was";
        assert_eq!(written.is_ok() && harmed, at != 2, "{at}");
    }
}

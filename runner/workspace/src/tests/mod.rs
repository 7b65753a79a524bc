//! Tests workspaces of both forms: their creation, bounds, adoption and removal.

mod hostile;
mod reopened;
mod states;
mod waiting;
mod watching;

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use platform_core::{
    id::{InstallationId, WorkspaceId},
    limit::ByteSize,
};
use platform_runtime::{
    report,
    settings::{Sandbox, WorkspaceForm},
};
use runner_model::conversation::{Message, Role};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::{Error, InitialContent, Workspace, Workspaces};

const BOTH: [WorkspaceForm; 2] = [WorkspaceForm::Image, WorkspaceForm::Directory];

fn settings(dir: &Path, form: WorkspaceForm) -> Sandbox {
    Sandbox {
        docker_socket: "/nowhere/docker.sock".into(),
        state_dir: "/nowhere".into(),
        workspace_dir: dir.join("workspaces"),
        gateway_dir: dir.join("gateways"),
        workspaces: form,
        workspace_size: ByteSize::mib(64),
        max_workspace_files: Some(8192),
        disk_reserve: ByteSize(0),
        kept_workspaces_size: ByteSize::mib(64),
        installation: InstallationId::parse("test").unwrap(),
    }
}

/// Fixture of a test: workspaces below a temporary directory, and one of them.
struct Fixture {
    all: Workspaces,
    id: WorkspaceId,
    workspace: Workspace,
    root: PathBuf,
    _dir: Unmounted,
}

/// A directory that can be removed whatever a failed test has left mounted in it.
struct Unmounted(tempfile::TempDir);

impl Drop for Unmounted {
    fn drop(&mut self) {
        for point in mounts_below(self.0.path()) {
            rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH).ok();
        }
    }
}

impl Fixture {
    async fn of(form: WorkspaceForm) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::with(settings(dir.path(), form), dir).await
    }

    async fn with(settings: Sandbox, dir: tempfile::TempDir) -> Self {
        let (all, id) = (Workspaces::open(&settings).unwrap(), Workspaces::new_id());
        let dir = Unmounted(dir);
        let workspace = all.create(&id, content()).await.unwrap();
        Self { all, id, workspace, root: settings.workspace_dir, _dir: dir }
    }

    fn tree(&self) -> &Path {
        self.workspace.path()
    }

    /// Unmounts the tree, as a restart of the machine does.
    fn unmount(&self) {
        self.all.root.paths(&self.id).unmount().unwrap();
    }

    /// Removes the workspace and asserts that nothing is left: no file, no mount, no device.
    async fn remove(&self) {
        self.all.remove(&self.id).await.unwrap();
        self.assert_gone();
        self.without_devices().await;
    }

    fn assert_gone(&self) {
        assert_eq!(entries(&self.root), [""; 0]);
        assert_eq!(mounts_below(&self.root), Vec::<PathBuf>::new());
    }

    /// Waits for the loop devices to go. A process that creates a container has copies of all mounts for a moment.
    async fn without_devices(&self) {
        until("the loop devices are gone", || devices_below(&self.root).is_empty()).await;
    }
}

/// Waits until `is_so` returns true; `what` describes that condition.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("not so: {what}"));
}

/// Returns the content of a workspace for a run that asks one question.
fn content() -> InitialContent {
    let question = Message { role: Role::User, content: "hello \"there\"".to_owned() };
    InitialContent { conversation: vec![question], ..InitialContent::default() }
}

fn entries(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    points.filter(|point| point.starts_with(dir)).collect()
}

/// Returns the files below `dir` that back loop devices.
fn devices_below(dir: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| Path::new(file).starts_with(dir)).collect()
}

/// Writes into `path` until an error, such as a full disk, and returns the error.
fn fill(path: &Path) -> io::Error {
    let mut file = fs::File::create(path).unwrap();
    let piece = vec![7; 1 << 20];
    loop {
        if let Err(error) = file.write_all(&piece).and_then(|()| file.sync_data()) {
            return error;
        }
    }
}

#[tokio::test]
async fn a_workspace_belongs_to_the_sandbox_user() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        assert_eq!(entries(tree), [".cogni"], "{form:?}");
        for (path, mode) in [
            ("", 0o755),
            (".cogni", 0o755),
            (".cogni/messages.json", 0o644),
            (".cogni/conversation.md", 0o644),
            (".cogni/prompt.txt", 0o644),
        ] {
            let found = fs::metadata(tree.join(path)).unwrap();
            assert_eq!(
                (found.uid(), found.gid(), found.mode() & 0o7777),
                (1001, 1001, mode),
                "{form:?} {path}"
            );
        }
        let json = fs::read(tree.join(".cogni/messages.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json, serde_json::json!([{ "role": "user", "content": "hello \"there\"" }]));
        assert!(fs::read_to_string(tree.join(".cogni/conversation.md")).unwrap().contains("## user\n"));
        assert_eq!(fs::read_to_string(tree.join(".cogni/prompt.txt")).unwrap(), "hello \"there\"");
        assert_eq!(fs::metadata(&fixture.root).unwrap().mode() & 0o777, 0o700);
        fixture.remove().await;
    }
}

#[tokio::test]
async fn workspaces_are_listed_and_removed_one_by_one() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let other = Workspaces::new_id();
        fixture.all.create(&other, InitialContent::default()).await.unwrap();
        fs::create_dir(fixture.root.join("foreign")).unwrap();
        let mut found = fixture.all.list().unwrap();
        found.sort();
        let mut expected = [fixture.id.clone(), other.clone()];
        expected.sort();
        assert_eq!(found, expected);
        fixture.all.remove(&other).await.unwrap();
        fixture.all.remove(&other).await.unwrap();
        assert_eq!(fixture.all.list().unwrap(), std::slice::from_ref(&fixture.id));
        fs::remove_dir(fixture.root.join("foreign")).unwrap();
        fixture.remove().await;
    }
}

#[tokio::test]
async fn a_workspace_is_made_once() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        fs::write(fixture.tree().join("work"), "done").unwrap();
        let again = fixture.all.create(&fixture.id, InitialContent::default()).await.unwrap_err();
        assert!(matches!(again, Error::Taken { .. }), "{again:?}");
        assert_eq!(fs::read(fixture.tree().join("work")).unwrap(), b"done", "the first one is untouched");
        fixture.remove().await;
    }
}

#[tokio::test]
async fn many_workspaces_are_made_at_once() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let others = (0..24).map(|_| async {
        let id = Workspaces::new_id();
        let workspace = fixture.all.create(&id, content()).await.unwrap();
        fs::write(workspace.path().join("whose"), id.as_str()).unwrap();
        assert_eq!(fs::read_to_string(workspace.path().join("whose")).unwrap(), id.as_str());
        fixture.all.remove(&id).await.unwrap();
    });
    futures_util::future::join_all(others).await;
    fixture.remove().await;
}

#[tokio::test]
async fn a_failed_creation_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let settings =
        Sandbox { max_workspace_files: Some(1 << 20), ..settings(dir.path(), WorkspaceForm::Image) };
    let all = Workspaces::open(&settings).unwrap();
    let error = report::chain(&all.create(&Workspaces::new_id(), content()).await.unwrap_err());
    assert!(error.contains("mkfs.ext4 failed on") && error.contains("inode"), "{error}");
    assert_eq!(entries(&settings.workspace_dir), [""; 0]);
}

#[tokio::test]
async fn an_abandoned_creation_is_undone() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let id = Workspaces::new_id();
    let image = fixture.root.join(id.as_str()).join("image");
    tokio::select! {
        biased;
        () = until("it is half made", || image.exists()) => {}
        made = fixture.all.create(&id, InitialContent::default()) => panic!("it was made before it was dropped: {made:?}"),
    }
    until("nothing of it is left", || entries(&fixture.root) == [fixture.id.as_str()]).await;
    fixture.remove().await;
}

#[tokio::test]
async fn an_image_bounds_bytes_and_files() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let image = fixture.root.join(fixture.id.as_str()).join("image");
    let taken = || fs::metadata(&image).unwrap().blocks() * 512;
    assert!(taken() < 2 << 20, "an empty one takes {}", taken());
    let full = fill(&fixture.tree().join("large"));
    assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
    assert!(taken() > 48 << 20 && taken() <= 64 << 20, "{}", taken());
    fs::remove_file(fixture.tree().join("large")).unwrap();
    fixture.all.keep(&fixture.id).await.unwrap();
    assert!(taken() < 12 << 20, "what is deleted is the host's again, but for {}", taken());
    let refused = fs::write(fixture.tree().join("late"), "").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem, "what is kept stays as it is: {refused}");
    fixture.unmount();
    fixture.all.adopt(&fixture.id).await.unwrap();
    let many = (0..).find_map(|number| fs::write(fixture.tree().join(number.to_string()), "").err()).unwrap();
    assert_eq!(many.kind(), io::ErrorKind::StorageFull, "{many}");
    let made = entries(fixture.tree()).len();
    assert!((7000..9000).contains(&made), "{made} files of 8192");
    fixture.remove().await;
}

#[tokio::test]
async fn an_enterable_root_is_refused_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), WorkspaceForm::Auto);
    fs::create_dir(&settings.workspace_dir).unwrap();
    fs::set_permissions(&settings.workspace_dir, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Workspaces::open(&settings).unwrap_err();
    assert!(report::chain(&refused).contains("chmod 700"), "{refused:?}");
    assert_eq!(fs::metadata(&settings.workspace_dir).unwrap().mode() & 0o777, 0o777);
}

#[test]
fn a_user_who_cannot_give_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), WorkspaceForm::Directory);
    let check = || Workspaces::check_root(&settings);
    check().expect("control: this test must run as root");
    // Capabilities are those of a thread.
    let refused = std::thread::scope(|scope| {
        let weakened = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::CHOWN);
            set_capabilities(None, sets).unwrap();
            check()
        });
        weakened.join().unwrap()
    });
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("use root; the group docker is not enough"), "{message}");
}

#[tokio::test]
async fn disk_space_counts_promises_and_the_reserve() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let room = fixture.all.disk_space().unwrap();
    assert!(room.is_enough() && room.to_string().contains("of it promised to runs"), "{room}");
    fixture.all.keep(&fixture.id).await.unwrap();
    let room = fixture.all.disk_space().unwrap();
    assert!(!room.to_string().contains("promised"), "what is kept does not grow: {room}");
    let reserved = fixture.all.reserve().unwrap();
    let room = fixture.all.disk_space().unwrap();
    assert!(room.to_string().contains("promised"), "what is being made will: {room}");
    drop(reserved);
    let large = fixture.all.sized(Some(ByteSize(1 << 60))).disk_space().unwrap();
    assert!(!large.is_enough(), "one that is larger than others needs more: {large}");
    assert!(!fixture.all.disk_space().unwrap().to_string().contains("promised"));
    fixture.remove().await;
    for form in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let greedy = Sandbox { disk_reserve: ByteSize(1 << 60), ..settings(dir.path(), form) };
        let refused = Workspaces::open(&greedy).unwrap().disk_space().unwrap().enough().unwrap_err();
        assert!(refused.to_string().contains("sandbox.disk_reserve"), "{refused}");
    }
}

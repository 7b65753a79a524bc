//! Tests that a workspace is adopted or removed, whatever state it is in.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use platform_runtime::settings::WorkspaceForm;
use rustix::fs::{FlockOperation, flock};

use super::{
    super::{Durability, Error, WorkspaceBounds, Workspaces, image, paths::WorkspacePaths},
    BOTH, Fixture, Unmounted, content, devices_below, entries, mounts_below, settings,
};

/// Creates a second workspace with `make`, and asserts that exactly this one is removed.
async fn is_removed(state: &str, make: impl FnOnce(&WorkspacePaths, WorkspaceBounds)) {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let id = Workspaces::new_id();
    let paths = WorkspacePaths::of(&fixture.root, id.as_str());
    make(&paths, fixture.all.bounds);
    assert!(fixture.root.join(id.as_str()).exists(), "{state}: nothing is there");
    fixture.all.remove(&id).await.unwrap_or_else(|error| panic!("{state}: {error:?}"));
    assert_eq!(entries(&fixture.root), [fixture.id.as_str()], "{state}");
    assert!(fixture.tree().join(".cogni").exists(), "{state}: another one is gone, too");
    fixture.remove().await;
}

#[tokio::test]
async fn a_half_made_workspace_is_removed() {
    is_removed("a directory", |paths, _| fs::create_dir(paths.tree.parent().unwrap()).unwrap()).await;
    is_removed("no image", |paths, _| paths.create_dirs().unwrap()).await;
    is_removed("an empty image", |paths, _| {
        paths.create_dirs().unwrap();
        fs::write(&paths.image, "").unwrap();
    })
    .await;
    is_removed("an image without mount", |paths, bounds| {
        paths.create_dirs().unwrap();
        image::create(paths, bounds).unwrap();
    })
    .await;
    is_removed("a mount with nothing in it", mounted).await;
}

fn mounted(paths: &WorkspacePaths, bounds: WorkspaceBounds) {
    paths.create_dirs().unwrap();
    image::create(paths, bounds).unwrap();
    image::mount(paths, Durability::Run).unwrap();
}

#[tokio::test]
async fn unusual_mounts_are_removed() {
    is_removed("mounted twice", |paths, bounds| {
        mounted(paths, bounds);
        let again = Command::new("mount").arg("--bind").args([&paths.tree, &paths.tree]).status().unwrap();
        assert!(again.success());
        assert_eq!(mounts_below(&paths.tree).len(), 2);
    })
    .await;
    is_removed("a mount whose image was deleted", |paths, bounds| {
        mounted(paths, bounds);
        fs::remove_file(&paths.image).unwrap();
    })
    .await;
    is_removed("another file system on its tree", |paths, _| {
        paths.create_dirs().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&paths.tree).status().unwrap();
        assert!(mounted.success());
        fs::write(paths.tree.join("file"), "").unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_open_workspace_is_removed() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let open = fs::File::open(fixture.tree().join(".cogni/messages.json")).unwrap();
    let naive = rustix::mount::unmount(fixture.tree(), rustix::mount::UnmountFlags::empty());
    assert_eq!(naive, Err(rustix::io::Errno::BUSY), "control: it cannot just be unmounted");
    fixture.all.remove(&fixture.id).await.unwrap();
    fixture.assert_gone();
    assert_eq!(devices_below(&fixture.root).len(), 1, "control: a device that is in use is seen");
    drop(open);
    fixture.without_devices().await;
}

/// A process in its own mount namespace, which has copies of all mounts of this moment.
struct Holder(Child);

impl Holder {
    /// Starts a process that has `tree` mounted elsewhere as well, as a container has it.
    fn of(tree: &Path) -> Self {
        Self::after("mount --bind \"$0\" /mnt", tree)
    }

    fn after(script: &str, tree: &Path) -> Self {
        let script = format!("{script} && echo && exec sleep 60");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]).arg(tree);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_workspace_in_use_goes_with_its_container() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let holder = Holder::of(fixture.tree());
    fixture.all.remove(&fixture.id).await.unwrap();
    fixture.assert_gone();
    assert_eq!(devices_below(&fixture.root).len(), 1, "control: a device that is in use is seen");
    drop(holder);
    fixture.without_devices().await;
}

#[tokio::test]
async fn copies_of_a_mount_go_with_its_directory() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let holder = Holder::after("true", fixture.tree());
    fixture.unmount();
    assert_eq!(devices_below(&fixture.root).len(), 1, "control: the other namespace has it");
    fixture.remove().await;
    drop(holder);
}

#[tokio::test]
async fn an_abandoned_workspace_is_adopted_unchanged() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        fs::write(fixture.tree().join("work"), "done").unwrap();
        for away in [false, true] {
            if away {
                fixture.unmount();
                assert_eq!(mounts_below(&fixture.root), Vec::<PathBuf>::new());
            }
            // The form of new workspaces does not matter for one that exists.
            for other in BOTH {
                let again = Workspaces::open(&settings(fixture.root.parent().unwrap(), other)).unwrap();
                assert_eq!(again.list().unwrap(), std::slice::from_ref(&fixture.id));
                let adopted = again.adopt(&fixture.id).await.unwrap();
                assert_eq!(fs::read(adopted.path().join("work")).unwrap(), b"done", "{form:?} {away}");
                assert_eq!(adopted.watched.is_some(), form == WorkspaceForm::Directory);
            }
        }
        fixture.remove().await;
        let gone = fixture.all.adopt(&fixture.id).await.unwrap_err();
        assert!(matches!(gone, Error::Unknown { .. }), "{gone:?}");
    }
}

#[tokio::test]
async fn a_workspace_in_use_is_mounted_again() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let holder = Holder::of(fixture.tree());
    fixture.unmount();
    let inside = PathBuf::from(format!("/proc/{}/root/mnt", holder.0.id()));
    fs::write(inside.join("late"), "from inside").unwrap();
    let adopted = fixture.all.adopt(&fixture.id).await.unwrap();
    assert_eq!(fs::read(adopted.path().join("late")).unwrap(), b"from inside");
    assert_eq!(devices_below(&fixture.root).len(), 1);
    drop(holder);
    fixture.remove().await;
}

#[tokio::test]
async fn a_workspace_is_repaired_after_a_crash() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    fs::write(fixture.tree().join("work"), "done").unwrap();
    rustix::fs::syncfs(fs::File::open(fixture.tree()).unwrap()).unwrap();
    // The image as it is while it is mounted, which is how it is after a power failure.
    let id = Workspaces::new_id();
    let paths = WorkspacePaths::of(&fixture.root, id.as_str());
    paths.create_dirs().unwrap();
    fs::copy(WorkspacePaths::of(&fixture.root, fixture.id.as_str()).image, &paths.image).unwrap();
    let state = Command::new("dumpe2fs").arg("-h").arg(&paths.image).output().unwrap();
    assert!(String::from_utf8_lossy(&state.stdout).contains("needs_recovery"), "control: {state:?}");
    let adopted = fixture.all.adopt(&id).await.unwrap();
    assert_eq!(fs::read(adopted.path().join("work")).unwrap(), b"done");
    fixture.all.remove(&id).await.unwrap();
    // An image beyond repair is refused, and can be removed.
    paths.create_dirs().unwrap();
    fs::write(&paths.image, "not an image").unwrap();
    let refused = fixture.all.adopt(&id).await.unwrap_err();
    assert!(matches!(refused, Error::Program { program: "e2fsck", .. }), "{refused:?}");
    fixture.all.remove(&id).await.unwrap();
    fixture.remove().await;
}

/// A reader that finds a file missing must be able to tell that the whole workspace is.
#[tokio::test]
async fn a_workspace_is_removed_at_once() {
    const FILES: u32 = 3000;
    let fixture = Fixture::of(WorkspaceForm::Directory).await;
    let tree = fixture.tree().to_owned();
    for index in 0..FILES {
        fs::write(tree.join(index.to_string()), "").unwrap();
    }
    let watcher = std::thread::spawn(move || {
        let is_missing = |index: u32| !tree.join(index.to_string()).exists();
        while !(0..FILES).any(is_missing) {}
        tree.exists()
    });
    fixture.remove().await;
    assert!(!watcher.join().unwrap(), "files went before their workspace");
}

#[tokio::test]
async fn a_broken_off_removal_is_finished() {
    let fixture = Fixture::of(WorkspaceForm::Directory).await;
    let left = fixture.root.join(".removing-left/tree/sub");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("file"), "").unwrap();
    super::super::remove_forgotten(&fixture.root).await;
    assert_eq!(entries(&fixture.root), [fixture.id.as_str()]);
    assert!(fixture.tree().exists(), "control");
    fixture.remove().await;
}

#[tokio::test]
async fn only_abandoned_trials_are_removed() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let [left, young] = [".trial-left", ".trial-young"].map(|name| WorkspacePaths::of(&fixture.root, name));
    for trial in [&left, &young] {
        mounted(trial, fixture.all.bounds);
    }
    let lock = fs::File::open(young.tree.parent().unwrap()).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let again = Workspaces::open(&settings(fixture.root.parent().unwrap(), WorkspaceForm::Image)).unwrap();
    assert!(young.tree.exists() && !left.tree.exists());
    assert_eq!(again.list().unwrap(), std::slice::from_ref(&fixture.id));
    young.remove().unwrap();
    again.create(&Workspaces::new_id(), content()).await.unwrap();
    for id in again.list().unwrap() {
        again.remove(&id).await.unwrap();
    }
    fixture.assert_gone();
    fixture.without_devices().await;
}

#[test]
fn a_root_that_cannot_be_written_is_refused() {
    let dir = Unmounted(tempfile::tempdir().unwrap());
    let settings = settings(dir.0.path(), WorkspaceForm::Directory);
    Workspaces::check_root(&settings).expect("the control");
    let root = &settings.workspace_dir;
    let mount = ["-t", "tmpfs", "-o", "ro,mode=700", "none"];
    assert!(Command::new("mount").args(mount).arg(root).status().unwrap().success());
    let error = Workspaces::check_root(&settings).unwrap_err().to_string();
    assert_eq!(error, format!("cannot write to {}", root.display()));
}

//! Directories are measured, images bound themselves.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use futures_util::FutureExt;
use platform_core::limit::ByteSize;
use platform_runtime::settings::{Sandbox, WorkspaceForm};

use super::{super::Exceeded, Ground, settings};

async fn watched(size: ByteSize, files: u64) -> Ground {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Sandbox {
        workspace_size: size,
        workspace_files: files,
        ..settings(dir.path(), WorkspaceForm::Directory)
    };
    Ground::with(bounds, dir).await
}

fn look(ground: &Ground) -> Option<Exceeded> {
    ground.workspace.watched.as_ref().unwrap().measure().unwrap()
}

#[tokio::test]
async fn a_directory_that_grows_is_noticed() {
    let ground = watched(ByteSize::mib(4), 1000).await;
    fs::write(ground.tree().join("file"), vec![7; 3 << 20]).unwrap();
    assert_eq!(look(&ground), None);
    let grows = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        fs::write(ground.tree().join("more"), vec![7; 2 << 20]).unwrap();
    };
    let (exceeded, ()) = tokio::join!(ground.workspace.watch(), grows);
    assert_eq!(exceeded, Exceeded::Size(ByteSize::mib(4)));
    assert_eq!(exceeded.to_string(), "its workspace grew beyond 4 MiB");
    ground.remove().await;
}

#[tokio::test]
async fn link_targets_and_second_names_do_not_count() {
    let ground = watched(ByteSize::mib(4), 1000).await;
    let outside = ground.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("large"), vec![7; 8 << 20]).unwrap();
    symlink(&outside, ground.tree().join("link")).unwrap();
    fs::write(ground.tree().join("file"), vec![7; 3 << 20]).unwrap();
    fs::hard_link(ground.tree().join("file"), ground.tree().join("again")).unwrap();
    assert_eq!(look(&ground), None);
    fs::remove_dir_all(outside).unwrap();
    ground.remove().await;
}

#[tokio::test]
async fn too_many_files_and_deep_trees_are_noticed() {
    let ground = watched(ByteSize::mib(64), 100).await;
    for file in 0..100 {
        fs::write(ground.tree().join(file.to_string()), "").unwrap();
    }
    assert_eq!(look(&ground), Some(Exceeded::Files(100)));
    ground.remove().await;

    let ground = watched(ByteSize::mib(64), 10_000).await;
    let mut path = ground.tree().to_owned();
    for _ in 0..1900 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    assert_eq!(look(&ground), None);
    fs::rename(ground.tree().join("d"), ground.root.join("d")).unwrap();
    let mut deeper = ground.tree().to_owned();
    for _ in 0..200 {
        deeper.push("d");
    }
    fs::create_dir_all(&deeper).unwrap();
    fs::rename(ground.root.join("d"), deeper.join("d")).unwrap();
    assert_eq!(look(&ground), Some(Exceeded::Depth));
    ground.remove().await;
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let greedy =
        Sandbox { disk_reserve: ByteSize(1 << 60), ..settings(dir.path(), WorkspaceForm::Directory) };
    let ground = Ground::with(greedy, dir).await;
    assert_eq!(ground.workspace.watch().await, Exceeded::Disk);
    ground.remove().await;
}

#[tokio::test]
async fn an_image_is_not_watched() {
    let ground = Ground::of(WorkspaceForm::Image).await;
    super::fill(&ground.tree().join(Path::new("large")));
    assert_eq!(ground.workspace.watch().now_or_never(), None);
    ground.remove().await;
}

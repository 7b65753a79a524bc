//! Tests that directories are measured, and that images bound themselves.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use futures_util::FutureExt;
use platform_core::limit::ByteSize;
use platform_runtime::settings::{Sandbox, WorkspaceForm};

use super::{super::Exceeded, Fixture, settings};

async fn watched(size: ByteSize, files: u64) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Sandbox {
        workspace_size: size,
        max_workspace_files: Some(files),
        ..settings(dir.path(), WorkspaceForm::Directory)
    };
    Fixture::with(bounds, dir).await
}

fn measure(fixture: &Fixture) -> Option<Exceeded> {
    fixture.workspace.watched.as_ref().unwrap().measure().unwrap()
}

#[tokio::test]
async fn a_directory_that_grows_is_noticed() {
    let fixture = watched(ByteSize::mib(4), 1000).await;
    fs::write(fixture.tree().join("file"), vec![7; 3 << 20]).unwrap();
    assert_eq!(measure(&fixture), None);
    let grows = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        fs::write(fixture.tree().join("more"), vec![7; 2 << 20]).unwrap();
    };
    let (exceeded, ()) = tokio::join!(fixture.workspace.watch(), grows);
    assert_eq!(exceeded, Exceeded::Size(ByteSize::mib(4)));
    assert_eq!(exceeded.to_string(), "its workspace grew beyond 4 MiB");
    fixture.remove().await;
}

#[tokio::test]
async fn link_targets_and_second_names_do_not_count() {
    let fixture = watched(ByteSize::mib(4), 1000).await;
    let outside = fixture.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("large"), vec![7; 8 << 20]).unwrap();
    symlink(&outside, fixture.tree().join("link")).unwrap();
    fs::write(fixture.tree().join("file"), vec![7; 3 << 20]).unwrap();
    fs::hard_link(fixture.tree().join("file"), fixture.tree().join("again")).unwrap();
    assert_eq!(measure(&fixture), None);
    fs::remove_dir_all(outside).unwrap();
    fixture.remove().await;
}

#[tokio::test]
async fn too_many_files_and_deep_trees_are_noticed() {
    let fixture = watched(ByteSize::mib(64), 100).await;
    for file in 0..100 {
        fs::write(fixture.tree().join(file.to_string()), "").unwrap();
    }
    assert_eq!(measure(&fixture), Some(Exceeded::Files(100)));
    fixture.remove().await;

    let fixture = watched(ByteSize::mib(64), 10_000).await;
    let mut path = fixture.tree().to_owned();
    for _ in 0..1900 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    assert_eq!(measure(&fixture), None);
    fs::rename(fixture.tree().join("d"), fixture.root.join("d")).unwrap();
    let mut deeper = fixture.tree().to_owned();
    for _ in 0..200 {
        deeper.push("d");
    }
    fs::create_dir_all(&deeper).unwrap();
    fs::rename(fixture.root.join("d"), deeper.join("d")).unwrap();
    assert_eq!(measure(&fixture), Some(Exceeded::Depth));
    fixture.remove().await;
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let greedy =
        Sandbox { disk_reserve: ByteSize(1 << 60), ..settings(dir.path(), WorkspaceForm::Directory) };
    let fixture = Fixture::with(greedy, dir).await;
    assert_eq!(fixture.workspace.watch().await, Exceeded::Disk);
    fixture.remove().await;
}

#[tokio::test]
async fn an_image_is_not_watched() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    super::fill(&fixture.tree().join(Path::new("large")));
    assert_eq!(fixture.workspace.watch().now_or_never(), None);
    fixture.remove().await;
}

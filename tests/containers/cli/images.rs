//! Tests `sluice images` as it is installed: beside its programs, and without the repository.

use std::{path::PathBuf, process::Output};

use harness::docker::docker;
use platform_runtime::config::Environment;
use tokio::process::Command;

use super::packages::{package, programs};

/// Images of one test, which are removed when it ends.
pub(super) struct OwnImages(pub(super) Vec<String>);

impl Drop for OwnImages {
    fn drop(&mut self) {
        let mut remove = std::process::Command::new("docker");
        // An image that was not built does not count as a second failure.
        drop(remove.args(["rmi", "--force"]).args(&self.0).output());
    }
}

/// An installation below a temporary directory.
struct Installation(tempfile::TempDir);

impl Installation {
    async fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        package(&["install", &programs(), &dir.path().display().to_string()], &[]).await;
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("usr").join(name)
    }

    async fn images(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.path("bin/sluice"));
        command
            .arg("images")
            .args(arguments)
            .env_clear()
            .env("PATH", Environment::capture().get("PATH").unwrap());
        command.current_dir("/").kill_on_drop(true).output().await.unwrap()
    }

    async fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.images(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Returns the base that tests build images on.
async fn base() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/base-image/build.sh");
    let output = Command::new(script).arg("--print").output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn images_are_built_saved_and_loaded() {
    let installation = Installation::make().await;
    let name = |what: &str| format!("sluice-test/{what}:{}", std::process::id());
    let (runtime, git_sync) = (name("runtime"), name("git-sync"));
    let _images = OwnImages(vec![git_sync.clone(), runtime.clone()]);
    let base = base().await;
    let built =
        installation.succeeds(&["build", "sandbox-runtime", "--base", &base, "--image", &runtime]).await;
    assert_eq!(built, runtime);
    installation.succeeds(&["build", "git-sync", "--base", &runtime, "--image", &git_sync]).await;
    let inside = ["run", "--rm", "--network", "none", "--entrypoint", "sh", &runtime, "-c"];
    let what = "id -u; for p in sandbox-init cogni-tool git; do command -v $p; done; test -r /agent/run.mjs && echo readable";
    let said = docker(&[&inside[..], &[what]].concat()).await;
    let expected = "1001\n/usr/local/bin/sandbox-init\n/usr/local/bin/cogni-tool\n/usr/bin/git\nreadable";
    assert_eq!(said.trim(), expected);

    // An archive that is installed with the program is found by itself.
    let nothing = installation.images(&["load"]).await;
    let complaint = String::from_utf8_lossy(&nothing.stderr);
    assert_eq!(nothing.status.code(), Some(2), "{complaint}");
    assert!(
        complaint.contains("no archive of images") && complaint.contains("sluice images build"),
        "{complaint}"
    );
    let archives = installation.path("share/sluicegate/images");
    std::fs::create_dir_all(&archives).unwrap();
    let archive = archives.join("git-sync.tar").display().to_string();
    docker(&["save", "--output", &archive, &git_sync]).await;
    docker(&["rmi", &git_sync]).await;
    assert_eq!(installation.succeeds(&["load"]).await, git_sync);
    docker(&["image", "inspect", &git_sync]).await;
}

#[tokio::test]
async fn an_archive_that_is_none_is_named() {
    let installation = Installation::make().await;
    let archive = installation.path("broken.tar.gz");
    std::fs::write(&archive, "not an archive").unwrap();
    let output = installation.images(&["load", &archive.display().to_string()]).await;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains(&format!("cannot load {}", archive.display())), "{complaint}");
    // A program that the image needs, and an installation lacks.
    std::fs::remove_file(installation.path("lib/sluicegate/cogni-tool")).unwrap();
    let output = installation.images(&["build", "sandbox-runtime"]).await;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{complaint}");
    assert!(complaint.contains("cogni-tool is not installed beside this program"), "{complaint}");
}

//! Keeps a repository that runs work on, as a directory of this host.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::World;

/// Bare repository with one commit on `main`.
#[derive(Debug, Clone)]
pub struct GitRemote {
    dir: PathBuf,
}

impl GitRemote {
    /// Makes the repository `name` in the directory of `world`.
    #[must_use]
    pub fn in_world(world: &World, name: &str) -> Self {
        Self::below(&world.path().join("remotes"), name)
    }

    /// Makes the repository `name` below `root`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn below(root: &Path, name: &str) -> Self {
        let remote = Self { dir: root.join(name) };
        let work = root.join(format!("{name}.work"));
        fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(work.join("a.txt"), "text\n").unwrap();
        git(&work, &["add", "a.txt"]);
        git(&work, &["commit", "--quiet", "-m", "first"]);
        let dir = remote.dir.to_str().unwrap();
        git(&work, &["clone", "--quiet", "--bare", ".", dir]);
        // A log of each branch, so that a test can count the pushes.
        git(&remote.dir, &["config", "core.logAllRefUpdates", "always"]);
        fs::remove_dir_all(&work).unwrap();
        remote
    }

    /// Returns the directory of the repository.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns its address for a shell on this host.
    #[must_use]
    pub fn url(&self) -> String {
        format!("file://{}", self.dir.display())
    }

    /// Runs git on the repository, and returns what it prints.
    #[must_use]
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.dir, arguments)
    }

    /// Returns the branches, each with the subject of its last commit.
    #[must_use]
    pub fn branches(&self) -> Vec<String> {
        let format = "--format=%(refname:short) %(subject)";
        self.git(&["for-each-ref", format, "refs/heads"]).lines().map(str::to_owned).collect()
    }

    /// Adds a commit to `main`, with a file.
    ///
    /// # Panics
    /// If git fails.
    pub fn add(&self, path: &str, content: &[u8]) {
        let work = self.dir.with_extension("work");
        git(&self.dir, &["clone", "--quiet", ".", work.to_str().unwrap()]);
        fs::write(work.join(path), content).unwrap();
        git(&work, &["add", "--all"]);
        git(&work, &["commit", "--quiet", "-m", "add"]);
        git(&work, &["push", "--quiet", "origin", "main"]);
        fs::remove_dir_all(&work).unwrap();
    }

    /// Returns how often a branch was changed by a push.
    #[must_use]
    pub fn pushes(&self, branch: &str) -> usize {
        self.git(&["reflog", "show", "--format=%gs", branch]).lines().count()
    }

    /// Returns the content of a file of a branch.
    #[must_use]
    pub fn content(&self, branch: &str, path: &str) -> String {
        self.git(&["show", &format!("{branch}:{path}")])
    }
}

/// Runs git in `dir` as a person with a name, and returns what it prints.
///
/// # Panics
/// If git fails.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=Person", "-c", "user.email=person@example.org", "-c", "safe.directory=*"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

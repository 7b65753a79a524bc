//! remote is a bare repository, and the clone of a person who pushes to it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Files of each commit: a reader that finds different numbers in them saw two trees.
pub(crate) const FILES: usize = 40;

/// Bare repository with one branch.
pub(crate) struct Remote {
    pub(crate) bare: PathBuf,
    work: PathBuf,
}

impl Remote {
    /// Makes a repository in `dir`, with a first commit.
    pub(crate) fn new(dir: &Path) -> Self {
        let remote = Self { bare: dir.join("upstream.git"), work: dir.join("work") };
        run(git(dir).args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(&remote.bare));
        run(git(dir).args(["clone", "--quiet"]).args([&remote.bare, &remote.work]));
        run(git(&remote.work).args(["checkout", "--quiet", "-b", "main"]));
        remote.push(0);
        remote
    }

    /// Pushes a commit that writes `number` into every file, and returns its id.
    pub(crate) fn push(&self, number: usize) -> String {
        write_files(&self.work, number);
        run(git(&self.work).args(["add", "--all"]));
        run(git(&self.work).args(["commit", "--quiet", "--allow-empty", "--message", &number.to_string()]));
        run(git(&self.work).args(["push", "--quiet", "origin", "main"]));
        self.tip()
    }

    /// Returns the last commit.
    pub(crate) fn tip(&self) -> String {
        run(git(&self.bare).args(["rev-parse", "main"]))
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.bare.display())
    }
}

fn write_files(dir: &Path, number: usize) {
    for file in 0..FILES {
        fs::write(dir.join(format!("file-{file:02}")), number.to_string()).unwrap();
    }
}

/// Returns a git in `dir`, without settings of this host.
pub(crate) fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "A Person");
        git.env(format!("GIT_{role}_EMAIL"), "person@example.org");
    }
    git
}

/// Runs a command that must succeed, and returns what it prints.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

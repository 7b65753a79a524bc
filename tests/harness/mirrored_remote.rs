//! Keeps a repository that mirrors fetch, at an address that containers on Docker's own network reach.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    docker::host,
    git_server::{Behaviour, GitServer},
};

/// Repository with one branch `main`, and the server that has it.
#[derive(Debug)]
pub struct MirroredRemote {
    /// Address of the repository.
    pub url: String,
    server: GitServer,
    bare: PathBuf,
    work: PathBuf,
}

impl MirroredRemote {
    /// Makes a repository in `dir` whose first commit has a file `number` with `0`, and serves it.
    ///
    /// # Panics
    /// If git or the network refuses.
    pub async fn serve(dir: &Path) -> Self {
        let server = GitServer::start_open(host().await, dir.to_owned()).await;
        let url = format!("{}/upstream.git", server.origin);
        let remote = Self { url, server, bare: dir.join("upstream.git"), work: dir.join("work") };
        fs::create_dir_all(dir).unwrap();
        run(git(dir).args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(&remote.bare));
        run(git(dir).args(["clone", "--quiet"]).args([&remote.bare, &remote.work]));
        run(git(&remote.work).args(["checkout", "--quiet", "-b", "main"]));
        remote.push("0");
        remote
    }

    /// Takes requests from now on, and never answers.
    pub fn hang(&self) {
        self.server.behave(Behaviour::Hangs);
    }

    /// Pushes a commit that writes `text` into the file `number`, and returns its id.
    ///
    /// # Panics
    /// If git refuses.
    pub fn push(&self, text: &str) -> String {
        fs::write(self.work.join("number"), text).unwrap();
        run(git(&self.work).args(["add", "--all"]));
        run(git(&self.work).args(["commit", "--quiet", "--message", text]));
        run(git(&self.work).args(["push", "--quiet", "origin", "main"]));
        run(git(&self.bare).args(["rev-parse", "main"]))
    }
}

fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "A Person");
        git.env(format!("GIT_{role}_EMAIL"), "person@example.org");
    }
    git
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

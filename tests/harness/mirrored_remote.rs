//! Keeps a repository that mirrors fetch, at an address that containers on Docker's own network reach.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    docker::host,
    git_remote::git,
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
    /// Makes a repository in `dir` with `0` in the file `number` of its first commit, and serves it.
    ///
    /// # Panics
    /// If git or the network refuses.
    pub async fn serve(dir: &Path) -> Self {
        let server = GitServer::start_open(host().await, dir.to_owned()).await;
        let url = format!("{}/upstream.git", server.origin);
        let remote = Self { url, server, bare: dir.join("upstream.git"), work: dir.join("work") };
        fs::create_dir_all(dir).unwrap();
        let [bare, work] = [&remote.bare, &remote.work].map(|path| path.to_str().unwrap());
        git(dir, &["init", "--quiet", "--bare", "--initial-branch=main", bare]);
        git(dir, &["clone", "--quiet", bare, work]);
        git(&remote.work, &["checkout", "--quiet", "-b", "main"]);
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
        git(&self.work, &["add", "--all"]);
        git(&self.work, &["commit", "--quiet", "--message", text]);
        git(&self.work, &["push", "--quiet", "origin", "main"]);
        git(&self.bare, &["rev-parse", "main"]).trim().to_owned()
    }
}

//! remote asks a repository for its branches, and tells a refusal from a remote that does not answer.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    askpass::AskPass,
    error::Error,
    object_id::ObjectId,
    program::{Git, GitCommand, GitOutput},
    remote_failure::RemoteFailure,
    repo_url::RepoUrl,
};

/// Words by which git says that a remote may answer later.
const PASSING: [&str; 16] = [
    "Could not resolve host",
    "Failed to connect",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Connection was reset",
    "Operation too slow",
    "Operation timed out",
    "early EOF",
    "Empty reply from server",
    "unexpected disconnect",
    "the remote end hung up unexpectedly",
    "HTTP 5",
    "error: 5",
    "error: 429",
    "HTTP 429",
];
/// Words by which git says that it cannot speak with the remote at all.
const LASTING: [&str; 4] = ["certificate", "SSL", "unable to update url base from redirection", "error: 30"];

/// Repository on another host, or elsewhere on this one, and the credential for it.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its address.
    pub url: RepoUrl,
    /// Files with its credential, if it needs one.
    pub credential: Option<Arc<AskPass>>,
}

/// Reads the messages of a git that failed at a remote.
pub(crate) fn failure_of(output: &GitOutput) -> RemoteFailure {
    let messages = output.messages();
    let reason = output.words();
    let has = |words: &[&str]| words.iter().any(|word| messages.contains(word));
    if has(&LASTING) {
        return RemoteFailure::Unreachable { reason, retry: false };
    }
    // A git that was killed has told nothing: the remote may have done it or not.
    if output.status().is_none() || has(&PASSING) {
        return RemoteFailure::Unreachable { reason, retry: true };
    }
    RemoteFailure::Refused { reason }
}

/// Takes a git that was too slow for a remote that does not answer.
fn slow_is_unreachable(error: Error) -> Error {
    match error {
        Error::Slow { .. } => RemoteFailure::Unreachable { reason: error.to_string(), retry: true }.into(),
        error => error,
    }
}

/// Use of a remote by a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Only asks and fetches.
    Fetch,
    /// Changes a branch.
    Push,
}

impl Remote {
    /// Opens the way to this remote for a command.
    fn open<'g>(&self, command: GitCommand<'g>, purpose: Use) -> GitCommand<'g> {
        let command = command.transport(self.url.transport());
        let command = match (self.url.local_dir(), purpose) {
            (Some(dir), Use::Fetch) => command.reads(dir),
            (Some(dir), Use::Push) => command.writes(dir),
            (None, _) => command,
        };
        match &self.credential {
            Some(askpass) => command.credential(askpass, self.url.origin()),
            None => command,
        }
    }

    /// Runs a command that speaks with this remote. A failure of git is in the output.
    ///
    /// # Errors
    /// If git cannot run, or the remote is too slow.
    pub(crate) async fn run(&self, command: GitCommand<'_>, purpose: Use) -> Result<GitOutput, Error> {
        self.open(command, purpose).run().await.map_err(slow_is_unreachable)
    }

    /// Returns the commits of those `references` that the remote has.
    ///
    /// # Errors
    /// If git cannot run, the remote does not answer, or it answers something odd.
    pub(crate) async fn branches(
        &self,
        git: &Git,
        references: &[String],
    ) -> Result<BTreeMap<String, ObjectId>, Error> {
        let command = git.command_outside("ls-remote").arguments(["--quiet", "--refs", "--"]);
        let command = command.argument(self.url.as_str()).arguments(references);
        let output = self.run(command, Use::Fetch).await?;
        if output.status() != Some(0) {
            return Err(failure_of(&output).into());
        }
        let odd = || Error::OddAnswer { command: "ls-remote" };
        let text = std::str::from_utf8(output.stdout()).or(Err(odd()))?;
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let (id, name) = line.split_once('\t').ok_or_else(odd)?;
            // A pattern also fits the ends of longer names.
            if references.iter().any(|reference| reference == name) {
                found.insert(name.to_owned(), ObjectId::parse(id).map_err(Error::odd_id("ls-remote"))?);
            }
        }
        Ok(found)
    }
}

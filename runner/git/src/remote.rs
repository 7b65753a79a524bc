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

/// Words by which git says that the remote answered, and said no.
const REFUSED: [&str; 8] = [
    "error: 401",
    "error: 403",
    "error: 404",
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "' not found",
    "does not appear to be a git repository",
];
/// Words by which a remote says that it refuses only for a while.
const BUSY: [&str; 3] = ["rate limit", "Rate limit", "abuse detection"];
/// Words by which git says that it cannot speak with the remote at all.
const LASTING: [&str; 4] =
    ["certificate", "unable to update url base from redirection", "error: 30", "mismatched algorithms"];

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
    failure_in(&output.messages(), output.reason())
}

/// Reads messages. A refusal is final, so it needs words that are known: a connection breaks off in many ways.
fn failure_in(messages: &str, reason: String) -> RemoteFailure {
    let has = |words: &[&str]| words.iter().any(|word| messages.contains(word));
    if has(&LASTING) {
        return RemoteFailure::Unreachable { reason, retry: false };
    }
    if has(&REFUSED) && !has(&BUSY) {
        return RemoteFailure::Refused { reason };
    }
    RemoteFailure::Unreachable { reason, retry: true }
}

/// Takes a git that was too slow for a remote that does not answer.
fn slow_is_unreachable(error: Error) -> Error {
    match error {
        Error::Slow { .. } => RemoteFailure::Unreachable { reason: error.to_string(), retry: true }.into(),
        error => error,
    }
}

/// Access of a command to a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only asks and fetches.
    Fetch,
    /// Changes a branch.
    Push,
}

impl Remote {
    /// Opens the way to this remote for a command.
    fn open<'g>(&self, command: GitCommand<'g>, access: Access) -> GitCommand<'g> {
        let command = command.transport(self.url.transport());
        let command = match (self.url.local_dir(), access) {
            (Some(dir), Access::Fetch) => command.reads(dir),
            (Some(dir), Access::Push) => command.writes(dir),
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
    /// If git cannot run, the remote is too slow, or others could read the credential.
    pub(crate) async fn run(&self, command: GitCommand<'_>, access: Access) -> Result<GitOutput, Error> {
        if self.credential.is_some() && self.url.shows_credentials() {
            return Err(Error::OpenCredential { url: self.url.clone() });
        }
        self.open(command, access).run().await.map_err(slow_is_unreachable)
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
        let output = self.run(command, Access::Fetch).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(messages: &str) -> RemoteFailure {
        failure_in(messages, String::new())
    }

    #[test]
    fn only_known_words_are_a_refusal() {
        for messages in [
            "fatal: unable to access 'https://h/a/': The requested URL returned error: 403",
            "fatal: Authentication failed for 'https://h/a/'",
            "remote: Repository not found.\nfatal: repository 'https://h/a/' not found",
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
        ] {
            assert!(matches!(failure(messages), RemoteFailure::Refused { .. }), "{messages}");
        }
        for messages in [
            "fatal: unable to access 'https://h/a/': OpenSSL SSL_connect: Connection reset by peer",
            "fatal: unable to access 'https://h/a/': OpenSSL SSL_connect: SSL_ERROR_SYSCALL",
            "fatal: unable to access 'https://h/a/': GnuTLS, handshake failed: The TLS connection was broken",
            "error: RPC failed; curl 18 transfer closed with 99 bytes remaining to read",
            "fatal: unable to access 'https://h/a/': The requested URL returned error: 408",
            "fatal: unable to access 'https://h/a/': The requested URL returned error: 503",
            "remote: API rate limit exceeded\nfatal: The requested URL returned error: 403",
            "",
        ] {
            let again = matches!(failure(messages), RemoteFailure::Unreachable { retry: true, .. });
            assert!(again, "{messages}");
        }
        for messages in [
            "fatal: unable to access 'https://h/a/': SSL certificate problem: unable to get local issuer certificate",
            "fatal: unable to access 'https://h/a/': server certificate verification failed",
            "fatal: mismatched algorithms: client sha1; server sha256",
        ] {
            let lasting = matches!(failure(messages), RemoteFailure::Unreachable { retry: false, .. });
            assert!(lasting, "{messages}");
        }
    }
}

//! update fetches into a mirror, and mends one that is damaged or has no place for a branch.

use std::{fs, path::Path};

use super::{Mirror, MirrorScope};
use crate::{
    branch::BaseBranch,
    directory::remove_dir,
    error::Error,
    object_id::SHA1,
    program::GitOutput,
    remote::{Access, Remote, failure_of},
};

/// Name of a repository that is not yet complete.
const UNFINISHED: &str = "unfinished.git";
/// Packs after which a mirror is repacked.
const MAX_PACKS: usize = 50;
/// Branches of agents, which are fetched where they exist.
const AGENTS_BRANCHES: &str = "+refs/heads/sandbox/*:refs/heads/sandbox/*";
/// Words by which git says that the mirror itself is damaged.
const DAMAGED: [&str; 7] = [
    "not a git repository",
    "bad object",
    "corrupt",
    "bad config",
    "does not match index",
    "is truncated",
    "unable to read",
];
/// Words by which git says that another branch has the place of one.
const NO_PLACE: &str = "cannot lock ref";
/// Words of a remote, and of the programs that read what it sends. They say nothing about the mirror.
const REMOTE_WORDS: [&str; 3] = ["remote: ", "index-pack", "unpack-objects"];
/// Name that a damaged mirror gets.
const DAMAGED_NAME: &str = "damaged.git";
/// Words by which git says that a remote lacks a branch.
const MISSING_BRANCH: &str = "couldn't find remote ref";
/// Faults of old commits that harm nothing, and that many repositories have.
const HARMLESS_FAULTS: [&str; 7] = [
    "zeroPaddedFilemode",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "badTimezone",
    "zeroPaddedDate",
    "missingNameBeforeEmail",
    "badEmail",
];

impl Mirror {
    /// Makes the empty repository where it is missing. One that was not finished is removed.
    pub(super) async fn make(&self, dir: &Path) -> Result<(), Error> {
        if self.repository.is_dir() {
            return Ok(());
        }
        let unfinished = dir.join(UNFINISHED);
        remove_dir(&unfinished)?;
        let init = self.git.command_outside("init").arguments(["--quiet", "--bare", "--template="]);
        let init = init.argument(SHA1);
        init.argument(&unfinished).writes(dir).output().await?;
        fs::rename(&unfinished, &self.repository).map_err(Error::io("rename", &unfinished))
    }

    /// Fetches. If the mirror itself is why that fails, mends it and fetches once more.
    pub(super) async fn fetch_or_mend(
        &self,
        remote: &Remote,
        base: &BaseBranch,
        dir: &Path,
    ) -> Result<(), Error> {
        let output = self.fetch(remote, base).await?;
        let messages = output.messages();
        let says = |words: &str| messages.contains(words);
        let is_damaged =
            DAMAGED.iter().any(|words| says(words)) && !REMOTE_WORDS.iter().any(|words| says(words));
        if output.status() == Some(0) {
            return Ok(());
        }
        if says(NO_PLACE) {
            self.make_place(base).await?;
        } else if is_damaged {
            let damaged = dir.join(DAMAGED_NAME);
            remove_dir(&damaged)?;
            fs::rename(&self.repository, &damaged).map_err(Error::io("rename", &self.repository))?;
            self.make(dir).await?;
        } else {
            return self.fetched(&output, base);
        }
        let output = self.fetch(remote, base).await?;
        self.fetched(&output, base)
    }

    /// Removes branches that are gone at the remote and block the name of `base`: `a` and `a/b` cannot both exist.
    async fn make_place(&self, base: &BaseBranch) -> Result<(), Error> {
        let command = self.git.command("for-each-ref", &self.repository).argument("--format=%(refname)");
        let listed = command.argument("refs/heads/").output().await?;
        let own = base.reference();
        let is_below =
            |name: &str, above: &str| name.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
        let listed = String::from_utf8_lossy(&listed);
        let rivals = listed.lines().filter(|name| is_below(name, &own) || is_below(&own, name));
        let input: String = rivals.map(|name| format!("delete {name}\n")).collect();
        let command = self.git.command("update-ref", &self.repository).writes(&self.repository);
        command.arguments(["--no-deref", "--stdin"]).input(input).output().await.map(drop)
    }

    fn fetched(&self, output: &GitOutput, base: &BaseBranch) -> Result<(), Error> {
        if output.status() == Some(0) {
            return Ok(());
        }
        if output.messages().contains(MISSING_BRANCH) {
            return Err(Error::NoBase { url: self.url.clone(), branch: base.clone() });
        }
        Err(failure_of(output).into())
    }

    async fn fetch(&self, remote: &Remote, base: &BaseBranch) -> Result<GitOutput, Error> {
        let mut command = self.git.command("fetch", &self.repository).writes(&self.repository);
        for fault in HARMLESS_FAULTS {
            command = command.setting(format!("fetch.fsck.{fault}=ignore"));
        }
        command = command.arguments(["--quiet", "--no-tags", "--prune", "--no-write-fetch-head"]);
        let reference = base.reference();
        let mut command = command
            .arguments(["--no-auto-maintenance", "--", remote.url.as_str()])
            .argument(format!("+{reference}:{reference}"));
        if self.scope == MirrorScope::BaseAndAgents {
            command = command.argument(AGENTS_BRANCHES);
        }
        remote.run(command, Access::Fetch).await
    }

    /// Puts many packs together. A reader of the old ones has them open, and finds the new one. All objects stay, also
    /// those of no branch: a run may have begun with a commit that the remote has since replaced.
    pub(super) async fn repack(&self) -> Result<(), Error> {
        let packs = self.repository.join("objects/pack");
        let entries = fs::read_dir(&packs).map_err(Error::io("list", &packs))?;
        let is_pack = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|ending| ending == "pack");
        if entries.filter_map(Result::ok).filter(is_pack).count() <= MAX_PACKS {
            return Ok(());
        }
        let command = self.git.command("repack", &self.repository).writes(&self.repository);
        command.arguments(["-a", "-d", "-q", "--keep-unreachable"]).output().await.map(drop)
    }
}

//! quarantine is the clean repository into which an agent's objects are taken, judged, and from which they are pushed.
//!
//! It never shares objects with another repository. Its settings are those that git gives a new one.

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{
    branch::SandboxBranch,
    bundle::{BundleBounds, BundleHeader},
    directory::remove_dir,
    error::Error,
    judge::{
        CommitSummary, Judge, ObjectKind, ObjectReader, Objection, RelayPolicy, RelayRule, RelayVerdict,
        SecretScan,
    },
    mirror::{CloneDepth, Copied, Mirror},
    object_id::{ObjectId, SHA1},
    program::{Git, GitOutput},
};

/// Name of the commit that the agent began with.
pub(crate) const START: &str = "refs/relay/start";
/// Name of the agent's last commit.
pub(crate) const TIP: &str = "refs/relay/tip";
/// Words by which git's checks say that a tree has a spelling of `.git`.
const GIT_NAMES: [&str; 3] = ["hasDotgit", "hasDot:", "hasDotdot"];
/// Words by which git says that a pack is too large.
const MAX_SIZE: &str = "maximum allowed size";
/// Words by which git's checks say that a tree lists submodules in an unsafe way.
const MODULES: &str = "gitmodules";

/// Words by which git says that the host cannot go on.
const HOST_FAULTS: [&str; 6] = [
    "No space left",
    "Disk quota exceeded",
    "Input/output error",
    "Permission denied",
    "Read-only file system",
    "Too many open files",
];
/// Words by which git says that a pack or an object in it is damaged, incomplete or against its checks.
const DAMAGE: [&str; 21] = [
    "corrupt",
    "bad object",
    "bad delta",
    "apply delta",
    "delta base",
    "inflate",
    "early EOF",
    "premature end",
    "signature mismatch",
    "unsupported",
    "unresolved delta",
    "unknown object type",
    "expected type",
    "invalid ",
    "fsck error",
    "collision",
    "COLLISION",
    "reachable",
    "did not receive expected object",
    "garbage",
    "junk",
];

/// Work to collect.
#[derive(Debug, Clone)]
pub struct CollectOrder {
    /// Commit that the agent began with.
    pub start: ObjectId,
    /// Branch of the agent.
    pub branch: SandboxBranch,
    /// Depth of the history that the agent got.
    pub depth: CloneDepth,
    /// Limits of the bundle.
    pub bounds: BundleBounds,
}

/// Result of taking a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The agent committed nothing.
    Nothing,
    /// The objects are there; the branch ends with this commit.
    Tip(ObjectId),
    /// The bundle was not taken.
    Refused(Objection),
}

/// Clean bare repository of one relay.
#[derive(Debug, Clone)]
pub struct Quarantine {
    git: Git,
    dir: PathBuf,
}

impl Quarantine {
    /// Makes an empty quarantine in `dir`. Removes one that is there: a collection that was interrupted begins again.
    ///
    /// # Errors
    /// If git or the system fails.
    pub async fn create(git: &Git, dir: &Path) -> Result<Self, Error> {
        remove_dir(dir)?;
        fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        let dir = fs::canonicalize(dir).map_err(Error::io("resolve", dir))?;
        let init = git.command_outside("init").arguments(["--quiet", "--bare", "--template="]);
        let init = init.argument(SHA1);
        init.argument(&dir).writes(&dir).output().await?;
        Ok(Self { git: git.clone(), dir })
    }

    /// Opens a quarantine that was made before, to judge or push again.
    ///
    /// # Errors
    /// The system's, such as for a directory that is missing.
    pub fn open(git: &Git, dir: &Path) -> Result<Self, Error> {
        let dir = fs::canonicalize(dir).map_err(Error::io("open", dir))?;
        Ok(Self { git: git.clone(), dir })
    }

    /// Removes the quarantine.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(self) -> Result<(), Error> {
        remove_dir(&self.dir)
    }

    /// Takes the start from `mirror` and the agent's objects from the file `bundle`. An empty file stands for an agent
    /// that committed nothing: git makes no bundle then.
    ///
    /// # Errors
    /// If git or the system fails for a reason that is not the bundle's.
    pub async fn receive(
        &self,
        mirror: &Mirror,
        bundle: &Path,
        order: &CollectOrder,
    ) -> Result<Received, Error> {
        let mut file = File::open(bundle).map_err(Error::io("open", bundle))?;
        let length = file.metadata().map_err(Error::io("measure", bundle))?.len();
        if length == 0 {
            return Ok(Received::Nothing);
        }
        if length > order.bounds.bytes.0 {
            let detail = format!("{length} bytes, at most {}", order.bounds.bytes);
            return Ok(Received::Refused(Objection::new(RelayRule::BundleSize, detail)));
        }
        let header = BundleHeader::read(&mut file, &order.branch, &order.bounds);
        let header = match header.map_err(Error::io("read", bundle))? {
            Ok(header) => header,
            Err(objection) => return Ok(Received::Refused(objection)),
        };
        let copy = Copied { reference: START, depth: order.depth };
        mirror.copy_to(&self.dir, &order.start, &copy).await?;
        if header.tip == order.start {
            return Ok(Received::Nothing);
        }
        if let Some(objection) = self.check_prerequisites(&header, &order.start).await? {
            return Ok(Received::Refused(objection));
        }
        file.seek(SeekFrom::Start(header.length)).map_err(Error::io("read", bundle))?;
        self.unpack(file, &header, order).await
    }

    /// Returns an objection if the bundle builds on anything but the start and commits before it.
    async fn check_prerequisites(
        &self,
        header: &BundleHeader,
        start: &ObjectId,
    ) -> Result<Option<Objection>, Error> {
        let object = |detail: String| Some(Objection::new(RelayRule::BundlePrerequisite, detail));
        if header.prerequisites.is_empty() {
            return Ok(object(format!("it does not build on {start}")));
        }
        let names: Vec<&str> = header.prerequisites.iter().map(ObjectId::as_str).collect();
        let found = self.history().sizes(&names).await?;
        for (id, found) in header.prerequisites.iter().zip(found) {
            if found.is_none_or(|found| found.kind != ObjectKind::Commit) {
                return Ok(object(format!("it builds on {id}, which is not a commit of the clone")));
            }
            if id != start && !self.history().descends(id, start).await? {
                return Ok(object(format!("it builds on {id}, which is not before {start}")));
            }
        }
        Ok(None)
    }

    /// Takes the pack behind the header. Git checks each object, and that each finds those it names.
    async fn unpack(
        &self,
        pack: File,
        header: &BundleHeader,
        order: &CollectOrder,
    ) -> Result<Received, Error> {
        let command = self.git.command("index-pack", &self.dir).writes(&self.dir);
        let command = command.arguments(["--stdin", "--fix-thin", "--strict", "--threads=2"]);
        let command = command.argument(format!("--max-input-size={}", order.bounds.bytes.0));
        let output = match command.input_file(pack).run().await {
            Ok(output) => output,
            Err(error @ (Error::Slow { .. } | Error::LargeOutput { .. })) => {
                let objection = Objection::new(RelayRule::CostlyObjects, error.to_string());
                return Ok(Received::Refused(objection));
            }
            Err(error) => return Err(error),
        };
        if output.status() != Some(0) {
            let objection = unpack_objection(&output).ok_or_else(|| output.failure())?;
            return Ok(Received::Refused(objection));
        }
        let found = self.history().sizes(&[header.tip.as_str()]).await?;
        if !found.iter().flatten().any(|found| found.kind == ObjectKind::Commit) {
            let objection = Objection::new(RelayRule::NoCommit, format!("{} is not a commit", header.tip));
            return Ok(Received::Refused(objection));
        }
        self.set_tip(&header.tip).await?;
        Ok(Received::Tip(header.tip.clone()))
    }

    pub(crate) async fn set_tip(&self, tip: &ObjectId) -> Result<(), Error> {
        let command = self.git.command("update-ref", &self.dir).writes(&self.dir);
        command.arguments(["--no-deref", TIP, tip.as_str()]).output().await?;
        Ok(())
    }

    /// Compares the commits from the start to the tip with `policy`. Accepted commits of which a message or a name has an
    /// effect, such as a mention or a hidden character, are written anew without it: the work then ends with another
    /// commit of the same files.
    ///
    /// # Errors
    /// [`Error::NotCollected`], and if git or the system fails.
    pub async fn judge(&self, policy: &RelayPolicy) -> Result<RelayVerdict, Error> {
        let start = self.commit(START).await?;
        let tip = self.commit(TIP).await?;
        match (Judge { history: self.history(), start: &start, tip: &tip, policy }).run().await? {
            RelayVerdict::Accepted(work) => Ok(RelayVerdict::Accepted(self.make_harmless(work).await?)),
            refused @ RelayVerdict::Refused(_) => Ok(refused),
        }
    }

    /// Returns the commits from the start to the tip for people, the newest first, as far as they are listed. A subject
    /// with one of `secrets` is hidden.
    ///
    /// # Errors
    /// [`Error::NotCollected`], and if git or the system fails.
    pub async fn commits(&self, secrets: &SecretScan) -> Result<Vec<CommitSummary>, Error> {
        let start = self.commit(START).await?;
        let tip = self.commit(TIP).await?;
        self.history().summaries(&start, &tip, secrets).await
    }

    /// Returns the commit that a name stands for.
    pub(crate) async fn commit(&self, name: &str) -> Result<ObjectId, Error> {
        let command = self.git.command("rev-parse", &self.dir).arguments(["--verify", "--quiet", name]);
        let output = command.run().await?;
        if output.status() == Some(1) {
            return Err(Error::NotCollected { path: self.dir.clone() });
        }
        ObjectId::from_bytes(&output.checked()?).map_err(Error::odd_id("rev-parse"))
    }

    pub(crate) fn history(&self) -> ObjectReader<'_> {
        ObjectReader { git: &self.git, dir: &self.dir }
    }

    pub(crate) const fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Returns the rule that git's checks say is broken. `None` stands for a fault that may be the host's: a refusal is
/// final, so it needs words that are known.
fn unpack_objection(output: &GitOutput) -> Option<Objection> {
    let messages = output.messages();
    let has = |words: &[&str]| words.iter().any(|word| messages.contains(word));
    let rule = match () {
        () if output.is_exhausted() => RelayRule::CostlyObjects,
        () if output.status().is_none() || has(&HOST_FAULTS) => return None,
        () if messages.contains(MAX_SIZE) => RelayRule::BundleSize,
        () if messages.contains(MODULES) => RelayRule::Submodule,
        () if has(&GIT_NAMES) => RelayRule::GitDirectory,
        () if has(&DAMAGE) => RelayRule::DamagedObjects,
        () => return None,
    };
    Some(Objection::new(rule, output.reason()))
}

//! judge compares commits with a policy, by the names of objects, with git's plumbing. Contents are read last.
//!
//! The history counts, not only its end: a push publishes what a commit added and the next one removed.

mod content;
mod halt;
mod history;
mod path;
mod places;
mod policy;
mod rule;
mod secrets;
mod summary;
mod trees;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::history::{ObjectKind, ObjectReader, SizedObject};
use self::{
    halt::Halt,
    history::{Ancestry, paths_of},
    trees::{DirectoryEntries, Trees},
};
pub use self::{
    policy::{InvalidGlob, ProtectedPaths, RelayPolicy, WorkBounds},
    rule::{Objection, RelayRule},
    secrets::SecretScan,
    summary::CommitSummary,
    verdict::{AcceptedWork, RelayVerdict},
};
use crate::{error::Error, object_id::ObjectId};

/// Most objections that a verdict lists.
const MAX_OBJECTIONS: usize = 50;
/// Most files of one directory with all levels below it, as far as the commits change them.
const MAX_EXPANDED: u64 = 200_000;
/// Mode of a link.
const LINK: &str = "120000";
/// Mode of an entry that a commit removed.
const REMOVED: &str = "000000";

/// Commits to judge: those that `tip` has and `start` lacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'j> {
    pub(crate) history: ObjectReader<'j>,
    pub(crate) start: &'j ObjectId,
    pub(crate) tip: &'j ObjectId,
    pub(crate) policy: &'j RelayPolicy,
}

impl Judge<'_> {
    /// Compares the work with all rules.
    pub(crate) async fn run(self) -> Result<RelayVerdict, Error> {
        match self.inspect().await {
            Ok(accepted) => Ok(RelayVerdict::Accepted(accepted)),
            Err(Halt::Refused(mut objections)) => {
                objections.truncate(MAX_OBJECTIONS);
                for objection in &mut objections {
                    // A path may be the secret.
                    objection
                        .path
                        .take_if(|path| self.policy.secrets.find_in_text(path.as_bytes()).is_some());
                }
                Ok(RelayVerdict::Refused(objections))
            }
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    async fn inspect(self) -> Result<AcceptedWork, Halt> {
        let commits = self.commits().await?;
        let objects = self.objects().await?;
        self.trees(&objects).await?;
        let entries = self.history.entries(&commits).await.map_err(Halt::costly(RelayRule::ManyFiles))?;
        let files = entries.iter().map(|entry| &entry.path).collect::<BTreeSet<_>>().len();
        let most = self.policy.bounds.files;
        if files > most {
            return Err(Halt::refused(RelayRule::ManyFiles, format!("{files} paths, at most {most}")));
        }
        let objections = self.shapes(&entries);
        if !objections.is_empty() {
            return Err(Halt::Refused(objections));
        }
        let paths = paths_of(&entries);
        let bytes = self.sizes(&objects, &paths)?;
        let objections = entries.iter().flat_map(|entry| self.entry(entry));
        let mut objections: Vec<Objection> = objections.take(MAX_OBJECTIONS).collect();
        objections.extend(self.nested_repositories(&entries).await?);
        objections.extend(self.contents(&objects, &entries).await?);
        if objections.is_empty() {
            let start = self.start.clone();
            let tip = self.tip.clone();
            Ok(AcceptedWork { start, tip, commits: commits.len(), files, bytes })
        } else {
            Err(Halt::Refused(objections))
        }
    }

    async fn commits(self) -> Result<Vec<Ancestry>, Halt> {
        let costly = Halt::costly(RelayRule::OtherHistory);
        if !self.history.descends(self.start, self.tip).await.map_err(costly)? {
            let detail = format!("{} does not descend from {}", self.tip, self.start);
            return Err(Halt::refused(RelayRule::OtherHistory, detail));
        }
        let max = self.policy.bounds.commits;
        let commits = self.history.commits(self.start, self.tip, max + 1).await;
        let commits = commits.map_err(Halt::costly(RelayRule::ManyCommits))?;
        if commits.len() > max {
            return Err(Halt::refused(RelayRule::ManyCommits, format!("more than {max} commits")));
        }
        match commits.iter().find(|ancestry| ancestry.parents == 0) {
            Some(root) => {
                let detail = format!("{} begins a history of its own", root.commit);
                Err(Halt::refused(RelayRule::OtherHistory, detail))
            }
            None => Ok(commits),
        }
    }

    async fn objects(self) -> Result<Vec<SizedObject>, Halt> {
        let costly = Halt::costly(RelayRule::ManyObjects);
        let ids = self.history.objects(self.start, self.tip).await.map_err(costly)?;
        let max = self.policy.bounds.objects;
        if ids.len() > max {
            return Err(Halt::refused(
                RelayRule::ManyObjects,
                format!("{} objects, at most {max}", ids.len()),
            ));
        }
        let names: Vec<&str> = ids.iter().map(ObjectId::as_str).collect();
        let found = self.history.sizes(&names).await;
        let found: Option<Vec<SizedObject>> =
            found.map_err(Halt::costly(RelayRule::ManyObjects))?.into_iter().collect();
        found.ok_or_else(|| Halt::refused(RelayRule::DamagedObjects, "an object is missing"))
    }

    /// Refuses directories that would fill git's memory when it compares them.
    async fn trees(self, objects: &[SizedObject]) -> Result<(), Halt> {
        let trees: Vec<_> = objects.iter().filter(|object| object.kind == ObjectKind::Tree).collect();
        let bytes = trees.iter().map(|tree| tree.size).fold(0, u64::saturating_add);
        if bytes > self.policy.bounds.total.0 {
            return Err(Halt::refused(RelayRule::LargeWork, format!("directories of {bytes} bytes")));
        }
        let costly = Halt::costly(RelayRule::LargeWork);
        let listed = self.history.contents(&trees, DirectoryEntries::read).await.map_err(costly)?;
        let listed: Trees = trees.iter().map(|tree| tree.id.clone()).zip(listed).collect();
        let files = listed.largest();
        if files > MAX_EXPANDED {
            return Err(Halt::refused(RelayRule::ManyFiles, format!("a directory of {files} files")));
        }
        Ok(())
    }

    /// Returns the size of all new contents, if they keep their limits.
    fn sizes(self, objects: &[SizedObject], paths: &BTreeMap<&ObjectId, &[u8]>) -> Result<u64, Halt> {
        let bounds = self.policy.bounds;
        let mut total = 0_u64;
        let mut objections = Vec::new();
        for object in objects {
            total = total.saturating_add(object.size);
            if object.size > bounds.file.0 {
                let path = paths.get(&object.id).copied().unwrap_or(object.id.as_str().as_bytes());
                let detail = format!("{} bytes, at most {}", object.size, bounds.file);
                objections.push(Objection::at(RelayRule::LargeFile, path, detail));
            }
        }
        if total > bounds.total.0 {
            let detail = format!("{total} bytes, at most {}", bounds.total);
            objections.push(Objection::new(RelayRule::LargeWork, detail));
        }
        if objections.is_empty() { Ok(total) } else { Err(Halt::Refused(objections)) }
    }
}

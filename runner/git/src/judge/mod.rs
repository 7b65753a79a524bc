//! judge compares commits with a policy: by the names of objects, with git's plumbing, before any content is read.
//!
//! The history counts, not only its end: a push publishes what a commit added and the next one removed.

mod halt;
mod history;
mod path;
mod policy;
mod rule;
mod secrets;
mod trees;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::history::{ObjectKind, ObjectReader};
use self::{
    halt::Halt,
    history::{Ancestry, ChangedEntry, SizedObject, paths_of},
    path::{PathBounds, PathFault, faults, link_fault},
    trees::Trees,
};
pub use self::{
    policy::{InvalidGlob, ProtectedPaths, RelayPolicy, WorkBounds},
    rule::{Objection, RelayRule},
    secrets::SecretScan,
    verdict::{AcceptedWork, RelayVerdict},
};
use crate::{error::Error, object_id::ObjectId};

/// Most objections that a verdict lists.
const MAX_OBJECTIONS: usize = 50;
/// Most files of one directory with all levels below it, as far as the commits change them.
const MAX_EXPANDED: u64 = 200_000;
/// Mode of a link.
const LINK: &str = "120000";
/// Mode of a submodule.
const SUBMODULE: &str = "160000";
/// Mode of an entry that a commit removed.
const REMOVED: &str = "000000";
/// Modes of files.
const FILES: [&str; 2] = ["100644", "100755"];
/// Entries that make a directory a bare repository.
const BARE_ENTRIES: [&str; 3] = ["HEAD", "objects", "refs"];

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
        if self.start == self.tip {
            return Ok(RelayVerdict::Nothing);
        }
        match self.inspect().await {
            Ok(accepted) => Ok(RelayVerdict::Accepted(accepted)),
            Err(Halt::Refused(mut objections)) => {
                objections.truncate(MAX_OBJECTIONS);
                for objection in &mut objections {
                    // A path may be the secret.
                    objection.path.take_if(|path| self.policy.secrets.find(path.as_bytes()).is_some());
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
        let paths = paths_of(&entries);
        let bytes = self.sizes(&objects, &paths)?;
        let mut objections: Vec<Objection> = entries.iter().flat_map(|entry| self.entry(entry)).collect();
        objections.extend(self.nested_repositories(&entries).await?);
        objections.extend(self.contents(&objects, &entries).await?);
        if objections.is_empty() {
            Ok(AcceptedWork { tip: self.tip.clone(), commits: commits.len(), files, bytes })
        } else {
            Err(Halt::Refused(objections))
        }
    }

    async fn commits(self) -> Result<Vec<Ancestry>, Halt> {
        if !self.history.descends(self.start, self.tip).await? {
            let detail = format!("{} does not descend from {}", self.tip, self.start);
            return Err(Halt::refused(RelayRule::OtherHistory, detail));
        }
        let max = self.policy.bounds.commits;
        let commits = self.history.commits(self.start, self.tip, max + 1).await?;
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
        let found: Option<Vec<SizedObject>> = self.history.sizes(&names).await?.into_iter().collect();
        found.ok_or_else(|| Halt::refused(RelayRule::DamagedObjects, "an object is missing"))
    }

    /// Refuses directories that would fill git's memory when it compares them.
    async fn trees(self, objects: &[SizedObject]) -> Result<(), Halt> {
        let trees: Vec<_> = objects.iter().filter(|object| object.kind == ObjectKind::Tree).collect();
        let bytes = trees.iter().map(|tree| tree.size).fold(0, u64::saturating_add);
        if bytes > self.policy.bounds.total.0 {
            return Err(Halt::refused(RelayRule::LargeWork, format!("directories of {bytes} bytes")));
        }
        let mut listed = Trees::default();
        self.history.contents(&trees, |tree, content| listed.add(tree, content)).await?;
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

    /// Returns the objections to an entry's path and mode.
    fn entry(self, entry: &ChangedEntry) -> Vec<Objection> {
        let path = &entry.path;
        if let Some(name) = self.policy.secrets.find(path) {
            // Any other objection would show the path.
            return vec![Objection::new(RelayRule::Secret, format!("the name of a file holds a {name}"))];
        }
        let at = |rule, detail: &str| Objection::at(rule, path, detail);
        let mut objections = Vec::new();
        let text = String::from_utf8_lossy(path);
        if let Some(pattern) = self.policy.protected.pattern_of(&text) {
            objections.push(at(RelayRule::ProtectedPath, &format!("protected by `{pattern}`")));
        }
        if entry.mode == REMOVED {
            return objections;
        }
        let bounds = PathBounds { depth: self.policy.bounds.depth, length: self.policy.bounds.path };
        objections.extend(faults(path, bounds).into_iter().map(|fault| match fault {
            PathFault::Deep => at(RelayRule::DeepPath, "too many directories"),
            PathFault::Long => at(RelayRule::LongPath, "too many bytes"),
            PathFault::Odd => at(RelayRule::OddPath, "hidden, odd or unreadable characters"),
            PathFault::GitDirectory => at(RelayRule::GitDirectory, "a name of git's own directory"),
        }));
        match entry.mode.as_str() {
            SUBMODULE => objections.push(at(RelayRule::Submodule, "a commit of another repository")),
            mode if mode != LINK && !FILES.contains(&mode) => {
                objections.push(at(RelayRule::OddMode, &format!("mode {mode}")));
            }
            _ => {}
        }
        objections
    }

    /// Returns objections to directories that are bare repositories at the end of the history.
    async fn nested_repositories(self, entries: &[ChangedEntry]) -> Result<Vec<Objection>, Halt> {
        let added = entries.iter().filter(|entry| entry.mode != REMOVED);
        let dirs: BTreeSet<String> = added.flat_map(|entry| possible_repositories(&entry.path)).collect();
        let tip = self.tip;
        let name = |dir: &String, entry: &&str| format!("{tip}:{dir}{entry}");
        let names: Vec<String> =
            dirs.iter().flat_map(|dir| BARE_ENTRIES.iter().map(move |entry| name(dir, entry))).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.history.sizes(&names).await?;
        let bare = dirs.iter().zip(found.chunks(BARE_ENTRIES.len()));
        let bare = bare.filter(|(_, entries)| entries.iter().all(Option::is_some));
        let objection = |(dir, _): (&String, _)| {
            Objection::at(RelayRule::NestedRepository, dir.as_bytes(), "it has HEAD, objects and refs")
        };
        Ok(bare.map(objection).collect())
    }

    /// Returns objections to what links, files, commits and tags hold.
    async fn contents(
        self,
        objects: &[SizedObject],
        entries: &[ChangedEntry],
    ) -> Result<Vec<Objection>, Halt> {
        let read: Vec<&SizedObject> =
            objects.iter().filter(|object| object.kind != ObjectKind::Tree).collect();
        let mut links: BTreeMap<&ObjectId, Vec<&[u8]>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.mode == LINK) {
            if let Some(id) = &entry.id {
                links.entry(id).or_default().push(&entry.path);
            }
        }
        // A link may lead where a file's content says that was there before.
        let known: BTreeSet<&ObjectId> = read.iter().map(|object| &object.id).collect();
        let old: Vec<&str> = links.keys().filter(|id| !known.contains(*id)).map(|id| id.as_str()).collect();
        let old: Vec<SizedObject> = self.history.sizes(&old).await?.into_iter().flatten().collect();
        let small = old.iter().filter(|object| object.size <= self.policy.bounds.file.0);
        let read: Vec<&SizedObject> = read.into_iter().chain(small).collect();
        let paths = paths_of(entries);
        let mut objections = Vec::new();
        let take = |object: &SizedObject, content: &[u8]| {
            for path in links.get(&object.id).into_iter().flatten() {
                let fault = link_fault(path, content);
                objections.extend(fault.map(|fault| Objection::at(RelayRule::Link, path, fault)));
            }
            if let Some(name) = self.policy.secrets.find(content) {
                objections.push(secret_objection(object, paths.get(&object.id).copied(), name));
            }
        };
        self.history.contents(&read, take).await?;
        Ok(objections)
    }
}

fn secret_objection(object: &SizedObject, path: Option<&[u8]>, name: &str) -> Objection {
    match (object.kind, path) {
        (ObjectKind::Blob, Some(path)) => {
            Objection::at(RelayRule::Secret, path, format!("it holds a {name}"))
        }
        (ObjectKind::Commit, _) => {
            Objection::new(RelayRule::Secret, format!("commit {} holds a {name}", object.id))
        }
        _ => Objection::new(RelayRule::Secret, format!("object {} holds a {name}", object.id)),
    }
}

/// Returns the directories, with a slash behind them, that an entry may make a bare repository.
fn possible_repositories(path: &[u8]) -> Vec<String> {
    let Ok(path) = std::str::from_utf8(path) else { return Vec::new() };
    if path.contains('\n') {
        return Vec::new();
    }
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts);
    let names = starts.filter(|start| {
        let name = path[*start..].split('/').next().unwrap_or_default();
        BARE_ENTRIES.contains(&name)
    });
    names.map(|start| path[..start].to_owned()).collect()
}

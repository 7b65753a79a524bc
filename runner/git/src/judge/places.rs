//! places judges where commits put files: how deep, under which names, and whether a directory becomes a repository.

use std::collections::{BTreeMap, BTreeSet};

use runner_files::folded_name;

use super::{
    Judge, LINK, MAX_OBJECTIONS, REMOVED,
    halt::Halt,
    history::{ChangedEntry, ObjectKind, SizedObject},
    path::{PathBounds, PathFault, faults, shape_faults},
    rule::{Objection, RelayRule},
    trees::names,
};

/// Mode of a submodule.
const SUBMODULE: &str = "160000";
/// Modes of files.
const FILES: [&str; 2] = ["100644", "100755"];
/// Entries that make a directory a bare repository, as [`folded_name`] names them.
const BARE_ENTRIES: [&str; 3] = ["head", "objects", "refs"];
/// File by which a directory becomes a repository that has the other entries elsewhere.
const COMMON_DIR: &str = "commondir";
/// Most directories that git is asked for at once.
const DIRECTORIES_AT_ONCE: usize = 1024;

impl Judge<'_> {
    const fn path_bounds(self) -> PathBounds {
        PathBounds { depth: self.policy.bounds.depth, length: self.policy.bounds.path }
    }

    /// Returns objections to paths that are too deep or too long. Nothing else may look at such paths: each of their
    /// levels costs time and memory.
    pub(super) fn shapes(self, entries: &[ChangedEntry]) -> Vec<Objection> {
        let added = entries.iter().filter(|entry| entry.mode != REMOVED);
        let objection = |path: &[u8], fault| match self.policy.secrets.find_in_text(path) {
            Some(_secret) => Objection::new(rule_of(fault), words_of(fault)),
            None => Objection::at(rule_of(fault), path, words_of(fault)),
        };
        let found = added.flat_map(|entry| {
            let faults = shape_faults(&entry.path, self.path_bounds());
            faults.into_iter().map(move |fault| objection(&entry.path, fault))
        });
        found.take(MAX_OBJECTIONS).collect()
    }

    /// Returns the objections to an entry's path and mode.
    pub(super) fn entry(self, entry: &ChangedEntry) -> Vec<Objection> {
        let path = &entry.path;
        if let Some(name) = self.policy.secrets.find_in_text(path) {
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
        if entry.mode == LINK
            && let Some(above) = self.policy.protected.pattern_below(&text)
        {
            objections.push(at(RelayRule::ProtectedPath, &format!("a link in the place of `{above}`")));
        }
        let faults = faults(path, self.path_bounds());
        objections.extend(faults.into_iter().map(|fault| at(rule_of(fault), words_of(fault))));
        if text.split('/').any(|name| folded_name(name) == COMMON_DIR) {
            objections.push(at(RelayRule::NestedRepository, "it makes a directory a repository"));
        }
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
    pub(super) async fn nested_repositories(self, entries: &[ChangedEntry]) -> Result<Vec<Objection>, Halt> {
        let added = entries.iter().filter(|entry| entry.mode != REMOVED);
        let dirs: BTreeSet<&str> = added.flat_map(|entry| possible_repositories(&entry.path)).collect();
        let dirs: Vec<&str> = dirs.into_iter().collect();
        let mut trees: BTreeMap<String, (SizedObject, &str)> = BTreeMap::new();
        for dirs in dirs.chunks(DIRECTORIES_AT_ONCE) {
            let listed: Vec<String> = dirs.iter().map(|dir| format!("{}:{dir}", self.tip)).collect();
            let costly = Halt::costly(RelayRule::NestedRepository);
            let found = self.history.sizes(&listed).await.map_err(costly)?;
            for (dir, found) in dirs.iter().zip(found) {
                if let Some(tree) = found.filter(|found| found.kind == ObjectKind::Tree) {
                    trees.entry(tree.id.to_string()).or_insert((tree, dir));
                }
            }
        }
        let read: Vec<&SizedObject> = trees.values().map(|(tree, _dir)| tree).collect();
        let costly = Halt::costly(RelayRule::NestedRepository);
        let bare = self.history.contents(&read, is_bare).await.map_err(costly)?;
        let bare = trees.values().zip(bare).filter(|(_tree, is_bare)| *is_bare);
        let objection = |((_tree, dir), _is_bare): (&(SizedObject, &str), bool)| {
            Objection::at(RelayRule::NestedRepository, dir.as_bytes(), "it has HEAD, objects and refs")
        };
        Ok(bare.map(objection).take(MAX_OBJECTIONS).collect())
    }
}

const fn rule_of(fault: PathFault) -> RelayRule {
    match fault {
        PathFault::Deep => RelayRule::DeepPath,
        PathFault::Long => RelayRule::LongPath,
        PathFault::Odd => RelayRule::OddPath,
        PathFault::GitDirectory => RelayRule::GitDirectory,
    }
}

const fn words_of(fault: PathFault) -> &'static str {
    match fault {
        PathFault::Deep => "too many directories",
        PathFault::Long => "too many bytes",
        PathFault::Odd => "hidden, odd or unreadable characters",
        PathFault::GitDirectory => "a name of git's own directory",
    }
}

/// Returns whether a directory has all entries of a bare repository, in any spelling that a file system takes for them.
fn is_bare(tree: &SizedObject, content: &[u8]) -> bool {
    let names: BTreeSet<String> =
        names(tree, content).iter().map(|name| folded_name(&String::from_utf8_lossy(name))).collect();
    BARE_ENTRIES.iter().all(|entry| names.contains(*entry))
}

/// Returns the directories that an entry may make a bare repository. The empty name stands for the top.
fn possible_repositories(path: &[u8]) -> Vec<&str> {
    let Ok(path) = std::str::from_utf8(path) else { return Vec::new() };
    if path.contains('\n') {
        return Vec::new();
    }
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts);
    let found = starts.filter(|start| {
        let name = path[*start..].split('/').next().unwrap_or_default();
        BARE_ENTRIES.contains(&folded_name(name).as_str())
    });
    found.map(|start| path[..start].trim_end_matches('/')).collect()
}

//! modules builds the graph of a crate's modules from its imports, and finds the loops in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Error,
    crates::Crate,
    file::{Area, SourceFile},
    imports,
    sources::Repository,
};

/// Modules, and for each the modules that it imports.
#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds a module, if it is not there.
    pub fn add(&mut self, module: &str) {
        self.edges.entry(module.to_owned()).or_default();
    }

    /// Adds both modules, and that one imports the other.
    pub fn connect(&mut self, from: &str, to: &str) {
        self.add(to);
        if from != to {
            self.edges.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
    }

    /// Returns the modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.edges.keys().map(String::as_str)
    }

    /// Returns whether a module is there.
    #[must_use]
    pub fn contains(&self, module: &str) -> bool {
        self.edges.contains_key(module)
    }

    /// Returns the groups of modules in which each reaches each other, the largest first.
    #[must_use]
    pub fn loops(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.modules().map(|each| (each, self.reach(each))).collect();
        let mut groups = BTreeSet::new();
        for (module, reach) in &reached {
            let group: BTreeSet<String> = reach
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)))
                .map(|other| (*other).to_owned())
                .collect();
            if group.len() > 1 {
                groups.insert(group);
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        groups
    }

    /// Returns the modules that are in a loop.
    #[must_use]
    pub fn looped(&self) -> BTreeSet<String> {
        self.loops().into_iter().flatten().collect()
    }

    /// Returns every module that can be reached from one, itself only if a loop leads back.
    fn reach(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in self.edges.get(module).into_iter().flatten() {
                if reached.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        reached
    }
}

/// Returns the graph of a crate's top-level modules.
///
/// # Errors
/// If a file does not parse.
pub fn top_level(repository: &Repository, own: &Crate) -> Result<Graph, Error> {
    let mut graph = Graph::default();
    for file in tree(repository, own) {
        if let Some(top) = own.module_of(&file.path).first() {
            graph.add(top);
        }
    }
    let exports = exports(repository, own)?;
    let tops: BTreeSet<String> = graph.modules().map(str::to_owned).collect();
    for Reference { module, path } in imported(repository, own)? {
        let path = match path.get(1) {
            Some(name) if !tops.contains(name) => exports.get(name).unwrap_or(&path),
            _ => &path,
        };
        if let (Some(from), Some(to)) = (module.first(), path.get(1).filter(|to| tops.contains(*to))) {
            graph.connect(from, to);
        }
    }
    Ok(graph)
}

/// Returns the graph of a crate's files, each named by its module path. That a module uses those inside it does not count:
/// it is their door.
///
/// # Errors
/// If a file does not parse.
pub fn by_file(repository: &Repository, own: &Crate) -> Result<Graph, Error> {
    let mut graph = Graph::default();
    for file in tree(repository, own) {
        graph.add(&own.module_of(&file.path).join("::"));
    }
    for Reference { module, path } in imported(repository, own)? {
        let inside = path.get(1..).unwrap_or_default();
        let target = (1..=inside.len()).rev().map(|length| inside[..length].join("::"));
        if let Some(to) = { target }.find(|target| graph.contains(target)) {
            let from = module.join("::");
            if !to.starts_with(&format!("{from}::")) {
                graph.connect(&from, &to);
            }
        }
    }
    Ok(graph)
}

/// Returns the files of the crate's main module tree that are not its root and not its tests.
pub fn tree<'r>(repository: &'r Repository, own: &'r Crate) -> impl Iterator<Item = &'r SourceFile> {
    let main = format!("{}/{}/", own.dir, own.main_dir());
    let files = repository.rust().filter(move |file| file.path.starts_with(&main));
    files.filter(|file| file.area() != Area::Inside && !own.module_of(&file.path).is_empty())
}

/// A path that a module of the same crate names.
struct Reference {
    module: Vec<String>,
    path: Vec<String>,
}

/// Returns each module of the tree with each path of the same crate that its product code names.
fn imported(repository: &Repository, own: &Crate) -> Result<Vec<Reference>, Error> {
    let mut found = Vec::new();
    for file in tree(repository, own) {
        let module = own.module_of(&file.path);
        for import in imports::of_module(&module, file)?.into_iter().filter(|import| !import.in_tests) {
            if import.segments.first().is_some_and(|first| first == "crate") {
                found.push(Reference { module: module.clone(), path: import.segments });
            }
        }
    }
    Ok(found)
}

fn exports(repository: &Repository, own: &Crate) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let root = format!("{}/{}/lib.rs", own.dir, own.main_dir());
    repository.file(&root).map_or_else(|| Ok(BTreeMap::new()), imports::exports)
}

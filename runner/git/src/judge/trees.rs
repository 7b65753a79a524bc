//! trees counts the files that directories hold when all their levels are written out.
//!
//! A directory that holds another one ten times, ten levels deep, is a few objects and more files than any memory holds.

use std::collections::BTreeMap;

use super::history::SizedObject;
use crate::object_id::ObjectId;

/// Mode of a directory.
const DIRECTORY: &[u8] = b"40000";

/// Directories by their names, each with the directories in it and the number of other entries.
#[derive(Debug, Default)]
pub(crate) struct Trees(BTreeMap<ObjectId, DirectoryEntries>);

/// Entries of one directory.
#[derive(Debug, Default)]
pub(crate) struct DirectoryEntries {
    directories: Vec<ObjectId>,
    others: u64,
}

impl FromIterator<(ObjectId, DirectoryEntries)> for Trees {
    fn from_iter<T: IntoIterator<Item = (ObjectId, DirectoryEntries)>>(directories: T) -> Self {
        Self(directories.into_iter().collect())
    }
}

impl DirectoryEntries {
    /// Reads a directory. One that cannot be read counts as empty: git's checks refuse it elsewhere.
    pub(crate) fn read(tree: &SizedObject, content: &[u8]) -> Self {
        let mut listed = Self::default();
        for entry in entries(tree, content).unwrap_or_default() {
            if entry.mode == DIRECTORY {
                let digits: String = entry.id.iter().map(|byte| format!("{byte:02x}")).collect();
                listed.directories.extend(ObjectId::parse(&digits));
            } else {
                listed.others += 1;
            }
        }
        listed
    }
}

impl Trees {
    /// Returns the largest number of files that one of the directories holds. Directories that were not added count as
    /// one file.
    pub(crate) fn largest(&self) -> u64 {
        let mut counts = BTreeMap::new();
        for id in self.0.keys() {
            self.count(id, &mut counts);
        }
        counts.into_values().max().unwrap_or_default()
    }

    /// Counts a directory and those in it, without recursion: an agent decides how deep they are.
    fn count<'t>(&'t self, id: &'t ObjectId, counts: &mut BTreeMap<&'t ObjectId, u64>) {
        let mut open = vec![id];
        while let Some(id) = open.last().copied() {
            let Some(listed) = self.0.get(id).filter(|_| !counts.contains_key(id)) else {
                open.pop();
                continue;
            };
            let missing = listed.directories.iter();
            let missing: Vec<_> =
                missing.filter(|below| self.0.contains_key(*below) && !counts.contains_key(*below)).collect();
            if missing.is_empty() {
                let below = listed.directories.iter().map(|below| counts.get(below).copied().unwrap_or(1));
                let sum = below.fold(listed.others, u64::saturating_add);
                counts.insert(id, sum);
                open.pop();
            } else {
                open.extend(missing);
            }
        }
    }
}

/// Entry of a directory, as git stores it.
struct TreeEntry<'t> {
    mode: &'t [u8],
    name: &'t [u8],
    id: &'t [u8],
}

/// Returns the names in a directory. One that cannot be read has none.
pub(crate) fn names<'t>(tree: &SizedObject, content: &'t [u8]) -> Vec<&'t [u8]> {
    entries(tree, content).unwrap_or_default().into_iter().map(|entry| entry.name).collect()
}

/// Reads entries: a mode, a space, a name, a zero byte, and the bytes of an object's name.
fn entries<'t>(tree: &SizedObject, mut content: &'t [u8]) -> Option<Vec<TreeEntry<'t>>> {
    let id_length = tree.id.as_str().len() / 2;
    let mut entries = Vec::new();
    while !content.is_empty() {
        let space = content.iter().position(|byte| *byte == b' ')?;
        let zero = content.iter().position(|byte| *byte == 0)?;
        let id = content.get(zero + 1..zero + 1 + id_length)?;
        entries.push(TreeEntry { mode: &content[..space], name: content.get(space + 1..zero)?, id });
        content = &content[zero + 1 + id_length..];
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::{super::history::ObjectKind, *};

    fn tree(number: u8) -> SizedObject {
        let id = ObjectId::parse(&format!("{number:02x}").repeat(20)).unwrap();
        SizedObject { id, kind: ObjectKind::Tree, size: 0 }
    }

    #[test]
    fn levels_multiply() {
        let mut trees = Trees::default();
        let add = |trees: &mut Trees, tree: &SizedObject, content: &[u8]| {
            trees.0.insert(tree.id.clone(), DirectoryEntries::read(tree, content));
        };
        let entries = |mode: &str, id: u8| {
            let entry = |number: u8| [mode.as_bytes(), &[b' ', b'a' + number, 0], &[id; 20]].concat();
            (0..10).flat_map(entry).collect::<Vec<u8>>()
        };
        add(&mut trees, &tree(1), &entries("100644", 99));
        for level in 2..20 {
            add(&mut trees, &tree(level), &entries("40000", level - 1));
        }
        assert_eq!(trees.largest(), 10_u64.pow(19));
        add(&mut trees, &tree(50), &entries("40000", 51));
        add(&mut trees, &tree(51), b"40000 cut");
        assert_eq!(trees.largest(), 10_u64.pow(19), "a damaged one counts as empty");
    }
}

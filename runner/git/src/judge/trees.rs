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
struct DirectoryEntries {
    directories: Vec<ObjectId>,
    others: u64,
}

impl Trees {
    /// Adds a directory. One that cannot be read counts as empty: git's checks refuse it elsewhere.
    pub(crate) fn add(&mut self, tree: &SizedObject, content: &[u8]) {
        let listed = list(content, tree.id.as_str().len() / 2).unwrap_or_default();
        self.0.insert(tree.id.clone(), listed);
    }

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

/// Reads entries: a mode, a space, a name, a zero byte, and the name of an object in `id_length` bytes.
fn list(mut content: &[u8], id_length: usize) -> Option<DirectoryEntries> {
    let mut listed = DirectoryEntries::default();
    while !content.is_empty() {
        let space = content.iter().position(|byte| *byte == b' ')?;
        let zero = content.iter().position(|byte| *byte == 0)?;
        let id = content.get(zero + 1..zero + 1 + id_length)?;
        if &content[..space] == DIRECTORY {
            let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            listed.directories.push(ObjectId::parse(&digits).ok()?);
        } else {
            listed.others += 1;
        }
        content = &content[zero + 1 + id_length..];
    }
    Some(listed)
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
        let entries = |mode: &str, id: u8| {
            let entry = |number: u8| [mode.as_bytes(), &[b' ', b'a' + number, 0], &[id; 20]].concat();
            (0..10).flat_map(entry).collect::<Vec<u8>>()
        };
        trees.add(&tree(1), &entries("100644", 99));
        for level in 2..20 {
            trees.add(&tree(level), &entries("40000", level - 1));
        }
        assert_eq!(trees.largest(), 10_u64.pow(19));
        trees.add(&tree(50), &entries("40000", 51));
        trees.add(&tree(51), b"40000 cut");
        assert_eq!(trees.largest(), 10_u64.pow(19), "a damaged one counts as empty");
    }
}

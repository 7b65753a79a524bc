//! content judges what links, files, commits and tags hold.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Judge, LINK,
    halt::Halt,
    history::{ChangedEntry, ObjectKind, SizedObject, paths_of},
    path::link_fault,
    rule::{Objection, RelayRule},
    secrets::SecretScan,
};
use crate::object_id::ObjectId;

/// Rules for contents, with the places where the commits put them. It owns all, for its own thread.
struct ContentRules {
    secrets: SecretScan,
    links: BTreeMap<ObjectId, Vec<Vec<u8>>>,
    paths: BTreeMap<ObjectId, Vec<u8>>,
}

impl ContentRules {
    fn new(secrets: &SecretScan, entries: &[ChangedEntry]) -> Self {
        let mut links: BTreeMap<ObjectId, Vec<Vec<u8>>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.mode == LINK) {
            if let Some(id) = &entry.id {
                links.entry(id.clone()).or_default().push(entry.path.clone());
            }
        }
        let paths = paths_of(entries).into_iter().map(|(id, path)| (id.clone(), path.to_owned())).collect();
        Self { secrets: secrets.clone(), links, paths }
    }

    fn objections(&self, object: &SizedObject, content: &[u8]) -> Vec<Objection> {
        let links = self.links.get(&object.id).into_iter().flatten();
        let fault = |path: &Vec<u8>| {
            link_fault(path, content).map(|fault| Objection::at(RelayRule::Link, path, fault))
        };
        let mut objections: Vec<Objection> = links.filter_map(fault).collect();
        let secret = match object.kind {
            // A message is shown to people and programs that leave out what is not seen.
            ObjectKind::Commit | ObjectKind::Tag => self.secrets.find_in_text(content),
            ObjectKind::Blob | ObjectKind::Tree => self.secrets.find(content),
        };
        if let Some(name) = secret {
            objections.push(self.secret(object, name));
        }
        objections
    }

    fn secret(&self, object: &SizedObject, name: &str) -> Objection {
        match (object.kind, self.paths.get(&object.id)) {
            (ObjectKind::Blob, Some(path)) => {
                Objection::at(RelayRule::Secret, path, format!("it holds a {name}"))
            }
            (ObjectKind::Commit, _) => {
                Objection::new(RelayRule::Secret, format!("commit {} holds a {name}", object.id))
            }
            _ => Objection::new(RelayRule::Secret, format!("object {} holds a {name}", object.id)),
        }
    }
}

impl Judge<'_> {
    /// Returns objections to what links, files, commits and tags hold.
    pub(super) async fn contents(
        self,
        objects: &[SizedObject],
        entries: &[ChangedEntry],
    ) -> Result<Vec<Objection>, Halt> {
        let read: Vec<&SizedObject> =
            objects.iter().filter(|object| object.kind != ObjectKind::Tree).collect();
        let rules = ContentRules::new(&self.policy.secrets, entries);
        // A link may lead where a file's content says that was there before.
        let known: BTreeSet<&ObjectId> = read.iter().map(|object| &object.id).collect();
        let old: Vec<&str> =
            rules.links.keys().filter(|id| !known.contains(*id)).map(ObjectId::as_str).collect();
        let costly = Halt::costly(RelayRule::Link);
        let old: Vec<SizedObject> =
            self.history.sizes(&old).await.map_err(costly)?.into_iter().flatten().collect();
        let small = old.iter().filter(|object| object.size <= self.policy.bounds.file.0);
        let read: Vec<&SizedObject> = read.into_iter().chain(small).collect();
        let judge = move |object: &SizedObject, content: &[u8]| rules.objections(object, content);
        let costly = Halt::costly(RelayRule::LargeWork);
        let found = self.history.contents(&read, judge).await.map_err(costly)?;
        Ok(found.into_iter().flatten().collect())
    }
}

//! Lists the files of a result together with the change of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    changes::{ChangeForm, Changes},
    path::RelativePath,
    result_tree::{ResultForm, ResultTree},
};

/// File of a run, with its change. A removed file has no form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListedFile<'l> {
    /// The file.
    pub path: &'l RelativePath,
    /// Form that it has now.
    pub form: Option<&'l ResultForm>,
    /// Change that the run has made to it.
    pub change: Option<ChangeForm>,
}

/// Returns all files of `result` and those that are gone, sorted by path.
#[must_use]
pub fn listing<'l>(result: &'l ResultTree, changes: &'l Changes) -> Vec<ListedFile<'l>> {
    let mut listed: BTreeMap<_, _> = result
        .entries()
        .filter(|(_, form)| **form != ResultForm::Directory)
        .map(|(path, form)| (path, ListedFile { path, form: Some(form), change: None }))
        .collect();
    for change in changes.all() {
        let file = ListedFile { path: &change.path, form: None, change: None };
        listed.entry(&change.path).or_insert(file).change = Some(change.form);
    }
    listed.into_values().collect()
}

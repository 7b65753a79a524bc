//! Names the setup of a gateway's container, and finds what differs between two setups. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Digits of a name.
const NAME_DIGITS: usize = 32;

/// Returns the name of a setup: containers of the same name are alike.
pub(super) fn name(setup: &Value) -> String {
    let mut name: String =
        Sha256::digest(setup.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
    name.truncate(NAME_DIGITS);
    name
}

/// Returns where two setups differ, by the paths of the differences, not by the values: some are secrets.
pub(super) fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut was = BTreeMap::new();
    let mut is = BTreeMap::new();
    flatten(String::new(), old, &mut was);
    flatten(String::new(), new, &mut is);
    let changed = was.iter().filter(|(path, value)| is.get(*path) != Some(*value));
    let added = is.keys().filter(|path| !was.contains_key(*path));
    let mut paths: Vec<_> = changed.map(|(path, _)| path).chain(added).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Collects the values of `value` by path. Lists count as values: the position within a list says little.
fn flatten<'v>(path: String, value: &'v Value, into: &mut BTreeMap<String, &'v Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(path, value, into);
            }
        }
        value => drop(into.insert(path, value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_and_not_shown() {
        let old =
            json!({ "memory": 1, "config": { "token": "canary", "gone": {}, "list": [1, 2], "same": 1 } });
        let new =
            json!({ "memory": 2, "config": { "token": "other", "list": [2], "same": 1, "new": { "a": 1 } } });
        let differences = differences(&old, &new);
        assert_eq!(differences, ["config.gone", "config.list", "config.new.a", "config.token", "memory"]);
        assert_eq!(super::differences(&old, &old), Vec::<String>::new());
        assert!(name(&old) != name(&new) && name(&old) == name(&old.clone()));
    }
}

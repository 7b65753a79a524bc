//! Names the setup of a gateway's container, and finds what differs between two setups. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Number of digits of a name.
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
    let mut old_values = BTreeMap::new();
    let mut new_values = BTreeMap::new();
    flatten(String::new(), old, &mut old_values);
    flatten(String::new(), new, &mut new_values);
    let changed = old_values.iter().filter(|(path, value)| new_values.get(*path) != Some(*value));
    let added = new_values.keys().filter(|path| !old_values.contains_key(*path));
    let mut paths: Vec<_> = changed.map(|(path, _)| path).chain(added).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Collects the values of `value` by path. A list counts as one value: a position within it would help no reader.
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

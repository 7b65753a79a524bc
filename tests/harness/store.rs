//! Changes the rows of a store through a backup and a restore, as another program may have left them.

use std::fs;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::world::World;

/// Rewrites each row of the world's store with `change`, which also gets the name of its table. No other process may
/// use the store meanwhile.
///
/// # Panics
/// If `sluice backup` or `sluice restore` fails.
pub async fn rewrite(world: &World, change: impl Fn(&str, &mut Map<String, Value>)) {
    let file = world.path().join("rewritten.ndjson");
    let name = file.to_str().unwrap();
    let backup = world.sluice().run(&["backup", name]).await;
    assert_eq!(backup.code, Some(0), "{backup:?}");
    let (mut text, mut table, mut columns) = (String::new(), String::new(), Vec::<String>::new());
    for line in fs::read_to_string(&file).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(name) = line["table"].as_str() {
            table = name.to_owned();
            columns = serde_json::from_value(line["columns"].clone()).unwrap();
        } else if let Some(values) = line.as_array_mut() {
            let mut row: Map<_, _> = columns.iter().cloned().zip(values.clone()).collect();
            change(&table, &mut row);
            *values = columns.iter().map(|column| row[column].clone()).collect();
        } else if line.get("sha256").is_some() {
            let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
            line = json!({ "rows": line["rows"], "sha256": hash });
        }
        text += &format!("{line}\n");
    }
    fs::write(&file, text).unwrap();
    let restored = world.sluice().run(&["restore", name, "--force"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    fs::remove_file(file).unwrap();
}

/// Marks `run` as failed without removing its resources, as a worker may have left it that could not clean up.
///
/// # Panics
/// If `sluice backup` or `sluice restore` fails.
pub async fn end(world: &World, run: &str) {
    rewrite(world, |table, row| {
        if table == "runs" && row["run"] == run {
            row["state"] = json!("failed");
            row["error_code"] = json!("internal");
            row["ended"] = row["changed"].clone();
            (row["lease_owner"], row["lease_until"]) = (Value::Null, Value::Null);
        }
    })
    .await;
}

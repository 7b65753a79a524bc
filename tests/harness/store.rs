//! Changes the rows of a store through a backup and a restore, as another program may have left them.

use std::fs;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use runner_store::{Address, Store};

use crate::world::World;

/// Rewrites each row of the world's store with `change`, which also gets the name of its table. No other process may
/// use the store meanwhile.
///
/// # Panics
/// If `sluice backup` or `sluice restore` fails.
pub async fn rewrite(world: &World, change: impl Fn(&str, &mut Map<String, Value>)) {
    replace(world, |table, mut row| {
        change(table, &mut row);
        vec![row]
    })
    .await;
}

/// Replaces each row of the world's store by others. No other process may use the store meanwhile.
///
/// # Panics
/// If `sluice backup` or `sluice restore` fails.
pub async fn replace(world: &World, others: impl Fn(&str, Map<String, Value>) -> Vec<Map<String, Value>>) {
    let file = world.path().join("rewritten.ndjson");
    let name = file.to_str().unwrap();
    let backup = world.sluice().run(&["backup", name]).await;
    assert_eq!(backup.code, Some(0), "{backup:?}");
    let mut text = String::new();
    let mut table = String::new();
    let mut columns = Vec::<String>::new();
    let mut rows = 0;
    for line in fs::read_to_string(&file).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(values) = line.as_array() {
            let row: Map<_, _> = columns.iter().cloned().zip(values.clone()).collect();
            for other in others(&table, row) {
                let values: Value = columns.iter().map(|column| other[column].clone()).collect();
                text += &format!("{values}\n");
                rows += 1;
            }
            continue;
        }
        if let Some(name) = line["table"].as_str() {
            name.clone_into(&mut table);
            columns = serde_json::from_value(line["columns"].clone()).unwrap();
        }
        if line.get("sha256").is_some() {
            let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
            text += &format!("{}\n", json!({ "rows": rows, "sha256": hash }));
        } else {
            text += &format!("{line}\n");
        }
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

/// Opens the store of the world's control plane, beside its own processes.
///
/// # Panics
/// If it cannot be opened.
pub async fn open_store(world: &World) -> Store {
    let address = format!("sqlite://{}/store/sluice.db", world.path().display());
    let address = Address::parse(&address, None).unwrap();
    Store::open(&address, world.installation().parse().unwrap()).await.unwrap()
}

//! Reads receipts, balances and reconciliations as `sluice billing` prints them.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;

use crate::world::World;

/// Returns what all receipts of each call add up to, in nano-dollars.
///
/// # Panics
/// If they cannot be listed.
pub async fn charged(world: &World) -> BTreeMap<String, i64> {
    let listed = world.sluice().run(&["billing", "receipts", "-n", "10000", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let mut sums = BTreeMap::new();
    for receipt in listed.result()["receipts"].as_array().unwrap() {
        let call = receipt["call_id"].as_str().unwrap().to_owned();
        *sums.entry(call).or_default() += receipt["nanodollars"].as_i64().unwrap();
    }
    sums
}

/// Returns the balances of all accounts in credits, in the order of the accounts.
///
/// # Panics
/// If they cannot be listed.
pub async fn balances(world: &World) -> Vec<i64> {
    let listed = world.sluice().run(&["billing", "balance", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let balances = listed.result()["balances"].clone();
    let credits = |balance: &Value| balance["credits"].as_i64().unwrap();
    balances.as_array().unwrap().iter().map(credits).collect()
}

/// Reconciles the last hour; returns the exit code and the report.
///
/// # Panics
/// If the ledger cannot be read.
pub async fn reconcile(world: &World) -> (Option<i32>, Value) {
    let words = ["billing", "reconcile", "--since", "1h", "--json"];
    let reconciled = world.sluice().run(&words).await;
    assert!(matches!(reconciled.code, Some(0 | 1)), "{reconciled:?}");
    (reconciled.code, reconciled.result())
}

/// Returns the outcomes of a report that are not zero.
///
/// # Panics
/// If it is not a report.
#[must_use]
pub fn counts(report: &Value) -> BTreeMap<String, u64> {
    let counts = report["counts"].as_object().unwrap().iter();
    counts
        .map(|(outcome, count)| (outcome.clone(), count.as_u64().unwrap()))
        .filter(|(_, n)| *n > 0)
        .collect()
}

/// Returns the consumer of receipts as the proxy lists it: what it has acknowledged, and its lag. Null before it has
/// acknowledged anything.
///
/// # Panics
/// If the proxy does not answer.
pub async fn receipts_consumer(world: &World) -> Value {
    let consumers = world.control.send(Method::GET, "/v1/consumers", String::new()).await.json();
    let receipts = consumers.as_array().unwrap().iter().find(|each| each["name"] == "receipts");
    receipts.cloned().unwrap_or_default()
}

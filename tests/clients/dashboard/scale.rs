//! Many runs, many events, many tabs, bad networks.

use std::fs;

use harness::{Dashboard, Planted};
use serde_json::{Value, json};

use super::agents::configuration;

const CASES: [&str; 7] = ["list", "filters", "events", "long", "tabs", "slow", "offline"];
const PLANTED: Planted = Planted { runs: 10_000, events: 100_000, failure: 70_000 };
const MAX_HEAP: u64 = 150 << 20;
/// Times of the long run, which are kept and not compared.
const MEASURED: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/dashboard-long-run.json");

/// A hundred thousand events need neither a hundred thousand elements nor much memory.
fn assert_long(case: &Value) {
    assert_eq!(case["count"], json!(PLANTED.events), "{case:#}");
    for place in ["first", "end", "failed"] {
        assert!(case[place]["rows"].as_u64().unwrap() <= 500, "{place}: {case:#}");
    }
    assert!(case["end"]["text"].as_str().unwrap().contains("succeeded"), "{case:#}");
    assert!(case["failed"]["text"].as_str().unwrap().contains("row 70000"), "{case:#}");
    assert!(case["heap"].as_u64().unwrap() <= MAX_HEAP, "{case:#}");
    let measured =
        json!({ "first_paint_ms": case["painted"], "all_events_ms": case["loaded"], "heap": case["heap"] });
    fs::write(MEASURED, measured.to_string()).unwrap();
}

#[tokio::test]
async fn pages_hold_for_many_runs_and_tabs() {
    let dashboard = Dashboard::with_planted(&PLANTED, &configuration()).await;
    let cases = dashboard.suite("scale", json!({}), &CASES).await;
    let list = cases.of("list");
    assert_eq!(list["first"]["lists"], 1, "one request for a page: {list:#}");
    assert!(list["first"]["nodes"].as_u64().unwrap() < 3000, "{list:#}");
    assert_eq!((&list["stable"], &list["pages"]), (&json!(true), &json!([1, 1, 1, 1, 1])), "{list:#}");
    let shown = list["first"]["rows"].as_u64().unwrap();
    assert_eq!(list["seen"].as_u64().unwrap(), shown * 6, "no run twice, and none left out: {list:#}");
    let filters = cases.of("filters");
    assert!(filters["text"].as_str().unwrap().contains("No run matches"), "{filters:#}");
    assert!(filters["rows"].as_u64().unwrap() > 0, "{filters:#}");
    let events = cases.of("events");
    assert!(events["count"].as_u64().unwrap() >= 1000, "{events:#}");
    assert!(
        events["events"].as_u64().unwrap() < 500 && events["nodes"].as_u64().unwrap() < 4000,
        "{events:#}"
    );
    assert!(events["last"].as_str().unwrap().contains("succeeded"), "{events:#}");
    assert!(events["found"].as_str().unwrap().contains("row 700"), "{events:#}");
    assert_long(cases.of("long"));
    let tabs = cases.of("tabs");
    assert_eq!(tabs["shown"], 7);
    assert!(tabs["control"].as_u64().unwrap() < 7, "control: seven streams block each other: {tabs:#}");
    let slow = cases.of("slow");
    assert_eq!(slow["cancels"], 1, "{slow:#}");
    let (committed, drawn) = (slow["committed"].as_u64().unwrap(), slow["drawn"].as_u64().unwrap());
    assert!(committed >= 2000 && drawn >= committed + 2000, "control: its files are slow, too: {slow:#}");
    let offline = cases.of("offline");
    assert!(
        offline["lost"].as_str().unwrap().contains("No connection") && offline["text"] == true,
        "{offline:#}"
    );
    let unloaded = offline["unloaded"].as_str().unwrap();
    assert!(unloaded.contains("No connection") && !unloaded.contains("preload"), "{offline:#}");
    assert_eq!((&offline["stays"], &offline["loaded"]), (&json!(true), &json!("Agents")), "{offline:#}");
    dashboard.end().await;
}

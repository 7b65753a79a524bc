//! The Content Security Policy: no page breaks it, and what breaks it does not run and is reported.

use std::fs;

use harness::Dashboard;
use serde_json::{Value, json};

use super::agents::configuration;

const CASES: [&str; 6] = ["unprivileged", "weights", "pages", "planted", "unprotected", "trusted_types"];
/// Weights of the pages. Without the file, the test writes it, and fails once.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/records/dashboard-pages.json");
/// Percent by which files may be larger than their record: headers and compression vary a little.
const SLACK: u64 = 2;
/// Requests for data beyond the record: a page reads a run again if the run's events came before it.
const MORE_DATA: u64 = 1;

/// A page that breaks out of its tab has no right of the tests.
fn assert_unprivileged(case: &Value) {
    let renderers = case["renderers"].as_array().unwrap();
    assert!(!renderers.is_empty(), "{case:#}");
    for renderer in renderers {
        assert_ne!(renderer["user"], 0, "{case:#}");
        assert_ne!(renderer["isSandboxed"], renderer["isSwitchedOff"], "{case:#}");
    }
    assert!(case["own"] != 0 || renderers[0]["user"] != case["own"], "control: {case:#}");
}

/// No page asks more often than its record says, or for more bytes. Times are recorded, and not compared.
fn assert_weights(pages: &Value) {
    let Ok(record) = fs::read_to_string(RECORD) else {
        fs::write(RECORD, format!("{pages:#}\n")).unwrap();
        panic!("{RECORD} is new: keep it");
    };
    let record: Value = serde_json::from_str(&record).unwrap();
    for (path, page) in pages.as_object().unwrap() {
        let of = |weights: &Value, name: &str| weights[path][name].as_u64().unwrap_or_default();
        let bytes = of(&record, "bytes");
        let most = [
            ("files", of(&record, "files")),
            ("data", of(&record, "data") + MORE_DATA),
            ("bytes", bytes + bytes * SLACK / 100),
        ];
        for (name, most) in most {
            let now = of(pages, name);
            assert!(
                now <= most,
                "{path}: {now} {name}, {most} recorded: {page:#}; delete {RECORD} to record it anew"
            );
        }
    }
}

#[tokio::test]
async fn pages_keep_to_their_policy() {
    let dashboard = Dashboard::start("", &configuration()).await;
    let cases = dashboard.suite("policy", json!({}), &CASES).await;
    assert_unprivileged(cases.of("unprivileged"));
    assert_weights(&cases.of("weights")["pages"]);
    let pages = cases.of("pages");
    for what in ["violations", "reports", "foreign", "errors", "crashes"] {
        assert_eq!(pages[what], json!([]), "{what}: {pages:#}");
    }
    assert_eq!(pages["evals"], json!({}), "no page makes code of text");
    assert_eq!(pages["control"], 1, "control: the count finds one: {pages:#}");
    assert!(pages["titles"].as_u64().unwrap() >= 10, "{pages:#}");
    let planted = cases.of("planted");
    assert!(planted["planted"].is_null(), "{planted:#}");
    let violations = planted["violations"].to_string();
    assert!(violations.contains("script-src") && violations.contains("inline"), "{planted:#}");
    let reports = planted["reports"].as_array().unwrap();
    assert!(reports.contains(&json!("204 POST /api/v1/csp-reports")), "{planted:#}");
    assert_eq!(cases.of("unprotected")["planted"], 1, "control: without the policy it runs");
    let types = cases.of("trusted_types");
    assert_eq!(types["own"], json!(["TypeError", "TypeError", "TypeError", "TypeError"]), "{types:#}");
    assert_eq!(types["control"], json!(["ran", "ran", "ran", "ran"]));
    let doctor = dashboard.there.world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("blocked inline on"), "{doctor:?}");
    dashboard.end().await;
}

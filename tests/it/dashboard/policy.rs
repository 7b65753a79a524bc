//! The Content Security Policy: no page breaks it, and what breaks it does not run and is reported.

use harness::Dashboard;
use serde_json::json;

use super::agents::configuration;

const CASES: [&str; 4] = ["pages", "planted", "unprotected", "trusted_types"];

#[tokio::test]
async fn pages_keep_to_their_policy() {
    let dashboard = Dashboard::start("", &configuration()).await;
    let cases = dashboard.suite("policy", json!({}), &CASES).await;
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

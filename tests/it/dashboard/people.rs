//! People who decide, who see little, who have no mouse.

use harness::Dashboard;
use serde_json::json;

use super::agents::configuration;

const CASES: [&str; 13] = [
    "ordered",
    "expired",
    "approve",
    "deny",
    "elsewhere",
    "light",
    "dark",
    "phone",
    "zoom",
    "forced_colours",
    "signed_out",
    "motion",
    "keyboard",
];

#[tokio::test]
async fn everyone_can_decide_and_find() {
    let tools = "[tools]\napproval_timeout = '15s'";
    let dashboard = Dashboard::start("", &configuration().replace("[tools]", tools)).await;
    let cases = dashboard.suite("people", json!({}), &CASES).await;
    assert_eq!(cases.of("ordered")["states"], json!(["failed", "succeeded"]));
    let expired = cases.of("expired");
    assert!(expired["left"].as_str().unwrap().contains("expires in"), "{expired:#}");
    assert_eq!((&expired["conflict"], &expired["cards"]), (&json!(1), &json!(0)), "{expired:#}");
    assert_eq!(expired["verdict"], json!(["succeeded", "denied"]), "{expired:#}");
    for (name, outcome, verdict) in [
        ("approve", "approved", json!(["succeeded", "done"])),
        ("deny", "denied", json!(["succeeded", "denied"])),
        ("elsewhere", "not decided by you", json!(["succeeded", "denied"])),
    ] {
        let case = cases.of(name);
        assert!(case["outcome"].as_str().unwrap().contains(outcome), "{case:#}");
        assert_eq!(case["verdict"], verdict, "{case:#}");
    }
    assert_eq!(cases.of("elsewhere")["conflict"], 1, "{:#}", cases.of("elsewhere"));
    for name in ["light", "dark", "phone", "zoom", "forced_colours"] {
        let case = cases.of(name);
        assert_eq!(case["broken"], json!({}), "{name}");
        assert!(case["passes"].as_u64().unwrap() > 100, "{case:#}");
    }
    let out = cases.of("signed_out");
    assert_eq!(out["clean"], json!([]));
    assert!(out["control"].as_u64().unwrap() >= 1, "control: axe finds a picture without a text: {out:#}");
    assert_eq!(cases.of("motion")["moving"], 0);
    let keys = cases.of("keyboard");
    assert!(keys["failed"].as_str().unwrap().contains("/sandbox/failed"), "{keys:#}");
    assert!(keys["why"].as_str().unwrap().contains("Failed"), "{keys:#}");
    assert_eq!(
        (&keys["cancelled"], &keys["approved"]),
        (&json!("cancelled"), &json!(["succeeded", "done"])),
        "{keys:#}"
    );
    dashboard.end().await;
}

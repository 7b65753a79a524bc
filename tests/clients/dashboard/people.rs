//! People who decide, who see little, who have no mouse.

use std::fs;

use harness::{Dashboard, shell_agents::shell_agent};
use serde_json::{Value, json};

use super::agents::configuration;

const CASES: [&str; 15] = [
    "ordered",
    "expired",
    "approve",
    "deny",
    "elsewhere",
    "skill",
    "light",
    "dark",
    "phone",
    "zoom",
    "forced_colours",
    "states",
    "signed_out",
    "motion",
    "keyboard",
];

/// Pages say in which state they are, and break no rule of axe then.
fn assert_states(case: &Value) {
    assert_eq!(case["broken"], json!({}), "{case:#}");
    for (state, texts) in [
        ("cancel", &["Cancel the run"][..]),
        ("keys", &["Leave a field or a dialog"]),
        ("typed", &["acct-8"]),
        ("gaps", &["no longer kept", "7 older events", "output cut", "missed", "3 pieces"]),
        ("cut", &["were left out here"]),
        ("stale", &["Not available now", "store_unavailable", "To do: start it"]),
        ("unreachable", &["No connection"]),
        ("/sandbox/failed?tab=calls", &["a word"]),
        ("/approvals", &["a word"]),
        ("/gateways/coding/main?tab=sessions", &["Run a word", "waiting"]),
        ("/gateways/coding/main?tab=files", &["only be read", "more entries", "a word"]),
    ] {
        let shown = case["texts"][state].as_str().unwrap();
        assert!(texts.iter().all(|text| shown.contains(text)), "{state}: {texts:?} in {shown}");
    }
}

/// A person without a mouse signs in, finds a failed run, cancels, approves and chats.
fn assert_keys(keys: &Value) {
    assert!(keys["failed"].as_str().unwrap().contains("/sandbox/failed"), "{keys:#}");
    assert!(keys["why"].as_str().unwrap().contains("Failed"), "{keys:#}");
    assert_eq!(
        (&keys["cancelled"], &keys["approved"]),
        (&json!("cancelled"), &json!(["succeeded", "done"])),
        "{keys:#}"
    );
    let chat = keys["chat"].as_str().unwrap();
    assert!(chat.contains("By keys alone") && chat.contains("it is done"), "{keys:#}");
}

#[tokio::test]
async fn everyone_can_decide_and_find() {
    let tools = "[tools]\napproval_timeout = '15s'";
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(dir.path().join("TOOLS.md"), "# Tools\n\nUse rg.\n").unwrap();
    let behaviour = format!("behaviour_dir = '{}'", dir.path().display());
    let skilled = shell_agent("true", &behaviour).replace("test:sh", "test:skilled");
    let agents = configuration().replace("[tools]", tools) + &skilled;
    let dashboard = Dashboard::start("", &agents).await;
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
    let skill = cases.of("skill");
    let drafted = skill["drafted"].as_str().unwrap();
    assert!(drafted.contains("-Use rg.") && drafted.contains("+Use grep."), "{skill:#}");
    assert!(skill["refused"].as_str().unwrap().contains("behaviour_dir"), "{skill:#}");
    for name in ["light", "dark", "phone", "zoom", "forced_colours"] {
        let case = cases.of(name);
        assert_eq!(case["broken"], json!({}), "{name}");
        assert!(case["passes"].as_u64().unwrap() > 100, "{case:#}");
    }
    assert_states(cases.of("states"));
    let out = cases.of("signed_out");
    assert_eq!(out["clean"], json!([]));
    assert!(out["control"].as_u64().unwrap() >= 1, "control: axe finds a picture without a text: {out:#}");
    let moving = &cases.of("motion")["moving"];
    assert_eq!(moving["reduce"], 0, "{moving:#}");
    assert!(moving["no-preference"].as_u64().unwrap() >= 1, "control: else, an answer moves: {moving:#}");
    assert_keys(cases.of("keyboard"));
    dashboard.end().await;
}

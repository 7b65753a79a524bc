//! Tests that `sluice gateway check` names a version of OpenClaw that does not work, or that was not tested.

use harness::gateway::Dialect;
use serde_json::Value;

use super::Sessions;

/// Returns the codes of what `sluice gateway check` finds of the version.
async fn found(sessions: &Sessions, version: &str) -> Vec<String> {
    sessions.gateway.set(|options| options.version = Some(version.to_owned()));
    let checked = sessions.world.sluice().run(&["gateway", "check", "scripted", "--json"]).await;
    let all: Value = serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{checked:?}"));
    let findings = all["gateways"][0]["findings"].as_array().unwrap();
    let codes = findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned());
    codes.filter(|code| code.starts_with("version_") || code.starts_with("attribution_")).collect()
}

#[tokio::test]
async fn a_version_that_was_not_tested_is_named() {
    for (attribution, version, codes) in [
        ("trace", "2026.9.6", &[][..]),
        ("trace", "2026.8.2", &[]),
        ("trace", "2027.1.1", &["version_untested"]),
        ("trace", "2026.7.35", &["attribution_impossible"]),
        ("plugin", "2026.9.5", &[]),
        ("plugin", "2026.8.2", &["version_fails"]),
        ("slot", "2026.9.6", &[]),
        ("slot", "2026.2.1", &["version_untested"]),
        ("headers", "2026.1.1", &[]),
    ] {
        let sessions = Sessions::of(Dialect::Four, attribution, "").await;
        let found = found(&sessions, version).await;
        assert_eq!(found, codes, "{attribution} {version}");
    }
}

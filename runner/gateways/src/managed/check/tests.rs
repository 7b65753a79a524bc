//! Tests each defect on its own, in a configuration that is otherwise correct.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::managed::config::{self, ConfigInputs, tests::gateway};

fn generated(gateway: &Gateway) -> Value {
    let models = ["fake".to_owned()];
    let limits = BTreeMap::new();
    let inputs = ConfigInputs { models: &models, token: "t", slots: &[], limits: &limits, agents: &[] };
    config::configuration(gateway, inputs)
}

/// Returns the codes of the findings when the value at `pointer` is `value`.
fn codes_with(toml: &str, pointer: &str, value: Value) -> Vec<&'static str> {
    let gateway = gateway(toml);
    let mut config = generated(&gateway);
    let (above, field) = pointer.rsplit_once('/').unwrap();
    let above = config.pointer_mut(above).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(above.remove(field)),
        value => drop(above.insert(field.to_owned(), value)),
    }
    check_config(&gateway, &config).iter().map(Finding::code).collect()
}

const OWN: &str = "account = 'acct-1'";

#[test]
fn unsafe_settings_are_found() {
    for (pointer, value, code) in [
        ("/gateway/controlUi/enabled", json!(true), "control_ui_on"),
        ("/gateway/controlUi", Value::Null, "control_ui_on"),
        ("/cron/enabled", json!(true), "cron_on"),
        ("/cron", Value::Null, "cron_on"),
        ("/tools/elevated/enabled", json!(true), "elevated_on"),
        ("/tools/elevated", Value::Null, "elevated_on"),
        ("/agents/defaults/heartbeat/every", json!("30m"), "heartbeat_on"),
        ("/agents/defaults/heartbeat", Value::Null, "heartbeat_on"),
        ("/agents/entries/main/heartbeat", json!({ "every": "1h" }), "heartbeat_on"),
        ("/models/mode", json!("merge"), "provider_not_ours"),
        ("/models/providers/openai", json!({}), "provider_not_ours"),
        ("/models/providers/cogni", Value::Null, "provider_not_ours"),
        ("/models/providers/cogni/baseUrl", json!("https://api.example/v1"), "provider_not_ours"),
        ("/models/providers/cogni/models", json!([]), "models_missing"),
    ] {
        assert_eq!(codes_with(OWN, pointer, value.clone()), [code], "{pointer} {value}");
    }
    assert_eq!(codes_with(OWN, "/agents/defaults/heartbeat/every", json!("0s")), [""; 0]);
    assert_eq!(
        codes_with("account = 'a'\nattribution = 'slot'", "/cron/enabled", json!(false)),
        ["attribution_impossible"]
    );
}

#[test]
fn a_shared_gateway_has_only_harmless_tools() {
    for (pointer, value, codes) in [
        ("/tools/allow", json!(["exec"]), &["shared_tools"][..]),
        ("/tools/allow", json!(["get_goal", "read"]), &["shared_tools"]),
        ("/tools/allow", json!(["a_tool_of_tomorrow"]), &["shared_tools"]),
        ("/tools/allow", json!([]), &["shared_tools"]),
        ("/tools/allow", Value::Null, &["shared_tools"]),
        ("/tools/alsoAllow", json!(["exec"]), &["shared_tools"]),
        ("/agents/entries/main/tools", json!({ "alsoAllow": ["exec"] }), &["shared_tools"]),
        ("/agents/entries/main/tools", json!({ "allow": ["write"] }), &["shared_tools"]),
        ("/tools/codeMode", json!(true), &["shared_tools"]),
        ("/tools/deny", json!([]), &["shared_tools_not_denied"]),
        ("/tools/deny", json!(["group:runtime"]), &["shared_tools_not_denied"]),
        ("/tools/deny", json!(["*"]), &[]),
        ("/tools/codeMode", json!(false), &[]),
    ] {
        assert_eq!(codes_with("", pointer, value.clone()), codes, "{pointer} {value}");
        // The control: the container isolates the gateway of one account.
        assert_eq!(codes_with(OWN, pointer, value.clone()), [""; 0], "{pointer} {value}");
    }
}

#[test]
fn sub_agents_require_attribution_by_trace() {
    for (attribution, found) in [
        ("trace", &[][..]),
        ("slot", &["sub_agents_not_attributed"]),
        ("plugin", &["sub_agents_not_attributed"]),
    ] {
        let toml = format!("{OWN}\nattribution = '{attribution}'\ntools = ['read', 'sessions_spawn']");
        let codes = |gateway: &Gateway, config: &Value| {
            let all: Vec<_> = check_config(gateway, config).iter().map(Finding::code).collect();
            all.into_iter().filter(|code| *code != "attribution_impossible").collect::<Vec<_>>()
        };
        let gateway = gateway(&toml);
        let mut config = generated(&gateway);
        assert_eq!(codes(&gateway, &config), found, "{attribution}");
        for (allow, deny, found) in [
            (json!(["group:sessions"]), json!([]), found),
            (json!([]), json!([]), found),
            (json!(["*"]), json!(["sessions_spawn"]), &[]),
            (json!(["*"]), json!(["group:sessions"]), &[]),
            (json!(["read"]), json!([]), &[]),
        ] {
            config["tools"]["allow"] = allow;
            config["tools"]["deny"] = deny;
            assert_eq!(codes(&gateway, &config), found, "{attribution} {}", config["tools"]);
        }
    }
}

#[test]
fn tools_of_the_registry_are_checked_too() {
    for (toml, codes) in [
        ("tools = ['exec']", &["shared_tools"][..]),
        ("tools = ['get_goal']", &[]),
        ("account = 'a'\ntools = ['exec']", &[]),
    ] {
        let gateway = gateway(toml);
        let found: Vec<_> = check_config(&gateway, &generated(&gateway)).iter().map(Finding::code).collect();
        assert_eq!(found, codes, "{toml}");
    }
}

#[test]
fn an_older_versions_agent_list_is_checked() {
    let gateway = gateway(OWN);
    let mut config = generated(&gateway);
    config["agents"]["list"] = json!([{ "id": "main", "heartbeat": { "every": "5m" } }]);
    let found = check_config(&gateway, &config);
    assert_eq!(found, [Finding::Heartbeat("agents.list[0]".to_owned())]);
}

#[test]
fn a_version_that_was_not_tested_fails_no_check() {
    use crate::openclaw::Feature;
    let finding = |feature: Feature, version| Finding::Version(feature.untested(version).unwrap());
    let newer = finding(Feature::Plugin, "2027.1.1");
    assert_eq!((newer.code(), newer.is_untested()), ("version_untested", true));
    let broken = finding(Feature::Plugin, "2026.8.2");
    assert_eq!((broken.code(), broken.is_untested()), ("version_fails", false));
}

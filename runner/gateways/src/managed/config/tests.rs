//! Compares the configuration file with its last reviewed version, and checks what depends on settings.

use std::{fs, path::Path};

use platform_core::id::{GatewayId, ModelName};
use platform_runtime::{config::Sources, settings::Settings};
use runner_model::gateway_agent::{AgentName, Capabilities};
use runner_store::{GatewayAgentKey, GatewayAgentSettings};

use super::*;

pub(in crate::managed) fn gateway(toml: &str) -> Gateway {
    let text = format!("[proxy]\ntoken_secrets_file = '/tokens'\n[gateways.g]\n{toml}\n");
    let settings =
        Settings::read(&Sources { file: Some(("s.toml".into(), text)), ..Sources::default() }).unwrap();
    settings.gateways.into_values().next().unwrap()
}

fn generated_with(toml: &str, slots: &[&str], agents: &[NewGatewayAgent]) -> Value {
    let models = ["fake".to_owned(), "other/model".to_owned()];
    let slots: Vec<_> = slots.iter().map(|slot| (*slot).to_owned()).collect();
    let limits =
        ModelLimits { context_window: Some(64_000), max_output_tokens: Some(4_000), tokens_per_second: None };
    let inputs = ConfigInputs {
        models: &models,
        token: "t0ken",
        slots: &slots,
        limits: &[("other/model".to_owned(), limits)].into(),
        agents,
    };
    configuration(&gateway(toml), inputs)
}

fn generated(toml: &str, slots: &[&str]) -> Value {
    generated_with(toml, slots, &[])
}

/// Returns an agent that people made, with these capabilities.
fn made(name: &str, commands: CommandMode, files: Switch) -> NewGatewayAgent {
    let name = AgentName::parse(name).unwrap();
    let key = GatewayAgentKey { gateway: GatewayId::parse("g").unwrap(), agent: name.id() };
    let capabilities = Capabilities { commands, files, ..Capabilities::default() };
    let model = ModelName::parse("other/model").ok();
    NewGatewayAgent {
        workspace: agent_workspace(key.agent.as_str()),
        key,
        account: None,
        settings: GatewayAgentSettings { name, avatar: None, model, capabilities },
    }
}

const SLOTS: [&str; 2] = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];

#[test]
fn the_file_is_as_it_was_read_last() {
    for (name, config) in [
        ("shared", generated("", &[])),
        (
            "coding",
            generated(
                "account = 'acct-1'\nattribution = 'slot'\nmax_concurrent_sessions = 2\nagents = ['main', 'other']",
                &SLOTS,
            ),
        ),
        (
            "made",
            generated_with(
                "account = 'acct-1'",
                &[],
                &[
                    made("Asking Bot", CommandMode::Ask, Switch::On),
                    made("Free Bot", CommandMode::Auto, Switch::On),
                    made("Reader", CommandMode::Off, Switch::Off),
                ],
            ),
        ),
        ("plugin", generated("account = 'acct-1'\nattribution = 'plugin'\nprovider = 'ours'", &[])),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/openclaw-{name}.json"));
        let text = format!("{config:#}\n");
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            let new = path.with_extension("json.new");
            fs::write(&new, &text).unwrap();
            panic!(
                "{name} is not as it was: read {}, and move it there if that is how it is to be",
                new.display()
            );
        }
    }
}

#[test]
fn each_session_at_work_has_a_path_of_its_own() {
    let config = generated("attribution = 'slot'", &SLOTS);
    let base =
        |provider: &str| config.pointer(&format!("/models/providers/{provider}/baseUrl")).unwrap().clone();
    assert_eq!(base("cogni"), "http://127.0.0.1:8080/v1");
    assert_eq!(base("cogni-s0"), format!("http://127.0.0.1:8080/slot/{}/v1", SLOTS[0]));
    assert_eq!(base("cogni-s1"), format!("http://127.0.0.1:8080/slot/{}/v1", SLOTS[1]));
}

#[test]
fn a_generated_configuration_has_no_findings() {
    for toml in ["", "account = 'a'", "attribution = 'slot'", "account = 'a'\nattribution = 'plugin'"] {
        let found = super::super::check::check_config(&gateway(toml), &generated(toml, &SLOTS));
        assert_eq!(found, [], "{toml}");
    }
}

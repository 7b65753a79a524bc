//! Tests that the commands which advice names are commands of this program.

use platform_core::{
    budget::Limit, capability::Capability, id::CallId, record::ExchangeRecord, refusal::Refusal, route::Route,
};
use runner_audit::advice;
use serde_json::json;

use crate::commands::{command_lines::words, parses};

/// Returns a refused call of an account whose name needs quotes in a shell.
fn record(refusal: Refusal, rule: Option<&str>) -> ExchangeRecord {
    serde_json::from_value(json!({
        "ts": "2026-11-21T08:30:00.000000Z",
        "run_id": "run-1",
        "attempt": 0,
        "account": "auth0|acct-7",
        "graph": "sandbox:agent",
        "identity": "socket",
        "route": Route::ChatCompletions,
        "stream": false,
        "status": 400,
        "outcome": "refused",
        "refusal": refusal,
        "rule": rule,
        "request_bytes": 0,
        "response_bytes": 0,
        "duration_us": 1,
        "tokens": { "input": 0, "output": 0, "cached": 0, "reasoning": 0 },
        "tokens_source": "none",
        "cost_source": "none",
        "litellm_call_id": CallId::new(1, 1),
        "tools": [],
        "kind": "model",
        "calls": 1,
        "tap": "off",
    }))
    .unwrap()
}

/// Returns rules of every kind that the data plane writes, and none.
fn rules() -> Vec<Option<String>> {
    let limits = Limit::ALL
        .into_iter()
        .flat_map(|limit| ["run", "account"].map(|owner| format!("{owner}.{}", limit.setting())));
    let capabilities = Capability::ALL.map(|capability| format!("capability:{capability}"));
    let others = ["field:mcp_servers", "model:gpt-4o", "tool:bash", "all", "account", "model"];
    let all = limits.chain(capabilities).chain(others.map(str::to_owned));
    std::iter::once(None).chain(all.map(Some)).collect()
}

#[test]
fn every_advised_command_parses() {
    let mut commands = 0;
    for refusal in Refusal::ALL {
        for rule in rules() {
            let record = record(refusal, rule.as_deref());
            for command in &advice::of(&record).unwrap().commands {
                let parsed = parses(&words(command));
                assert!(parsed.is_ok(), "{command} for {record:?}: {parsed:?}");
                commands += 1;
            }
        }
    }
    assert!(commands > Refusal::ALL.len(), "only {commands} commands were tried");
    assert!(parses(&words("sluice limit --accounts a --cost 1")).is_err(), "control");
}

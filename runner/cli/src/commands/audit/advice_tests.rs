//! Tests that the table of advice is complete, and that the commands and settings it names exist.

use platform_core::{
    budget::Limit,
    capability::Capability,
    id::{AccountId, AgentId, CallId, RunId},
    record::{CostSource, ExchangeRecord, Identity, Kind, Outcome, Tokens, TokensSource},
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};
use platform_runtime::settings::Settings;
use runner_audit::advice::{self, Advice, Setting};

use crate::commands::{command_lines::words, parses};

/// Returns a refused call of an account with a name that needs quotes in a shell.
fn record(refusal: Refusal, rule: Option<&str>) -> ExchangeRecord {
    ExchangeRecord {
        ts: "2026-11-21T08:30:00.000000Z".to_owned(),
        run_id: RunId::parse("run-1").unwrap(),
        attempt: 0,
        account: AccountId::parse("auth0|acct-7").unwrap(),
        user: None,
        graph: AgentId::parse("sandbox:agent").unwrap(),
        identity: Identity::Socket,
        route: Route::ChatCompletions,
        model_asked: Some(JournalText::of("gpt-4o")),
        model_answered: None,
        finish_reason: None,
        stream: false,
        status: 400,
        outcome: Outcome::Refused,
        refusal: Some(refusal),
        rule: rule.map(JournalText::of),
        timeout: None,
        request_bytes: 0,
        response_bytes: 0,
        ttfb_us: None,
        duration_us: 1,
        tokens: Tokens::default(),
        tokens_source: TokensSource::None,
        cost_nanodollars: None,
        cost_source: CostSource::None,
        litellm_call_id: CallId::new(1, 1),
        tools: Vec::new(),
        kind: Kind::Model,
        calls: 1,
        tap: platform_core::grant::Tap::Off,
        tool: None,
        seen: None,
        output_rate: None,
        correction: None,
    }
}

/// Returns an example of every rule that the data plane writes, and no rule.
fn rules() -> Vec<Option<String>> {
    let limits = Limit::ALL
        .into_iter()
        .flat_map(|limit| ["run", "account"].map(|owner| format!("{owner}.{}", limit.setting())));
    let capabilities = Capability::ALL.map(|capability| format!("capability:{capability}"));
    let names = [
        "field:mcp_servers",
        "model:gpt-4o",
        "tool:bash",
        "tools",
        "tools.calls",
        "tools.calls_per_minute",
        "tools.calls_in_flight",
        "tool_exec",
        "mcp",
        "all",
        "account",
        "model",
        "<12:0123456789abcdef>",
    ];
    let all = limits.chain(capabilities).chain(names.map(str::to_owned));
    std::iter::once(None).chain(all.map(Some)).collect()
}

fn every_advice() -> impl Iterator<Item = (ExchangeRecord, Advice)> {
    Refusal::ALL.into_iter().flat_map(|refusal| {
        rules().into_iter().map(move |rule| {
            let record = record(refusal, rule.as_deref());
            let advice = advice::of(&record).unwrap();
            (record, advice)
        })
    })
}

#[test]
fn an_answer_cut_at_its_limit_is_explained() {
    let ended = |reason: &str| ExchangeRecord {
        refusal: None,
        finish_reason: Some(JournalText::of(reason)),
        ..record(Refusal::NotGranted, None)
    };
    for reason in ["length", "max_tokens", "max_output_tokens"] {
        let advice = advice::of(&ended(reason)).unwrap();
        assert_eq!(advice.settings[0].key, "output_tokens_per_call", "{reason}");
    }
    // Control: answers that ended by themselves.
    for reason in ["stop", "end_turn", "tool_calls"] {
        assert_eq!(advice::of(&ended(reason)), None, "{reason}");
    }
}

#[test]
fn every_advised_command_parses() {
    for (record, advice) in every_advice() {
        let of_ended_run = advice.clone().for_ended_run(&record);
        for command in advice.commands.iter().chain(&of_ended_run.commands) {
            let parsed = parses(&words(command));
            assert!(parsed.is_ok(), "{command} for {record:?}: {parsed:?}");
        }
    }
    assert!(parses(&words("sluice limit --accounts a --cost 1")).is_err(), "control");
}

/// Returns the schema of `key` in `[section]`. Accepts any quoted name in `section`.
fn in_schema<'s>(schema: &'s serde_json::Value, section: &str, key: &str) -> &'s serde_json::Value {
    let (section, is_named) =
        section.split_once(".\"").map_or((section, false), |(section, _)| (section, true));
    let section = &schema["properties"][section];
    let section = if is_named { &section["additionalProperties"] } else { section };
    &section["properties"][key]
}

#[test]
fn every_setting_that_is_named_exists() {
    let schema = Settings::json_schema();
    let run_id = RunId::parse("run-1").unwrap();
    for (_, advice) in every_advice() {
        let of_run = advice.clone().for_configured_run(&run_id);
        assert!(of_run.settings.iter().all(|setting| !setting.section.starts_with("agents.")), "{of_run:?}");
        for Setting { section, key, .. } in advice.settings.iter().chain(&of_run.settings) {
            assert!(in_schema(&schema, section, key).is_object(), "[{section}] {key}");
        }
    }
    assert!(in_schema(&schema, "accounts.\"a\"", "costs").is_null(), "control");
}

#[test]
fn every_limit_is_changed_where_it_is_set() {
    for limit in Limit::ALL {
        for (owner, section) in
            [("run", "agents.\"sandbox:agent\""), ("account", "accounts.\"auth0|acct-7\"")]
        {
            let rule = format!("{owner}.{}", limit.setting());
            let advice = advice::of(&record(Refusal::QuotaExhausted, Some(&rule))).unwrap();
            let [setting] = &advice.settings[..] else { panic!("{advice:?}") };
            assert_eq!((setting.section.as_str(), setting.key), (section, limit.setting()));
            assert!(advice.commands[0].starts_with("sluice limit --"), "{advice:?}");
        }
    }
    let advice = advice::of(&record(Refusal::QuotaExhausted, Some("account.cost"))).unwrap();
    assert_eq!(
        advice.why,
        "account auth0|acct-7 has used its limit of money, or has too little left for the call"
    );
    assert_eq!(advice.commands[0], "sluice limit --account 'auth0|acct-7' --cost DOLLARS");
}

#[test]
fn no_limit_of_an_ended_run_is_raised() {
    let ended = |rule: &str| {
        let record = record(Refusal::QuotaExhausted, Some(rule));
        advice::of(&record).unwrap().for_ended_run(&record)
    };
    for limit in Limit::ALL {
        let advice = ended(&format!("run.{}", limit.setting()));
        let raises = advice.commands.iter().any(|command| command.starts_with("sluice limit"));
        assert!(!raises && advice.why.contains("the run has ended"), "{advice:?}");
        assert_eq!(advice.settings[0].key, limit.setting(), "{advice:?}");
    }
    let another = "sluice run --agent sandbox:agent --account 'auth0|acct-7' --cost DOLLARS QUESTION";
    assert_eq!(ended("run.cost").commands[0], another);
    // Control: the account goes on without the run.
    assert!(ended("account.cost").commands[0].starts_with("sluice limit --account"));
}

#[test]
fn an_error_of_the_upstream_is_explained() {
    let answered = |status| {
        let outcome = Outcome::Complete;
        advice::of(&ExchangeRecord { refusal: None, status, outcome, ..record(Refusal::NotGranted, None) })
    };
    for status in [400, 404, 429, 500] {
        let advice = answered(status).unwrap();
        assert!(advice.why.contains(&format!("the upstream answered {status}: ")), "{advice:?}");
        for command in &advice.commands {
            assert!(parses(&words(command)).is_ok(), "{command}");
        }
    }
    assert_eq!(answered(200), None, "control");
}

#[test]
fn every_refusal_says_something_of_its_own() {
    let mut reasons: Vec<_> =
        Refusal::ALL.map(|refusal| advice::of(&record(refusal, Some("run.cost"))).unwrap().why).into();
    let all = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!(reasons.len(), all, "{reasons:#?}");
}

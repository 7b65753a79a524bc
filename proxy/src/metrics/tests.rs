//! Tests that every label has its own counter, and that Prometheus can read the text.

use std::{sync::Arc, time::Duration};

use platform_core::{
    host_tools::ToolOutcome,
    record::{CostSource, ExchangeRecord, Kind, Outcome, Tokens, TokensSource, ToolCall},
    refusal::Refusal,
    route::Route,
    untrusted::JournalText,
};
use serde_json::json;

use super::{Gauges, Metrics, Models, call_counters::CallCounters, lag::Lag};

fn models(names: &[&str]) -> Models {
    Models::new(names.iter().map(ToString::to_string))
}

/// Returns the record of a call that took 20 ms and used one token in, two out.
fn record(model: &str) -> ExchangeRecord {
    serde_json::from_value(json!({
        "ts": "2026-01-01T00:00:00.000000Z", "run_id": "run-secret", "attempt": 0, "account": "acct-secret",
        "user": null, "graph": "sandbox:agent", "identity": "socket", "route": "messages",
        "model_asked": JournalText::of(model), "model_answered": null, "stream": true, "status": 200,
        "outcome": "complete", "refusal": null, "request_bytes": 7, "response_bytes": 9, "ttfb_us": 10_000,
        "duration_us": 20_000, "tokens": { "input": 1, "output": 2, "cached": 0, "reasoning": 0 },
        "tokens_source": "exact", "cost_nanodollars": 5, "cost_source": "priced",
        "litellm_call_id": "019b0000-0000-7000-8000-000000000000", "tools": [], "kind": "model", "tap": "off",
    }))
    .unwrap()
}

#[test]
fn each_combination_of_labels_has_one_counter() {
    let counts = CallCounters::new(&Arc::new(models(&[])));
    let reasons = || [None].into_iter().chain(Refusal::ALL.map(Some));
    let each = |visit: &mut dyn FnMut(Route, Outcome, Option<Refusal>)| {
        for route in Route::ALL {
            for outcome in Outcome::ALL {
                reasons().for_each(|refusal| visit(route, outcome, refusal));
            }
        }
    };
    each(&mut |route, outcome, refusal| {
        counts.count(&ExchangeRecord { route, outcome, refusal, ..record("m") })
    });
    each(&mut |route, outcome, refusal| {
        assert_eq!(counts.calls(route, outcome, refusal), 1, "{route:?} {outcome:?} {refusal:?}");
    });
    for tokens_source in TokensSource::ALL {
        for cost_source in CostSource::ALL {
            let before = counts.metered(tokens_source, cost_source);
            counts.count(&ExchangeRecord { tokens_source, cost_source, ..record("m") });
            let counted = counts.metered(tokens_source, cost_source) - before;
            assert_eq!(counted, 1, "{tokens_source:?} {cost_source:?}");
        }
    }
}

#[test]
fn only_configured_models_have_a_series() {
    let odd = "odd model, \"quoted\"";
    let known = models(&["gpt-4o", "claude", "gpt-4o", "other", odd]);
    assert_eq!(known.count(), 4, "each once, and the rest");
    let labels: Vec<_> = known.labels().collect();
    let label = |asked: &str| labels[known.index(Some(&JournalText::of(asked)))];
    assert_eq!(label("gpt-4o"), "gpt-4o");
    assert_eq!(label("claude"), "claude");
    assert!(label(odd).starts_with('<'), "as in the journal: {}", label(odd));
    for asked in ["gpt-4o-mini", "GPT-4o", "", "other", "gpt-4o\n"] {
        assert_eq!(label(asked), "other", "{asked:?}");
    }
    assert_eq!(labels[known.index(None)], "other");
}

#[test]
fn threads_are_summed_and_refusals_are_not_timed() {
    let metrics = Metrics::new(models(&["claude"]), 2);
    let tokens =
        Tokens { input: 10, output: 20, cached: 3, cache_written: 4, cache_written_1h: 2, reasoning: 5 };
    metrics.threads()[0].count(&record("claude"));
    metrics.threads()[1].count(&ExchangeRecord { tokens, ..record("claude") });
    metrics.threads()[1].count(&record("made-up-by-an-agent"));
    let (outcome, refusal) = (Outcome::Refused, Some(Refusal::Frozen));
    metrics.threads()[1].count(&ExchangeRecord { outcome, refusal, ttfb_us: None, ..record("claude") });
    let text = metrics.render(&Gauges { in_flight: 3, journal_is_open: true, ..Gauges::default() });
    for line in [
        "sluicegate_calls_total{route=\"messages\",outcome=\"complete\",refusal=\"none\"} 3",
        "sluicegate_calls_total{route=\"messages\",outcome=\"refused\",refusal=\"frozen\"} 1",
        "sluicegate_metered_calls_total{tokens=\"exact\",cost=\"priced\"} 3",
        "sluicegate_request_bytes_total{route=\"messages\"} 28",
        "sluicegate_response_bytes_total{route=\"messages\"} 36",
        "sluicegate_tokens_total{kind=\"input\",model=\"claude\"} 11",
        "sluicegate_tokens_total{kind=\"output\",model=\"claude\"} 22",
        "sluicegate_tokens_total{kind=\"cached\",model=\"claude\"} 3",
        "sluicegate_tokens_total{kind=\"cache_written\",model=\"claude\"} 4",
        "sluicegate_tokens_total{kind=\"cache_written_1h\",model=\"claude\"} 2",
        "sluicegate_tokens_total{kind=\"reasoning\",model=\"claude\"} 5",
        "sluicegate_tokens_total{kind=\"input\",model=\"other\"} 1",
        "sluicegate_cost_dollars_total{model=\"claude\"} 0.000000010",
        "sluicegate_first_byte_seconds_bucket{route=\"messages\",stream=\"true\",le=\"0.01\"} 3",
        "sluicegate_first_byte_seconds_sum{route=\"messages\",stream=\"true\"} 0.030000",
        "sluicegate_call_duration_seconds_bucket{route=\"messages\",le=\"0.01\"} 0",
        "sluicegate_call_duration_seconds_bucket{route=\"messages\",le=\"0.025\"} 3",
        "sluicegate_call_duration_seconds_bucket{route=\"messages\",le=\"+Inf\"} 3",
        "sluicegate_call_duration_seconds_count{route=\"messages\"} 3",
        "sluicegate_calls_in_flight 3",
        "sluicegate_journal_open 1",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    for word in ["made-up", "secret", "sandbox:agent", "019b0000"] {
        assert!(!text.contains(word), "{word} is in\n{text}");
    }
}

#[test]
fn a_small_installation_has_about_170_series() {
    let metrics = Metrics::new(models(&["gpt-4o"]), 2);
    for stream in [false, true] {
        metrics.threads()[0].count(&ExchangeRecord { stream, ..record("gpt-4o") });
    }
    let text = metrics.render(&Gauges::default());
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!((160..=180).contains(&series), "{series} series");
}

#[test]
fn tool_calls_are_counted_by_outcome() {
    let metrics = Metrics::new(models(&["gpt-4o"]), 1);
    for outcome in [ToolOutcome::Done, ToolOutcome::Done, ToolOutcome::Unknown] {
        let call = ToolCall { name: JournalText::of("a"), outcome, connection: None, args_sha256: None };
        let of_tool =
            ExchangeRecord { kind: Kind::Tool, route: Route::Mcp, tool: Some(Box::new(call)), ..record("x") };
        metrics.threads()[0].count(&of_tool);
    }
    let text = metrics.render(&Gauges::default());
    for line in [
        "sluicegate_tool_calls_total{outcome=\"done\"} 2",
        "sluicegate_tool_calls_total{outcome=\"failed\"} 0",
        "sluicegate_tool_calls_total{outcome=\"unknown\"} 1",
        "sluicegate_tokens_total{kind=\"input\",model=\"other\"} 0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_largest_lag_lasts_two_windows() {
    let lag = Lag::new();
    lag.record(Duration::from_millis(30));
    lag.record(Duration::from_millis(4));
    assert_eq!(lag.largest(), 30_000);
    lag.begin_window();
    lag.record(Duration::from_millis(7));
    assert_eq!(lag.largest(), 30_000, "the window before still counts");
    lag.begin_window();
    assert_eq!(lag.largest(), 7_000);
    assert_eq!(lag.read().count, 3, "the histogram forgets nothing");
}

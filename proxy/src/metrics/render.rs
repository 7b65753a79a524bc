//! Renders every family, with its name and its help text. Names are kept: dashboards and alerts rely on them.

use platform_core::{
    control::UpstreamState,
    host_tools::ToolOutcome,
    record::{CostSource, Outcome, TokensSource},
    refusal::Refusal,
    route::Route,
};
use platform_runtime::metrics::{Exposition, Kind, dollars, seconds};

use super::{
    Gauges, Metrics, Reserved,
    call_counters::{AnswerKind, CallCounters, KINDS, first_byte_index},
};

/// Returns all families as text.
pub(super) fn render(metrics: &Metrics, gauges: &Gauges) -> String {
    let mut text = Exposition::default();
    let build = "The version of this proxy.";
    text.family(Kind::Gauge, "sluicegate_build_info", build)
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let counts = metrics.calls();
    calls(&mut text, &counts);
    tools(&mut text, &counts);
    durations(&mut text, &counts);
    models(&mut text, &counts);
    current_values(&mut text, gauges);
    reserved(&mut text, &gauges.reserved);
    threads(&mut text, metrics);
    text.finish()
}

fn calls(text: &mut Exposition, counts: &CallCounters) {
    let help = "Calls that have ended; refusal is why Sluicegate answered itself, or none. Of all that can be, those that were.";
    let mut family = text.family(Kind::Counter, "sluicegate_calls_total", help);
    let reasons = || [None].into_iter().chain(Refusal::ALL.map(Some));
    for (route, outcome) in Route::ALL.iter().flat_map(|route| Outcome::ALL.map(|outcome| (*route, outcome)))
    {
        for refusal in reasons() {
            let count = counts.calls(route, outcome, refusal);
            // Answered calls are listed from the beginning, so that other outcomes have something to compare with.
            if count > 0 || (outcome == Outcome::Complete && refusal.is_none()) {
                let refusal = refusal.map_or("none", Refusal::code);
                let labels = [("route", route.word()), ("outcome", outcome.word()), ("refusal", refusal)];
                family.sample(&labels, count);
            }
        }
    }
    let help = "Calls that were not refused, by where their tokens and their cost are from.";
    let mut family = text.family(Kind::Counter, "sluicegate_metered_calls_total", help);
    for (tokens, cost) in
        TokensSource::ALL.iter().flat_map(|tokens| CostSource::ALL.map(|cost| (*tokens, cost)))
    {
        family.sample(&[("tokens", tokens.word()), ("cost", cost.word())], counts.metered(tokens, cost));
    }
    let mut family =
        text.family(Kind::Counter, "sluicegate_request_bytes_total", "Bytes of request bodies that arrived.");
    Route::ALL.iter().for_each(|route| family.sample(&[("route", route.word())], counts.bytes(*route).0));
    let help = "Bytes of response bodies that were passed on.";
    let mut family = text.family(Kind::Counter, "sluicegate_response_bytes_total", help);
    Route::ALL.iter().for_each(|route| family.sample(&[("route", route.word())], counts.bytes(*route).1));
}

fn tools(text: &mut Exposition, counts: &CallCounters) {
    let help = "Calls of host tools that were not refused here, by outcome: done, failed, denied by the control plane or a person, or unknown.";
    let mut family = text.family(Kind::Counter, "sluicegate_tool_calls_total", help);
    for outcome in ToolOutcome::ALL {
        family.sample(&[("outcome", outcome.word())], counts.tool_calls(outcome));
    }
}

fn durations(text: &mut Exposition, counts: &CallCounters) {
    let help =
        "Time from a call's beginning to the first byte of the upstream's answer, by whether it is streamed.";
    let mut family = text.family(Kind::Histogram, "sluicegate_first_byte_seconds", help);
    for (route, answer) in Route::ALL.iter().flat_map(|route| AnswerKind::ALL.map(|answer| (*route, answer)))
    {
        let distribution = counts.first_byte.read(first_byte_index(route, answer));
        if distribution.count > 0 {
            family.histogram(&[("route", route.word()), ("stream", answer.word())], &distribution);
        }
    }
    let help = "Time from a call's beginning to its end, of calls that were not refused.";
    let mut family = text.family(Kind::Histogram, "sluicegate_call_duration_seconds", help);
    for route in Route::ALL {
        let distribution = counts.duration.read(route as usize);
        if distribution.count > 0 {
            family.histogram(&[("route", route.word())], &distribution);
        }
    }
}

fn models(text: &mut Exposition, counts: &CallCounters) {
    let help = "Tokens; cached and cache_written are parts of input, cache_written_1h is one of cache_written, reasoning is one of output. Models that the configuration names, else other.";
    let mut family = text.family(Kind::Counter, "sluicegate_tokens_total", help);
    for (model, tokens, _) in counts.by_model() {
        for (kind, count) in KINDS.iter().zip(tokens) {
            family.sample(&[("kind", *kind), ("model", model)], count);
        }
    }
    let help = "Dollars, as far as cost is known.";
    let mut family = text.family(Kind::Counter, "sluicegate_cost_dollars_total", help);
    counts.by_model().for_each(|(model, _, cost)| family.sample(&[("model", model)], dollars(cost)));
}

fn current_values(text: &mut Exposition, gauges: &Gauges) {
    let mut gauge = |name, value: u64, help| text.single(Kind::Gauge, name, value, help);
    gauge("sluicegate_runs_open", gauges.runs, "Runs that are open or closing.");
    gauge("sluicegate_calls_in_flight", gauges.in_flight, "Calls in flight.");
    gauge("sluicegate_body_memory_bytes", gauges.body_bytes, "Bytes of request bodies in memory.");
    gauge("sluicegate_header_memory_bytes", gauges.head_bytes, "Bytes that unfinished request heads hold.");
    gauge("sluicegate_taps", gauges.taps, "Watchers of what streams by.");
    gauge(
        "sluicegate_tap_bytes",
        gauges.tap_bytes,
        "Bytes of memory held of what streamed by, for watchers who come late.",
    );
    gauge(
        "sluicegate_upstream_idle_connections",
        gauges.idle_connections,
        "Connections to the upstream that wait for calls.",
    );
    upstream_state(text, gauges.upstream_state);
    let mut gauge = |name, value: u64, help| text.single(Kind::Gauge, name, value, help);
    gauge(
        "sluicegate_upstream_prices",
        gauges.shown_prices,
        "Models that the upstream shows a price of, at /model/info.",
    );
    gauge(
        "sluicegate_upstream_prices_read",
        gauges.shown_prices_are_read.into(),
        "1 if the last attempt to read prices of the upstream succeeded; health says why not.",
    );
    gauge("sluicegate_journal_sequence", gauges.journal_seq, "Number of the journal's last record.");
    gauge(
        "sluicegate_journal_open",
        gauges.journal_is_open.into(),
        "1 if the journal has space for records; else calls are refused, and health says why.",
    );
    gauge("sluicegate_journal_bytes", gauges.journal_bytes, "Bytes of the journal's files.");
    gauge("sluicegate_journal_consumers", gauges.consumers, "Consumers that acknowledge what they read.");
    gauge(
        "sluicegate_journal_lag",
        gauges.consumer_lag,
        "Records that the slowest consumer has not acknowledged.",
    );
    gauge("sluicegate_freezes", gauges.freezes, "Accounts and models that are frozen, and everything.");
}

fn reserved(text: &mut Exposition, reserved: &Reserved) {
    let help = "Requests that calls in flight have reserved of their accounts' limits.";
    text.single(Kind::Gauge, "sluicegate_reserved_requests", reserved.requests, help);
    let mut family = text.family(
        Kind::Gauge,
        "sluicegate_reserved_tokens",
        "The most tokens that calls in flight can use.",
    );
    family.sample(&[("kind", "input")], reserved.input_tokens);
    family.sample(&[("kind", "output")], reserved.output_tokens);
    let help = "The most that calls in flight can cost, as far as their models have a price.";
    text.single(Kind::Gauge, "sluicegate_reserved_cost_dollars", dollars(reserved.cost.0), help);
}

fn upstream_state(text: &mut Exposition, state: &str) {
    let help =
        "1 for the state the upstream is in: up, or down and calls are refused, or down and being probed.";
    let mut family = text.family(Kind::Gauge, "sluicegate_upstream_state", help);
    UpstreamState::WORDS
        .iter()
        .for_each(|word| family.sample(&[("state", *word)], u64::from(*word == state)));
}

fn threads(text: &mut Exposition, metrics: &Metrics) {
    let threads = || metrics.threads().iter().enumerate().map(|(at, thread)| (at.to_string(), &thread.lag));
    let help = "How late a data-plane thread came to what was due, sampled four times a second.";
    let mut family = text.family(Kind::Histogram, "sluicegate_loop_lag_seconds", help);
    threads().for_each(|(thread, lag)| family.histogram(&[("thread", &thread)], &lag.read()));
    let help = "The same, the largest of the last one to two minutes.";
    let mut family = text.family(Kind::Gauge, "sluicegate_loop_lag_max_seconds", help);
    threads().for_each(|(thread, lag)| family.sample(&[("thread", &thread)], seconds(lag.largest())));
}

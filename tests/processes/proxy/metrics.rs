//! Metrics: what they count is what the journal has, and no agent can put its own word into them.

use std::{collections::BTreeMap, net::SocketAddr};

use futures_util::{StreamExt, stream};
use harness::{
    Agent, CANARY_KEY, Run, World,
    agent::{Answering, Wire, body_for},
    bridge::free_port,
    eventually, grant,
    metrics::{Scrape, name_of},
};
use http::Method;
use platform_core::{
    grant::{Correlation, RunGrant, Tap},
    id::ExternalId,
    record::{JournalLine, Outcome},
};
use platform_runtime::task;
use serde_json::json;
use tokio::io::AsyncWriteExt;

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

async fn scrape(world: &World) -> Scrape {
    let answer = world.control.send(Method::GET, "/v1/metrics", String::new()).await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scrape::of(answer.text())
}

/// Looks until a gauge or counter without labels has this value.
async fn until(world: &World, name: &str, value: f64) {
    let look = || async { scrape(world).await.one(name) };
    eventually(name, look, |seen| *seen == value).await;
}

/// Counts the journal's lines by route, outcome and refusal, under the names of the metrics.
fn counted(journal: &[JournalLine]) -> BTreeMap<String, f64> {
    let mut calls = BTreeMap::new();
    for JournalLine { record, .. } in journal {
        let key = format!(
            "sluicegate_calls_total{{route=\"{}\",outcome=\"{}\",refusal=\"{}\"}}",
            record.route.word(),
            record.outcome.word(),
            record.refusal.map_or("none", |refusal| refusal.code()),
        );
        *calls.entry(key).or_default() += 1.0;
    }
    calls
}

fn calls_of(scrape: &Scrape) -> BTreeMap<String, f64> {
    let calls =
        scrape.series.iter().filter(|(key, value)| name_of(key) == "sluicegate_calls_total" && **value > 0.0);
    calls.map(|(key, value)| (key.clone(), *value)).collect()
}

/// Makes one call of most kinds.
async fn live(agent: &Agent) {
    for model in ["fake", "fake-cost", "fake-status429", "fake-cut0", "not-a-model-of-anybody"] {
        agent.chat(model).await;
    }
    for model in ["fake", "fake-cut3-gap1ms", "fake-errmid2"] {
        drop(agent.stream(model).await.until_break().await);
    }
    agent.post(MESSAGES, &body_for(MESSAGES, "fake", Answering::Whole)).await;
    agent.get("/v1/models").await;
    agent.post("/v1/files", &json!({})).await;
    agent.request(Method::POST, CHAT, "{".into()).await.unwrap();
    agent.post(CHAT, &json!({ "model": "fake", "messages": [], "made_up_field": 1 })).await;
}

#[tokio::test]
async fn calls_are_counted_by_outcome_as_journaled() {
    let world = World::with("[prices.'fake']\ninput = '1.00'\noutput = '2.00'").await;
    let (one, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    live(&one.agent).await;
    live(&other.agent).await;
    let journal = world.records(26).await;
    let seen = scrape(&world).await;
    assert_eq!(calls_of(&seen), counted(&journal));
    for (route, outcome, refusal, count) in [
        ("chat_completions", "complete", "none", 10.0),
        ("chat_completions", "stream_error", "none", 2.0),
        ("chat_completions", "upstream_gone", "upstream_reset", 2.0),
        ("chat_completions", "refused", "field_unknown", 2.0),
        ("chat_completions", "refused", "body_invalid", 2.0),
        ("messages", "complete", "none", 2.0),
        ("models", "complete", "none", 2.0),
        ("unknown", "refused", "route_unknown", 2.0),
    ] {
        let labels = [("route", route), ("outcome", outcome), ("refusal", refusal)];
        assert_eq!(seen.sum("sluicegate_calls_total", &labels), count, "{labels:?}\n{}", seen.text);
    }
    tokens_and_bytes_are_those_of(&journal, &seen);

    // Both runs are gone, and their calls stay counted.
    for Run { grant, .. } in [one, other] {
        world.control.close(&grant.run_id, 0).await.unwrap();
    }
    let after = scrape(&world).await;
    assert_eq!(calls_of(&after), counted(&journal));
    assert_eq!((seen.one("sluicegate_runs_open"), after.one("sluicegate_runs_open")), (2.0, 0.0));
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn tokens_and_bytes_are_those_of(journal: &[JournalLine], seen: &Scrape) {
    let of = |model: &str, amount: fn(&JournalLine) -> u64| {
        let is_its = |line: &&JournalLine| {
            let asked = line.record.model_asked.as_ref().map(|asked| asked.as_str());
            (asked == Some("fake")) == (model == "fake")
        };
        journal.iter().filter(is_its).map(amount).sum::<u64>() as f64
    };
    for model in ["fake", "other"] {
        for (kind, expected) in [
            ("input", of(model, |line| line.record.tokens.input)),
            ("output", of(model, |line| line.record.tokens.output)),
            ("cached", of(model, |line| line.record.tokens.cached)),
            ("cache_written", of(model, |line| line.record.tokens.cache_written)),
            ("cache_written_1h", of(model, |line| line.record.tokens.cache_written_1h)),
            ("reasoning", of(model, |line| line.record.tokens.reasoning)),
        ] {
            let labels = [("kind", kind), ("model", model)];
            assert_eq!(seen.sum("sluicegate_tokens_total", &labels), expected, "{labels:?}");
            assert!(kind != "output" || expected > 0.0, "{model} has some to compare");
        }
        let cost = of(model, |line| line.record.cost_nanodollars.unwrap_or_default().0);
        let dollars = seen.sum("sluicegate_cost_dollars_total", &[("model", model)]);
        assert_eq!(((dollars * 1e9).round(), cost > 0.0), (cost, true), "{model}");
    }
    let bytes = journal.iter().map(|line| line.record.request_bytes).sum::<u64>() as f64;
    assert_eq!(seen.sum("sluicegate_request_bytes_total", &[]), bytes);
    let bytes = journal.iter().map(|line| line.record.response_bytes).sum::<u64>() as f64;
    assert_eq!(seen.sum("sluicegate_response_bytes_total", &[]), bytes);
    for (name, expected) in [
        ("sluicegate_call_duration_seconds_count", journal.iter().filter(|line| is_timed(line)).count()),
        ("sluicegate_metered_calls_total", journal.iter().filter(|line| is_timed(line)).count()),
        (
            "sluicegate_first_byte_seconds_count",
            journal.iter().filter(|line| line.record.ttfb_us.is_some()).count(),
        ),
    ] {
        assert_eq!(seen.sum(name, &[]), expected as f64, "{name}");
    }
}

fn is_timed(line: &JournalLine) -> bool {
    line.record.outcome != Outcome::Refused
}

#[tokio::test]
async fn invented_models_and_routes_make_no_series() {
    let world =
        World::with("[agents.'team:one']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodel = 'fake-words2'\nmodels = ['fake-words3', 'fake-words4']")
            .await;
    let agent = world.run("r1", "acct-1").await.agent;
    agent.chat("fake-words5").await;
    agent.post("/v1/made-up", &json!({})).await;
    let odd = "fake\"} 1\nsluicegate_forged_total{model=\"x";
    agent.post(CHAT, &json!({ "model": odd, "messages": [{ "role": "user", "content": "x" }] })).await;
    let before = scrape(&world).await;
    let configured = ["fake", "fake-words2", "fake-words3", "fake-words4", "other"];
    assert_eq!(before.values("model"), configured.map(str::to_owned).into());

    let calls = stream::iter(0..1000).map(|n| {
        let agent = &agent;
        async move {
            agent.chat(&format!("fake-words{}", 10 + n)).await;
            agent.post(&format!("/v1/made-up-{n}"), &json!({})).await;
        }
    });
    calls.buffer_unordered(8).collect::<()>().await;
    let after = scrape(&world).await;
    let new: Vec<_> = after.keys().difference(&before.keys()).copied().collect();
    assert_eq!((new, after.series.len()), (Vec::<&str>::new(), before.series.len()));
    assert_eq!(after.sum("sluicegate_calls_total", &[("route", "unknown")]), 1001.0);
    assert!(after.sum("sluicegate_tokens_total", &[("model", "other"), ("kind", "output")]) > 10_000.0);

    // A configured name has its own series, which the same call would not have made.
    let own = [("model", "fake-words3"), ("kind", "output")];
    assert_eq!(after.sum("sluicegate_tokens_total", &own), 0.0);
    agent.chat("fake-words3").await;
    assert_eq!(scrape(&world).await.sum("sluicegate_tokens_total", &own), 3.0);
}

#[tokio::test]
async fn metrics_name_no_caller_and_no_content() {
    let world = World::start().await;
    let correlation =
        Correlation { user: Some(ExternalId::parse("user-77").unwrap()), ..Correlation::default() };
    let run = world.run_with(RunGrant { correlation, ..grant("run-1234", "acct-5678") }).await;
    live(&run.agent).await;
    let lines = serde_json::to_string(&world.records(13).await).unwrap();
    let text = scrape(&world).await.text;
    // The journal has the first words, so the metrics could leak them.
    let known = ["run-1234", "acct-5678", "user-77", "sandbox:agent", "not-a-model-of-anybody", "fake-cut0"];
    for word in known {
        assert!(lines.contains(word), "{word} is not in the journal");
        assert!(!text.contains(word), "{word} is in\n{text}");
    }
    for word in [CANARY_KEY, "Say hello", "Hello from", "made_up_field", "/v1/files", "127.0.0.1"] {
        assert!(!text.contains(word), "{word} is in\n{text}");
    }
}

#[tokio::test]
async fn gauges_return_to_zero_when_calls_end() {
    let world = World::with("[prices.'*']\ninput = '1.00'\noutput = '2.00'").await;
    let run = world.run_with(RunGrant { tap: Tap::Text, ..grant("r1", "acct-1") }).await;
    let nothing =
        ["calls_in_flight", "taps", "body_memory_bytes", "reserved_requests", "reserved_cost_dollars"]
            .map(|name| format!("sluicegate_{name}"));
    let before = scrape(&world).await;
    nothing.iter().for_each(|name| assert_eq!(before.one(name), 0.0, "{name}"));
    assert_eq!((before.one("sluicegate_freezes"), before.one("sluicegate_journal_open")), (0.0, 1.0));

    let watcher = world.control.tap(&run.grant.run_id).await;
    let mut streaming = run.agent.stream("fake-stall2").await;
    streaming.next().await.unwrap();
    let mut uploading = run.agent.connect().await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n";
    uploading.write_all(format!("{head}{}", " ".repeat(1000)).as_bytes()).await.unwrap();
    until(&world, "sluicegate_body_memory_bytes", 1000.0).await;
    until(&world, "sluicegate_taps", 1.0).await;
    assert!(scrape(&world).await.one("sluicegate_tap_bytes") > 0.0);
    let during = scrape(&world).await;
    assert_eq!(
        (during.one("sluicegate_calls_in_flight"), during.one("sluicegate_reserved_requests")),
        (2.0, 2.0)
    );
    assert!(during.sum("sluicegate_reserved_tokens", &[("kind", "input")]) > 0.0);
    assert!(during.sum("sluicegate_reserved_tokens", &[("kind", "output")]) >= 8192.0);
    assert!(during.one("sluicegate_reserved_cost_dollars") > 0.016);

    drop((watcher, streaming, uploading));
    world.records(2).await;
    for name in &nothing {
        until(&world, name, 0.0).await;
    }
    assert_eq!(scrape(&world).await.sum("sluicegate_reserved_tokens", &[]), 0.0);
    assert_eq!(scrape(&world).await.one("sluicegate_journal_sequence"), 2.0);
}

#[tokio::test]
async fn the_lag_of_each_thread_is_watched() {
    let world = World::start().await;
    let seen = eventually(
        "every thread was late by something",
        || scrape(&world),
        |seen| {
            ["0", "1"]
                .iter()
                .all(|thread| seen.sum("sluicegate_loop_lag_seconds_count", &[("thread", *thread)]) >= 2.0)
        },
    )
    .await;
    assert_eq!(seen.values("thread"), ["0".to_owned(), "1".to_owned()].into(), "one per thread");
    let largest = |thread| seen.sum("sluicegate_loop_lag_max_seconds", &[("thread", thread)]);
    assert!(largest("0") > 0.0 && largest("1") > 0.0, "{}", seen.text);
}

#[tokio::test]
async fn concurrent_scrapes_agree_with_the_journal() {
    let world = World::start().await;
    let runs = [world.run("r1", "acct-1").await, world.run("r2", "acct-2").await];
    let readers = [(); 2].map(|()| {
        let control = world.control.clone();
        task::spawn("reader", async move {
            let (mut before, mut reads) = (0.0, 0);
            while before < 26.0 * 4.0 {
                let text = control.send(Method::GET, "/v1/metrics", String::new()).await.text();
                let calls = Scrape::of(text).sum("sluicegate_calls_total", &[]);
                assert!(calls >= before, "{calls} after {before}");
                (before, reads) = (calls, reads + 1);
            }
            reads
        })
    });
    let calls = runs.iter().flat_map(|run| [(); 4].map(|()| live(&run.agent)));
    futures_util::future::join_all(calls).await;
    let journal = world.records(26 * 4).await;
    for reader in readers {
        assert!(reader.await.unwrap() >= 1);
    }
    assert_eq!(calls_of(&scrape(&world).await), counted(&journal));
}

/// Starts a world with its metrics on a TCP listener; returns it with a client.
async fn listening() -> (World, Agent, SocketAddr) {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let address = free_port();
    world.reconfigure("threads = 2", &format!("threads = 2\nmetrics_listen = '{address}'"));
    world.start_proxy().await;
    let agent = Agent::over_tcp(address).searched();
    (world, agent, address)
}

#[tokio::test]
async fn the_metrics_address_serves_only_metrics() {
    let (world, prometheus, address) = listening().await;
    world.run("r1", "acct-1").await.agent.chat("fake").await;
    let answer = prometheus.get("/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let seen = Scrape::of(answer.text());
    assert_eq!(calls_of(&seen), counted(&world.journal().await));
    assert_eq!(seen.keys(), scrape(&world).await.keys());

    let asked = [
        (Method::GET, "/"),
        (Method::GET, "/v1/metrics"),
        (Method::POST, "/metrics"),
        (Method::GET, "/v1/runs"),
    ];
    for (method, path) in asked {
        // As control would be asked: that it is not control is the point.
        let prometheus = prometheus.clone().with_header("x-sluice-protocol", "1");
        let answer = prometheus.request(method.clone(), path, "".into()).await.unwrap();
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
    }
    // A few clients that connect and say nothing do not keep Prometheus out.
    let mut silent: Vec<Box<dyn Wire>> = Vec::new();
    for _ in 0..10 {
        silent.push(prometheus.connect().await.unwrap());
    }
    assert_eq!(prometheus.get("/metrics").await.status, 200);

    let other = World::start().await;
    other.reconfigure("threads = 2", &format!("threads = 2\nmetrics_listen = '{address}'"));
    other.reconfigure("/run'", "/run-2'");
    other.reconfigure("/state'", "/state-2'");
    let complaint = other.proxy_fails_to_start().await;
    assert!(complaint.contains(&format!("cannot listen on proxy.metrics_listen {address}")), "{complaint}");
}

/// Without a proxy it fails and says so.
#[tokio::test]
async fn the_command_prints_metrics_of_the_proxy() {
    let mut world = World::start().await;
    world.run("r1", "acct-1").await.agent.chat("fake").await;
    let printed = world.sluice().run(&["metrics"]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert_eq!(Scrape::of(printed.stdout).sum("sluicegate_calls_total", &[]), 1.0);
    assert!(world.stop_proxy().await);
    let printed = world.sluice().run(&["metrics"]).await;
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(69), ""), "{printed:?}");
    assert!(printed.stderr.contains("sluice up"), "{printed:?}");
}

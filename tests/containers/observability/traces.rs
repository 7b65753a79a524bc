//! Tests traces: a run is one trace, with its calls, as part of its caller's, also when a process is killed meanwhile.
//! A collector that fails harms no run.

use std::collections::{BTreeMap, BTreeSet};

use harness::{
    Agent, Up, World,
    bridge::free_port,
    canary,
    collector::{Collector, Span, Takes},
    eventually::eventually_within,
    metrics::Scrape,
    private_file,
};
use rustix::process::Signal;

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, record},
    sandbox::shell_agent,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const PHASES: [&str; 5] = ["queued", "prepare", "start", "agent", "settle"];

/// Returns an agent that calls a model twice, then prints something.
fn caller() -> String {
    let ask = r#"curl --silent --output /dev/null http://localhost:8080/v1/chat/completions --json '
        { "model": "fake", "messages": [{ "role": "user", "content": "whispered-question" }] }'"#;
    shell_agent(&format!("{ask}; {ask}; echo whispered-answer"), "")
}

/// Starts a world without a proxy, with traces that go to `collector`.
async fn world(collector: &Collector, toml: &str) -> World {
    let mut world = World::with(&format!("{}{toml}{LEASE}", collector.settings())).await;
    assert!(world.stop_proxy().await);
    world
}

async fn ordered(world: &World, run: &str, flags: &[&str]) {
    let words = ["run", "--detach", "--run-id", run, "--agent", "test:sh", "--account", "acct-7"];
    let outcome = world.sluice().run(&[&words[..], flags, &["whispered-question"]].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

fn of<'s>(spans: &'s [Span], run: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.attributes.get("sluicegate.run_id").is_some_and(|id| id == run)).collect()
}

/// Returns the spans of a run, once there are its phases, `calls` calls and itself.
async fn told(collector: &Collector, run: &str, calls: usize) -> Vec<Span> {
    let look = || async { of(&collector.spans(), run).into_iter().cloned().collect::<Vec<_>>() };
    let ids = |spans: &[Span]| spans.iter().map(|span| span.id.clone()).collect::<BTreeSet<_>>().len();
    eventually_within(PATIENCE, "all is told", look, |spans| ids(spans) >= PHASES.len() + 1 + calls).await
}

/// Asserts that `spans` are those of a run, as part of `trace` and below `caller`; returns its calls.
fn is_one_trace<'s>(spans: &'s [Span], trace: &str, caller: &str) -> Vec<&'s Span> {
    assert!(spans.iter().all(|span| span.trace == trace), "{spans:#?}");
    let named = |name: &str| {
        let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
        assert_eq!(named.len(), 1, "{name} in {spans:#?}");
        named[0]
    };
    let (root, agent) = (named("invoke_agent test:sh"), named("agent"));
    assert_eq!((root.parent.as_str(), root.kind), (caller, 1));
    let mut time = root.start;
    for phase in PHASES.map(named) {
        assert_eq!((&phase.parent, phase.start), (&root.id, time), "{phase:?} follows");
        time = phase.end;
    }
    assert_eq!(root.end, time);
    let calls: Vec<_> = spans.iter().filter(|span| span.kind == 3).collect();
    for call in &calls {
        assert_eq!((&call.parent, call.name.as_str()), (&agent.id, "chat"));
        // The store counts milliseconds.
        assert!(call.start + 1_000_000 > agent.start && call.end < agent.end + 1_000_000, "{call:?}");
    }
    assert_eq!(spans.len(), PHASES.len() + 1 + calls.len(), "nothing else: {spans:#?}");
    calls
}

/// The trace continues that of the caller.
#[tokio::test]
async fn a_run_and_its_calls_are_one_trace() {
    let collector = Collector::start().await;
    let world = world(&collector, &caller()).await;
    let up = Up::start(world.sluice()).await;
    ordered(&world, "joined", &["--traceparent", &format!("00-{TRACE}-{SPAN}-01")]).await;
    ordered(&world, "alone", &[]).await;
    ordered(&world, "unkept", &["--traceparent", &format!("00-{TRACE}-{SPAN}-00")]).await;
    for run in ["joined", "alone", "unkept"] {
        assert_eq!(ended(&world, run).await["state"], "succeeded");
    }
    let joined = told(&collector, "joined", 2).await;
    let calls = is_one_trace(&joined, TRACE, SPAN);
    let used = &record(&world, "joined").await["usage"]["tokens"];
    for (key, value) in [("gen_ai.operation.name", "invoke_agent"), ("sluicegate.outcome", "succeeded")] {
        let root = joined.iter().find(|span| span.parent == SPAN).unwrap();
        assert_eq!(root.attributes[key], value);
        assert_eq!(root.attributes["gen_ai.usage.input_tokens"], used["input"].to_string());
    }
    for call in &calls {
        for (key, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "fake"),
            ("sluicegate.account", "acct-7"),
            ("sluicegate.outcome", "complete"),
            ("http.response.status_code", "200"),
        ] {
            assert_eq!(call.attributes[key], value, "{call:#?}");
        }
    }
    let sum: u64 = calls
        .iter()
        .map(|call| call.attributes["gen_ai.usage.input_tokens"].as_str().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, used["input"].as_u64().unwrap());

    let alone = told(&collector, "alone", 2).await;
    assert_ne!(alone[0].trace, TRACE);
    is_one_trace(&alone, &alone[0].trace, "");
    // The same order as part of another trace is the same order.
    ordered(&world, "alone", &["--traceparent", &format!("00-{TRACE}-{SPAN}-01")]).await;
    up.stop(Signal::TERM).await;
    let spans = collector.spans();
    assert_eq!(
        (of(&spans, "joined").len(), of(&spans, "alone").len(), of(&spans, "unkept").len()),
        (8, 8, 0)
    );
    for (_, body) in collector.requests() {
        assert!(!String::from_utf8_lossy(&body).contains("whispered"), "{body:?}");
    }
}

#[tokio::test]
async fn a_run_that_is_taken_over_is_still_one_trace() {
    let collector = Collector::start().await;
    let world = world(&collector, &caller()).await;
    for point in ["started", "ended", "settle-stored"] {
        let run = format!("r-{point}");
        let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", &format!("{point}:kill"))).await;
        ordered(&world, &run, &["--traceparent", &format!("00-{TRACE}-{SPAN}-01")]).await;
        assert_eq!(up.death().await, Some(9), "{point} was reached");
        let next = Up::start(world.sluice()).await;
        assert_eq!(ended(&world, &run).await["epoch"], 2);
        let mut spans = told(&collector, &run, 2).await;
        // Both processes may have exported the same batch of calls.
        let mut seen = BTreeMap::new();
        spans.retain(|span| seen.insert(span.id.clone(), span.clone()).is_none_or(|before| before != *span));
        assert_eq!(is_one_trace(&spans, TRACE, SPAN).len(), 2, "{point}");
        next.stop(Signal::TERM).await;
        // It may be gone already, which is as good.
        up.kill_proxy().await;
    }
}

/// The collector hangs, refuses or breaks off. Stops are not delayed, and spans of calls are kept for it.
#[tokio::test]
async fn a_broken_collector_harms_no_run() {
    let (collector, api) = (Collector::start().await, free_port());
    let world = world(&collector, &format!("[api]\nlisten = '{api}'\n{}", caller())).await;
    let scrape = async || Scrape::of(Agent::over_tcp(api).get("/metrics").await.text());
    for (run, takes) in [
        ("hangs", Takes::Hangs),
        ("breaks-off", Takes::BreaksOff),
        ("busy", Takes::Nothing(503)),
        ("refuses", Takes::Nothing(400)),
    ] {
        collector.takes(takes);
        let up = Up::start(world.sluice()).await;
        ordered(&world, run, &[]).await;
        assert_eq!(ended(&world, run).await["state"], "succeeded");
        if run == "hangs" {
            let by_hand = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "by-hand", "q"]);
            let ended = tokio::time::timeout(PATIENCE, by_hand).await;
            assert_eq!(ended.expect("it ends").stdout, "whispered-answer\n");
        }
        if run == "refuses" {
            // Spans that it refuses are dropped at once: those that waited, eight of this run.
            let dropped =
                |seen: &Scrape| seen.sum("sluice_spans_dropped_total", &[("reason", "refused")]) >= 8.0;
            eventually_within(PATIENCE, "all are dropped", scrape, dropped).await;
        }
        let stopped = tokio::time::timeout(PATIENCE, up.stop(Signal::TERM)).await;
        assert_eq!(stopped.expect("it stops").0, Some(0), "{run}");
    }
    assert_eq!(collector.spans(), [], "control: nothing was taken");
    collector.takes(Takes::Nothing(503));
    let up = Up::start(world.sluice()).await;
    ordered(&world, "waits", &[]).await;
    ended(&world, "waits").await;
    let asked = || async { collector.requests().len() };
    let before = asked().await;
    eventually_within(PATIENCE, "it is asked", asked, |asked| *asked > before).await;
    collector.takes(Takes::Everything);
    let calls = || async { of(&collector.spans(), "waits").iter().filter(|span| span.kind == 3).count() };
    eventually_within(PATIENCE, "calls are told after all", calls, |calls| *calls == 2).await;
    up.stop(Signal::TERM).await;
}

/// A run by hand is traced by its own process, a request as part of its caller's trace.
#[tokio::test]
async fn runs_by_hand_and_requests_are_traced() {
    let (collector, api) = (Collector::start().await, free_port());
    let world = world(&collector, &format!("[api]\nlisten = '{api}'\n{}", caller())).await;
    let token = world.path().join("token");
    private_file(&token, "authorization: Bearer tok-of-the-collector-1\n\nx-tenant: one\n");
    canary::hand_out("tok-of-the-collector-1");
    world.reconfigure("[telemetry]", &format!("[telemetry]\notlp_headers_file = '{}'", token.display()));
    let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
    let by_hand = world.sluice().env("TRACEPARENT", &format!("00-{TRACE}-{SPAN}-01"));
    let run = ["run", "--agent", "test:sh", "--run-id", "by-hand", "q"];
    assert_eq!(by_hand.run(&run).await.stdout, "whispered-answer\n");
    assert_eq!(is_one_trace(&told(&collector, "by-hand", 2).await, TRACE, SPAN).len(), 2);
    let context = format!("00-{TRACE}-{SPAN}-01");
    let client = Agent::over_tcp(api).with_header("traceparent", &context);
    for path in ["/api/v1/ai/agents", "/nowhere/secret-path", "/metrics"] {
        client.get(path).await;
    }
    let look = || async { collector.spans().into_iter().filter(|span| span.kind == 2).collect::<Vec<_>>() };
    let requests = eventually_within(PATIENCE, "requests are told", look, |spans| spans.len() >= 2).await;
    let shown: Vec<_> = requests.iter().map(|span| (span.name.as_str(), span.parent.as_str())).collect();
    assert_eq!(shown, [("GET /api/v1/ai/agents", SPAN), ("GET", SPAN)]);
    assert_eq!(requests[1].attributes["http.response.status_code"], "404");
    up.stop(Signal::TERM).await;
    for (headers, _) in collector.requests() {
        assert_eq!(headers["authorization"], "Bearer tok-of-the-collector-1");
        assert_eq!(headers["x-tenant"], "one");
    }
}

/// Its endpoint has to be a usable address.
#[tokio::test]
async fn collector_credentials_are_secrets() {
    let world = World::with("[telemetry]\notlp_endpoint = 'http://127.0.0.1:4318'\n").await;
    let token = world.path().join("token");
    let run = async |flags: &[&str]| {
        world
            .sluice()
            .run(
                &[
                    &["run", "--set", &format!("telemetry.otlp_headers_file={}", token.display())],
                    flags,
                    &["q"],
                ]
                .concat(),
            )
            .await
    };
    for (content, mode, complaint) in [
        ("no header", 0o600, "token:1: expected `name: value`"),
        ("a: b\n", 0o644, "is open to every user of this host"),
    ] {
        private_file(&token, content);
        std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let refused = run(&[]).await;
        assert!(refused.code != Some(0) && refused.stderr.contains(complaint), "{refused:?}");
    }
    let mut ambient = World::start().await;
    assert!(ambient.stop_proxy().await);
    for unusable in ["https://collector:4318", "http://collector:4318/v1/traces", "collector", ""] {
        let check = async |variable| ambient.sluice().env(variable, unusable).run(&["config", "check"]).await;
        // It is set for any program of the host: not ours to complain about.
        assert_eq!(check("OTEL_EXPORTER_OTLP_ENDPOINT").await.code, Some(0), "{unusable}");
        // Control: in a variable for Sluicegate alone it is a mistake.
        let own = check("SLUICE_TELEMETRY_OTLP_ENDPOINT").await;
        assert_eq!(own.code, Some(if unusable.is_empty() { 0 } else { 2 }), "{unusable}: {own:?}");
    }
    let log = ambient.path().join("up.log");
    let sluice = ambient.sluice().env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318");
    Up::start(sluice.log_to(&log)).await.stop(Signal::TERM).await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("OTEL_EXPORTER_OTLP_ENDPOINT ignored"), "{log}");
}

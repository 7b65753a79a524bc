//! Tests the journal: one record per call however the call ended, chained, without a word of what was said.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use bench::upstream::Ledger;
use harness::{
    Agent, CANARY_KEY, Raw, Run, World,
    agent::{Answering, Wire, chat_body},
    eventually, grant,
    raw::read_until,
};
use http::Method;
use platform_core::{
    grant::{Correlation, RunGrant},
    id::ExternalId,
    record::Outcome,
    refusal::Refusal,
};
use platform_runtime::task;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const CHAT: &str = "/v1/chat/completions";
/// Calls of the mixed batch.
const BATCH: usize = 300;
/// Calls of the batch that are made at the same time.
const AT_ONCE: usize = 10;

/// Course of a call in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Whole,
    Streamed,
    Limited,
    KeyRefused,
    CutInTheMiddle,
    CutBefore,
    Failing,
    LeftInTheMiddle,
    LeftBefore,
    NoRoute,
    NoJson,
}

const FATES: [Fate; 11] = [
    Fate::Whole,
    Fate::Streamed,
    Fate::Limited,
    Fate::KeyRefused,
    Fate::CutInTheMiddle,
    Fate::CutBefore,
    Fate::Failing,
    Fate::LeftInTheMiddle,
    Fate::LeftBefore,
    Fate::NoRoute,
    Fate::NoJson,
];

impl Fate {
    /// Returns the fate of call `n`: a mixture without pattern that is the same every time.
    fn of(n: usize) -> Self {
        FATES[(n.wrapping_mul(2_654_435_761) >> 7) % FATES.len()]
    }

    const fn outcome(self) -> Outcome {
        match self {
            Self::Whole | Self::Streamed | Self::Limited | Self::KeyRefused => Outcome::Complete,
            Self::CutInTheMiddle | Self::CutBefore => Outcome::UpstreamGone,
            Self::Failing => Outcome::StreamError,
            Self::LeftInTheMiddle | Self::LeftBefore => Outcome::ClientGone,
            Self::NoRoute | Self::NoJson => Outcome::Refused,
        }
    }

    async fn live(self, n: usize, agent: &Agent, ledger: &Ledger) {
        let whole = |model| agent.chat(model);
        let streamed = async |model| drop(agent.stream(model).await.until_break().await);
        match self {
            Self::Whole => drop(whole("fake").await),
            Self::Limited => drop(whole("fake-status429").await),
            Self::KeyRefused => drop(whole("fake-status401").await),
            Self::CutBefore => drop(whole("fake-cut0").await),
            Self::Streamed => streamed("fake-words5-gap1ms").await,
            Self::CutInTheMiddle => streamed("fake-cut3-gap1ms").await,
            Self::Failing => streamed("fake-errmid2").await,
            Self::LeftInTheMiddle => {
                drop(read_until(&mut begin("fake-stall2", n, agent).await, "Hello").await)
            }
            Self::LeftBefore => {
                let wire = begin("fake-hang", n, agent).await;
                eventually("the call arrives", || async { saw(ledger, n) }, |saw| *saw).await;
                drop(wire);
            }
            Self::NoRoute => drop(agent.post("/v1/files", &json!({})).await),
            Self::NoJson => drop(agent.request(Method::POST, CHAT, "{".into()).await),
        }
    }
}

/// Begins the batch's call number `n`.
async fn begin(model: &str, n: usize, agent: &Agent) -> Box<dyn Wire> {
    let mut body = chat_body(model, Answering::Streamed);
    body["messages"][0]["content"] = json!(format!("call {n}."));
    Raw::post(CHAT, &body).begin(agent).await
}

/// Returns whether the upstream has seen call `n`.
fn saw(ledger: &Ledger, n: usize) -> bool {
    let said = format!("call {n}.");
    ledger.all().iter().any(|call| call.json().is_ok_and(|body| body["messages"][0]["content"] == said))
}

#[tokio::test]
async fn each_call_has_one_record() {
    let world = World::start().await;
    let runs = [world.run("r1", "acct-1").await, world.run("r2", "acct-2").await];
    for start in (0..BATCH).step_by(AT_ONCE) {
        let calls: Vec<_> = (start..start + AT_ONCE)
            .map(|n| {
                let (agent, ledger) = (runs[n % 2].agent.clone(), world.upstream.ledger());
                task::spawn("call", async move { Fate::of(n).live(n, &agent, &ledger).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    }
    let load = || async { world.control.health().await.unwrap().in_flight };
    eventually("all calls have ended", load, |in_flight| *in_flight == 0).await;
    let lines = world.records(BATCH).await;
    assert_eq!(lines.len(), BATCH);
    let count = |outcomes: &mut dyn Iterator<Item = Outcome>| {
        outcomes.fold(BTreeMap::new(), |mut counts, outcome| {
            *counts.entry(outcome.word()).or_insert(0) += 1;
            counts
        })
    };
    assert_eq!(
        count(&mut lines.iter().map(|line| line.record.outcome)),
        count(&mut (0..BATCH).map(|n| Fate::of(n).outcome())),
    );
    let sent: BTreeSet<_> = lines
        .iter()
        .filter(|line| line.record.outcome != Outcome::Refused)
        .map(|line| line.record.litellm_call_id.to_string())
        .collect();
    let seen: Vec<_> = world.upstream.ledger().all();
    let seen_ids: BTreeSet<_> =
        seen.iter().map(|call| call.header("x-litellm-call-id")[0].to_owned()).collect();
    assert_eq!((sent.len(), &sent), (seen.len(), &seen_ids), "what the upstream saw is what was recorded");
    assert_chained(&world, BATCH);
}

/// Recomputes the chain from the file, as an auditor would.
fn assert_chained(world: &World, count: usize) {
    let (mut before, mut lines) = ("0".repeat(64), 0);
    for (index, text) in fs::read_to_string(world.journal_file()).unwrap().lines().enumerate() {
        let line: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (line["seq"].as_u64(), line["prev"].as_str()),
            (Some(index as u64 + 1), Some(before.as_str()))
        );
        before = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        lines += 1;
    }
    assert_eq!(lines, count);
}

#[tokio::test]
async fn a_record_that_was_changed_breaks_the_chain() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for _ in 0..3 {
        run.agent.chat("fake").await;
    }
    assert_chained(&world, 3);
    let text = fs::read_to_string(world.journal_file()).unwrap();
    fs::write(world.journal_file(), text.replacen("acct-1", "acct-2", 1)).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| assert_chained(&world, 3))).is_err());
}

#[tokio::test]
async fn a_restart_continues_the_journal() {
    let mut world = World::start().await;
    let id = world.control.health().await.unwrap().journal_id;
    for restarts in 1..=3 {
        let run = world.run(&format!("r{restarts}"), "acct-1").await;
        for _ in 0..2 {
            run.agent.chat("fake").await;
        }
        assert!(world.stop_proxy().await);
        world.start_proxy().await;
        let health = world.control.health().await.unwrap();
        assert_eq!((health.journal_seq, &health.journal_id), (2 * restarts, &id));
    }
    let lines = world.journal().await;
    assert_eq!(lines.iter().map(|line| line.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(lines[5].record.run_id.as_str(), "r3");
    assert_chained(&world, 6);
}

async fn granted_run(world: &World) -> Run {
    let correlation = Correlation { user: ExternalId::parse("user-7").ok(), ..Correlation::default() };
    world.run_with(RunGrant { attempt: 2, correlation, ..grant("r1", "acct-1") }).await
}

#[tokio::test]
async fn a_record_has_exactly_the_promised_fields() {
    let world = World::start().await;
    let run = granted_run(&world).await;
    let body = chat_body("fake-cost", Answering::Streamed);
    let answer = run.agent.post(CHAT, &body).await;
    let mut line: Value = serde_json::from_str(&fs::read_to_string(world.journal_file()).unwrap()).unwrap();
    let mut take =
        |name: &str| line.as_object_mut().unwrap().remove(name).unwrap_or_else(|| panic!("no {name}"));

    let (ts, ttfb, duration) =
        (take("ts"), take("ttfb_us").as_u64().unwrap(), take("duration_us").as_u64().unwrap());
    let ts = ts.as_str().unwrap();
    assert!(
        ts.len() == "2026-01-01T00:00:00.000000Z".len() && ts.ends_with('Z') && ts.starts_with("20"),
        "{ts}"
    );
    assert!(0 < ttfb && ttfb <= duration, "{ttfb} {duration}");
    let call_id = world.upstream.ledger().last().unwrap().header("x-litellm-call-id")[0].to_owned();
    let expected = json!({
        "v": 5, "seq": 1, "run_id": "r1", "attempt": 2, "account": "acct-1", "user": "user-7",
        "graph": "sandbox:agent", "identity": "socket", "route": "chat_completions",
        "model_asked": "fake-cost", "model_answered": "fake-cost", "finish_reason": "stop", "stream": true,
        "status": 200, "outcome": "complete", "refusal": null, "rule": null, "timeout": null,
        "request_bytes": body.to_string().len(), "response_bytes": answer.body.len(),
        "tokens": { "input": 3, "output": 10, "cached": 0, "cache_written": 0, "cache_written_1h": 0, "reasoning": 2 }, "tokens_source": "exact",
        "cost_nanodollars": 23_000, "cost_source": "upstream", "litellm_call_id": call_id,
        "tools": [], "kind": "model", "calls": 1, "tap": "off", "prev": "0".repeat(64),
    });
    assert_eq!(line, expected);
}

#[tokio::test]
async fn the_journal_has_no_content_and_no_key() {
    const SECRET: &str = "the password is hunter2";
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut body = chat_body("fake-echo", Answering::Streamed);
    body["messages"][0]["content"] = json!(SECRET);
    body["user"] = json!(SECRET);
    let answer = run.agent.post(CHAT, &body).await;
    assert!(answer.text().contains("hunter2"), "it was said, and answered: {}", answer.text());
    let junk = [
        SECRET.to_owned(),
        String::new(),
        "m\n\"},{\"seq\":1".to_owned(),
        "hunter2-".repeat(20),
        "\u{202e}m".to_owned(),
    ];
    for model in &junk {
        run.agent.chat(model).await;
    }
    run.agent.post(&format!("/v1/{}", SECRET.replace(' ', "-")), &body).await;
    run.agent.with_header("user-agent", SECRET).chat("gpt-4o-mini").await;

    let lines = world.records(junk.len() + 3).await;
    let journal = fs::read_to_string(world.journal_file()).unwrap();
    assert_eq!(journal.lines().count(), lines.len());
    for word in ["hunter2", "password", CANARY_KEY, "canary"] {
        assert!(!journal.contains(word), "{word} is in {journal}");
    }
    for (line, model) in lines[1..].iter().zip(&junk) {
        // A text that cannot be a model's name is refused, and not written down at all.
        if *model != junk[3] {
            assert_eq!((line.record.refusal, &line.record.model_asked), (Some(Refusal::BodyInvalid), &None));
            continue;
        }
        let digest: String =
            Sha256::digest(model.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let asked = line.record.model_asked.as_ref().unwrap();
        assert_eq!(asked.as_str(), format!("<{}:{digest}>", model.len()), "{model:?}");
    }
    assert_eq!(lines.last().unwrap().record.model_asked.as_ref().unwrap().as_str(), "gpt-4o-mini");
}

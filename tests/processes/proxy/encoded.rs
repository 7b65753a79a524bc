//! Compressed bodies, as Codex with a login sends each: they are checked, counted and sent plain.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use harness::{
    Run, World,
    agent::{Answering, chat_body, saying},
    grant,
};
use http::Method;
use platform_core::{
    budget::Budget,
    grant::{CallLimits, RunGrant},
    id::ModelName,
    limit::ByteSize,
    refusal::Refusal,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;

const CHAT: &str = "/v1/chat/completions";
const CODINGS: [&str; 2] = ["gzip", "zstd"];

fn encode(coding: &str, plain: &[u8]) -> Bytes {
    if coding == "zstd" {
        return compress_to_vec(plain, CompressionLevel::Fastest).into();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap().into()
}

/// Sends `body` with this content coding. Returns status, code and message of the answer.
async fn post(run: &Run, coding: &str, body: Bytes) -> (u16, String, String) {
    let agent = run.agent.clone().with_header("content-encoding", coding);
    let answer = agent.request(Method::POST, CHAT, body).await.unwrap();
    let error = answer.json()["error"].clone();
    let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text("code"), text("message"))
}

fn plain(model: &str, text: &str) -> Value {
    saying(CHAT, model, Answering::Whole, text)
}

#[tokio::test]
async fn a_compressed_body_is_sent_plain() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (count, (coding, times)) in
        (1..).zip(CODINGS.iter().flat_map(|coding| [1, 100_000].map(|times| (*coding, times))))
    {
        let body = plain("fake", &"Tell me more. ".repeat(times)).to_string();
        let encoded = encode(coding, body.as_bytes());
        assert!(times == 1 || encoded.len() * 10 < body.len());
        assert_eq!(post(&run, coding, encoded).await.0, 200, "{coding} {times}");
        let seen = world.upstream.ledger().last().unwrap();
        let sent: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(seen.json().unwrap()["messages"], sent["messages"], "{coding} {times}");
        assert!(!seen.headers.iter().any(|(name, _)| name == "content-encoding"), "{:?}", seen.headers);
        let record = world.records(count).await.pop().unwrap().record;
        assert_eq!(record.request_bytes, body.len() as u64, "{coding}: its plain bytes");
    }
}

#[tokio::test]
async fn a_compressed_body_is_checked_like_a_plain_one() {
    let world = World::start().await;
    let models = Some(vec![ModelName::parse("fake").unwrap()]);
    let run = world.run_with(RunGrant { models, ..grant("r1", "acct-1") }).await;
    for coding in CODINGS {
        for times in [1, 100_000] {
            let body = plain("fake-other", &"More. ".repeat(times)).to_string();
            let (status, code, _) = post(&run, coding, encode(coding, body.as_bytes())).await;
            assert_eq!((status, code.as_str()), (400, "model_not_granted"), "{coding} {times}");
        }
        let mut hosted = plain("fake", "Hi");
        hosted["tools"] = serde_json::json!([{ "type": "web_search" }]);
        assert_eq!(post(&run, coding, encode(coding, hosted.to_string().as_bytes())).await.1, "not_granted");
    }
    assert!(world.upstream.ledger().is_empty(), "no byte went upstream");
}

#[tokio::test]
async fn a_compressed_prompt_costs_its_plain_size() {
    let world = World::start().await;
    let budget = Budget { input_tokens: Some(20_000), ..Budget::default() };
    let run = world.run_with(RunGrant { budget, ..grant("r1", "acct-1") }).await;
    for coding in CODINGS {
        let body = plain("fake", &"Tell me more. ".repeat(20_000)).to_string();
        let encoded = encode(coding, body.as_bytes());
        assert!(encoded.len() < 20_000, "the control: as it arrives it would fit");
        let (status, code, message) = post(&run, coding, encoded).await;
        assert_eq!((status, code.as_str()), (400, "quota_exhausted"), "{message}");
        assert!(message.contains("this call may need") && message.contains("20000 is left"), "{message}");
    }
    assert!(world.upstream.ledger().is_empty());
}

#[tokio::test]
async fn a_bomb_ends_at_the_plain_limit() {
    let world = World::start().await;
    let limits = CallLimits { request_body: ByteSize::mib(1), ..CallLimits::default() };
    let run = world.run_with(RunGrant { limits, ..grant("r1", "acct-1") }).await;
    for coding in CODINGS {
        let bomb = encode(coding, &vec![b' '; 8 << 20]);
        assert!(bomb.len() < 1 << 20);
        let (status, code, message) = post(&run, coding, bomb).await;
        assert_eq!((status, code.as_str()), (413, "body_too_large"), "{coding}");
        assert!(message.contains("1 MiB") && message.contains("max_request_body"), "{message}");
    }
    // The memory is free again.
    let body = plain("fake", &"x".repeat(900 << 10)).to_string();
    for coding in CODINGS {
        assert_eq!(post(&run, coding, encode(coding, body.as_bytes())).await.0, 200, "{coding}");
    }
}

#[tokio::test]
async fn other_encodings_are_refused_with_a_reason() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake", Answering::Whole).to_string();
    let gzip = encode("gzip", body.as_bytes());
    let zstd = encode("zstd", body.as_bytes());
    let table = [
        ("br", gzip.clone(), "once encoded as gzip or zstd"),
        ("gzip, gzip", encode("gzip", &gzip), "once encoded as gzip or zstd"),
        ("gzip", body.clone().into(), "not one whole gzip member"),
        ("gzip", gzip.slice(..gzip.len() - 1), "not one whole gzip member"),
        ("gzip", [&gzip[..], &gzip].concat().into(), "goes on behind its first gzip member"),
        ("zstd", zstd.slice(..zstd.len() - 1), "not one whole zstd frame"),
        ("zstd", [&zstd[..], &zstd].concat().into(), "goes on behind its first zstd frame"),
    ];
    for (coding, encoded, reason) in &table {
        let (status, code, message) = post(&run, coding, encoded.clone()).await;
        assert_eq!((status, code.as_str()), (400, "body_encoded"), "{coding}");
        assert!(message.contains(reason), "{coding}: {message}");
    }
    let records = world.records(table.len()).await;
    assert!(records.iter().all(|line| line.record.refusal == Some(Refusal::BodyEncoded)), "{records:?}");
    assert!(world.upstream.ledger().is_empty());
    assert_eq!(post(&run, "zstd", zstd).await.0, 200, "the control");
}

//! Attacks by headers that come behind the body, where a reader may not look for them.

use bench::upstream::ScriptedUpstream;
use harness::{
    RawScriptedUpstream, World,
    agent::{Answering, chat_body},
};

use super::{
    CHAT, MARK,
    headers::{Stage, assert_only_ours},
    status, told,
};

/// Trailers behind a chunked body.
pub(super) const TRAILERS: &[&str] = &[
    "authorization: Bearer victim",
    "x-litellm-end-user-id: victim",
    "x-litellm-customer-id: victim\r\nX-LiteLLM-Tags: victim",
    "x-stainless-lang: victim",
    "content-length: 9\r\nhost: victim",
];

#[tokio::test]
async fn trailers_bring_nothing() {
    let stage = Stage::set().await;
    let scripted = RawScriptedUpstream::start().await;
    scripted.say(&[b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"]);
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &scripted.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    for trailers in TRAILERS {
        let body = chat_body("fake", Answering::Whole).to_string();
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntrailer: authorization\r\n\
             transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n{trailers}\r\n\r\n",
            body.len()
        );
        let answer = told(&stage.run.agent, request.as_bytes()).await;
        assert_eq!(status(&answer), 200, "{trailers}: {answer}");
        assert_only_ours(&stage.world.upstream.ledger().last().unwrap(), "", trailers);
        told(&run.agent, request.as_bytes()).await;
        assert!(!scripted.heard().contains(MARK), "{trailers}: {}", scripted.heard());
        // Control: an upstream without a proxy in front receives them.
        told(&scripted.agent(), request.as_bytes()).await;
        assert!(scripted.heard().contains(MARK), "{trailers}: {}", scripted.heard());
    }
}

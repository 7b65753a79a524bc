//! Attacks by methods, paths and queries that are not a route, or another than they look like. They come on a run's own
//! socket, on a gateway's listener with a good token, and behind a good slot.

use harness::{
    Agent, CANARY_KEY, OriginalProxy, World,
    agent::{Answering, chat_body},
    grant,
};
use http::Method;

use super::{
    CHAT,
    Control::{self, Direct, Nginx, Repaired},
    status, told,
};
use crate::proxy::shared::{SLOT, Shared, good};

/// Method, target, control.
type Row = (&'static str, &'static str, Control);

/// Paths that exist nowhere.
pub(super) const PATHS: &[Row] = &[
    ("POST", "/v1/./chat/completions", Nginx),
    ("POST", "/v1/../v1/chat/completions", Nginx),
    ("POST", "/v1/chat/../chat/completions", Nginx),
    ("POST", "/v1/chat/completions/.", Nginx),
    ("POST", "/v1/chat/completions/..", Nginx),
    ("POST", "/v1/chat/completions/../../../key/generate", Direct),
    ("POST", "/../v1/chat/completions", Direct),
    ("POST", "/key/../v1/chat/completions", Nginx),
    ("POST", "/health/../v1/chat/completions", Nginx),
    ("POST", "/v1/%2e/chat/completions", Nginx),
    ("POST", "/v1/%2e%2e/key/generate", Direct),
    ("POST", "/v1/%2E%2E/v1/chat/completions", Nginx),
    ("POST", "/v1/.%2e/v1/chat/completions", Nginx),
    ("POST", "/v1/%252e%252e/key/generate", Nginx),
    ("POST", "/v1%2fchat%2fcompletions", Nginx),
    ("POST", "/v1/chat%2Fcompletions", Nginx),
    ("POST", "/v1/chat%5ccompletions", Nginx),
    ("POST", "/v1\\chat\\completions", Repaired),
    ("POST", "/v1/chat/completions%20", Nginx),
    ("POST", "/v1/chat/completions%00", Direct),
    ("POST", "/v1/chat/completions%0d%0ax-litellm-tags:victim", Nginx),
    ("POST", "/v1/chat/completions%23", Nginx),
    ("POST", "/v1/chat/completions%3fmodel=fake-cost", Nginx),
    ("POST", "//v1/chat/completions", Nginx),
    ("POST", "/v1//chat/completions", Nginx),
    ("POST", "/v1/chat//completions", Nginx),
    ("POST", "/v1/chat/completions/", Nginx),
    ("POST", "/v1/chat/completions//", Nginx),
    ("POST", "/v1/chat/completions;a=b", Nginx),
    ("POST", "/v1;a=b/chat/completions", Direct),
    ("POST", "/v1/..;/key/generate", Nginx),
    ("POST", "/V1/chat/completions", Direct),
    ("POST", "/v1/Chat/completions", Nginx),
    ("POST", "/v1/%63hat/completions", Nginx),
    ("POST", "/%76%31/chat/completions", Nginx),
    ("POST", "/v1/ch\u{430}t/completions", Nginx),
    ("POST", "/v1\u{2215}chat\u{2215}completions", Direct),
    ("POST", "/v1/\u{ff43}hat/completions", Nginx),
    ("POST", "/v1/chat/comple\0tions", Repaired),
    ("POST", "/v1/chat/comple\ttions", Repaired),
    ("POST", "/v1/chat/comple\x07tions", Repaired),
    ("POST", "/v1/chat/completions x", Repaired),
    ("POST", "v1/chat/completions", Repaired),
    ("POST", "", Repaired),
    ("POST", "*", Repaired),
    ("OPTIONS", "*", Direct),
    ("POST", "a:80", Repaired),
    ("CONNECT", "victim:443", Repaired),
    ("CONNECT", "/v1/chat/completions", Repaired),
    ("POST", "http://victim/v1/chat/completions", Nginx),
    ("POST", "http://victim@a/v1/chat/completions", Direct),
    ("POST", "HTTP://a:8080/v1/chat/completions", Nginx),
    ("POST", "file:///v1/chat/completions", Repaired),
    ("GET", CHAT, Nginx),
    ("HEAD", CHAT, Nginx),
    ("PUT", CHAT, Nginx),
    ("PATCH", CHAT, Nginx),
    ("DELETE", CHAT, Nginx),
    ("OPTIONS", CHAT, Nginx),
    ("TRACE", CHAT, Direct),
    ("PROPFIND", CHAT, Nginx),
    ("post", CHAT, Direct),
    ("POSTT", CHAT, Nginx),
    ("POST/", CHAT, Repaired),
    ("POST", "/v1/files", Nginx),
    ("POST", "/v1/batches", Nginx),
    ("POST", "/v1/images/generations", Nginx),
    ("POST", "/v1/audio/transcriptions", Nginx),
    ("POST", "/v1/fine_tuning/jobs", Nginx),
    ("POST", "/v1/responses/resp_1/cancel", Nginx),
    ("GET", "/v1/responses/resp_1", Nginx),
    ("DELETE", "/v1/responses/resp_1", Nginx),
    ("GET", "/v1/responses/compact", Nginx),
    ("POST", "/v1/responses/compact/", Nginx),
    ("POST", "/v1/responses/input_tokens/../resp_1/cancel", Nginx),
    ("GET", "/v1/responses/resp_1/input_items", Nginx),
    ("POST", "/v1/messages/batches", Nginx),
    ("POST", "/v1/mcp/tools", Nginx),
    ("POST", "/v1/realtime", Nginx),
    ("GET", "/v1/model/info", Nginx),
    ("GET", "/v1/models/../model/info", Nginx),
    ("POST", "/chat/completions", Direct),
    ("POST", "/engines/fake/chat/completions", Direct),
    ("POST", "/openai/deployments/fake/chat/completions", Direct),
    ("POST", "/key/generate", Direct),
    ("POST", "/user/new", Direct),
    ("POST", "/config/update", Direct),
    ("GET", "/spend/logs", Direct),
    ("GET", "/health/readiness", Direct),
    ("GET", "/metrics", Direct),
    ("GET", "/", Direct),
    ("POST", "/slot/0123456789abcdef0123456789abcdee/v1/chat/completions", Direct),
];

/// Queries behind the route of a chat, which must never arrive.
pub(super) const QUERIES: &[(&str, Control)] = &[
    ("?user=victim", Nginx),
    ("?model=fake-cost", Nginx),
    ("?api_key=victim&key=victim", Nginx),
    ("?api-version=2024-02-01", Nginx),
    ("?litellm_metadata[tags]=victim", Nginx),
    ("?timeout=1&num_retries=99", Nginx),
    ("?stream=true", Nginx),
    ("?a=%0d%0ax-litellm-tags:%20victim", Nginx),
    ("?/../../key/generate", Nginx),
    ("??a", Nginx),
    ("?", Nginx),
    ("?a=\u{e9}", Nginx),
];

fn request(method: &str, target: &str, lines: &str) -> Vec<u8> {
    let body = if method == "HEAD" || method == "GET" { String::new() } else { good_body() };
    format!(
        "{method} {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n{lines}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn good_body() -> String {
    chat_body("fake", Answering::Whole).to_string()
}

#[tokio::test]
async fn unknown_routes_fail_on_a_runs_socket() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (method, target, _) in PATHS {
        let answer = told(&run.agent, &request(method, target, "")).await;
        let row = format!("{method} {target:?}: {answer}");
        assert!((400..500).contains(&status(&answer)), "{row}");
        assert!(world.upstream.ledger().is_empty(), "{row}");
    }
    let slot = format!("/slot/{SLOT}{CHAT}");
    assert_eq!(status(&told(&run.agent, &request("POST", &slot, "")).await), 404);
    assert_eq!(status(&told(&run.agent, &request("POST", CHAT, "")).await), 200);
}

/// No refusal locks a gateway's provider.
#[tokio::test]
async fn unknown_routes_fail_on_a_gateways_listener() {
    let shared = Shared::serving("gateways").await;
    assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/r1/slots/{SLOT}")).await, 200);
    let token = format!("x-run-token: {}\r\n", good("r1"));
    for (method, target, _) in PATHS {
        let slotted = format!("/slot/{SLOT}{target}");
        for (target, lines) in [(*target, token.as_str()), (&slotted, ""), (&slotted, &token)] {
            let answer = told(&shared.agent(), &request(method, target, lines)).await;
            let row = format!("{method} {target:?}: {answer}");
            assert!((400..500).contains(&status(&answer)), "{row}");
            assert!(![401, 402, 403].contains(&status(&answer)), "{row}");
            assert!(shared.world.upstream.ledger().is_empty(), "{row}");
        }
    }
    let good = format!("/slot/{SLOT}{CHAT}");
    for (target, lines) in [(CHAT, token.as_str()), (&good, ""), (&good, &token)] {
        assert_eq!(status(&told(&shared.agent(), &request("POST", target, lines)).await), 200, "{target}");
    }
}

/// A client sends the paths and queries of the tests above without Sluicegate in between; they arrive. It is the
/// control of both.
#[tokio::test]
async fn without_sluicegate_what_is_no_route_arrives() {
    let world = World::start().await;
    let nginx = OriginalProxy::start(world.upstream.address(), &grant("r1", "acct-1"), CANARY_KEY).await;
    let direct = Agent::over_tcp(world.upstream.address());
    for (method, target, control) in PATHS {
        let (agent, method, target) = match control {
            Nginx => (&nginx.agent, *method, *target),
            Direct => (&direct, *method, *target),
            Repaired => (&nginx.agent, "POST", CHAT),
        };
        world.upstream.ledger().clear();
        let answer = told(agent, &request(method, target, "")).await;
        let arrived = world.upstream.ledger().last();
        let row = format!("{method} {target:?} {control:?}: {answer}");
        let arrived = arrived.unwrap_or_else(|| panic!("did not arrive: {row}"));
        assert_eq!(arrived.method, method, "{row}");
        assert!(*control != Repaired || status(&answer) == 200, "{row}");
    }
}

/// The predecessor's template passes it on; this is the control.
#[tokio::test]
async fn a_query_never_arrives() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let nginx = OriginalProxy::start(world.upstream.address(), &grant("r1", "acct-1"), CANARY_KEY).await;
    let direct = Agent::over_tcp(world.upstream.address());
    for (query, control) in QUERIES {
        let request = request("POST", &format!("{CHAT}{query}"), "");
        assert_eq!(status(&told(&run.agent, &request).await), 200, "{query}");
        assert_eq!(world.upstream.ledger().last().unwrap().path, CHAT, "{query}");
        let agent = if *control == Nginx { &nginx.agent } else { &direct };
        told(agent, &request).await;
        assert_ne!(world.upstream.ledger().last().unwrap().path, CHAT, "{query}");
    }
}

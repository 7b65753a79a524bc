//! Attacks in the head of an upstream's answer, or in its framing. No agent should receive them or be misled by them.

use bench::upstream::ScriptedUpstream;
use harness::{RawScriptedUpstream, World};

use super::{MARK, status, told, with_lines};

/// Every header that an agent receives in the head of an answer.
const TOLD: [&str; 9] = [
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "request-id",
    "retry-after",
    "transfer-encoding",
    "x-litellm-call-id",
];
const BODY: &str = r#"{"ok":1}"#;

/// An answer of an upstream, and the status that the agent receives.
pub(super) struct Attack {
    row: String,
    says: Vec<u8>,
    told: u16,
}

/// Builds a whole answer with `lines` in its head.
fn with(lines: &str, told: u16) -> Attack {
    let says = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{lines}\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    Attack { row: lines.chars().take(60).collect(), says: says.into_bytes(), told }
}

fn answer(row: &str, says: String, told: u16) -> Attack {
    Attack { row: row.to_owned(), says: says.into_bytes(), told }
}

/// Lines with the upstream's internals, data of other tenants, or instructions to a client or proxy that reads them.
const DROPPED: &[&str] = &[
    "set-cookie: token=victim; path=/",
    "set-cookie2: victim",
    "x-litellm-response-cost: victim",
    "x-litellm-key-spend: victim",
    "x-litellm-model-api-base: http://victim",
    "x-litellm-model-id: victim",
    "x-litellm-call-id: victim",
    "x-litellm-version: victim",
    "llm_provider-openai-organization: victim",
    "llm_provider-x-ratelimit-remaining-requests: victim",
    "x-ratelimit-remaining-tokens: victim",
    "openai-organization: victim",
    "anthropic-organization-id: victim",
    "server: victim",
    "via: 1.1 victim",
    "x-powered-by: victim",
    "x-served-by: victim",
    "location: http://victim",
    "refresh: 0; url=http://victim",
    "www-authenticate: Bearer realm=victim",
    "proxy-authenticate: Basic realm=victim",
    "authentication-info: victim",
    "link: <http://victim>; rel=preload",
    "alt-svc: h3=\"victim:443\"",
    "x-accel-redirect: /victim",
    "x-accel-buffering: victim",
    "x-sendfile: /victim",
    "connection: close, victim",
    "connection: x-litellm-call-id, victim",
    "keep-alive: victim",
    "proxy-connection: victim",
    "upgrade: victim",
    "trailer: victim",
    "access-control-allow-origin: https://victim",
    "access-control-allow-credentials: true\r\nx-a: victim",
    "content-security-policy: victim",
    "strict-transport-security: victim",
    "clear-site-data: \"victim\"",
    "content-location: /victim",
    "content-disposition: attachment; filename=victim",
    "etag: \"victim\"",
    "x-should-retry: victim",
    "x-run-token: victim",
    "traceparent: victim",
    "content-type: victim",
    "x-a: \u{e9}victim",
];

pub(super) fn attacks() -> Vec<Attack> {
    let length = BODY.len();
    let json = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}");
    let ok = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}{json}");
    let moved = |status: &str| {
        format!(
            "HTTP/1.1 {status}\r\nlocation: http://{MARK}\r\nconnection: close\r\n\r\n{{\"a\":\"{MARK}\"}}"
        )
    };
    let chunked = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}{length:x}{body}")
    };
    let interim = |status: &str| format!("HTTP/1.1 {status}\r\nlink: <{MARK}>\r\n\r\n{}", ok(""));
    let protocol = format!("101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {MARK}");
    let encoded = |status: &str| {
        ok("content-encoding: gzip\r\n").replace("200 OK", status).replace(BODY, &format!("{MARK}!!"))
    };
    let mut attacks: Vec<_> = DROPPED.iter().map(|lines| with(lines, 200)).collect();
    attacks.extend([
        answer("a reason phrase", ok("").replace("OK", MARK), 200),
        answer("early hints", interim("103 Early Hints"), 200),
        answer("processing", interim("102 Processing"), 200),
        answer("continue", interim("100 Continue"), 200),
        answer("another protocol", format!("HTTP/1.1 {protocol}\r\n\r\n{MARK}"), 502),
        answer("several choices", moved("300 Multiple Choices"), 502),
        answer("moved", moved("301 Moved Permanently"), 502),
        answer("found", moved("302 Found"), 502),
        answer("elsewhere", moved("303 See Other"), 502),
        answer("moved, to be asked the same", moved("307 Temporary Redirect"), 502),
        answer("moved for ever", moved("308 Permanent Redirect"), 502),
        answer("not modified", format!("HTTP/1.1 304 Not Modified\r\netag: {MARK}\r\n\r\n"), 502),
        answer("an encoding nobody asked for", encoded("200 OK"), 502),
        answer("an encoding of an error", encoded("500 Oh"), 500),
        answer("a huge line", ok(&format!("x-a: {MARK}{}\r\n", "a".repeat(600 << 10))), 502),
        answer("a crowd of lines", ok(&format!("x-a: {MARK}\r\n").repeat(200)), 502),
        answer("trailers", chunked(&format!("\r\n{BODY}\r\n0\r\nset-cookie: {MARK}\r\n\r\n")), 200),
        answer("extensions of chunks", chunked(&format!(";a={MARK}\r\n{BODY}\r\n0\r\n\r\n")), 200),
        answer("more than it announced", ok("") + MARK, 200),
        answer("a second answer", ok("") + &ok(&format!("x-a: {MARK}\r\n")), 200),
        answer("two lengths", ok(&format!("content-length: 3\r\nx-a: {MARK}\r\n")), 502),
        answer("a folded line", ok(&format!("x-a: b\r\n {MARK}: c\r\n")), 502),
        answer("no HTTP", format!("{MARK} {MARK}\r\n\r\n"), 502),
    ]);
    attacks
}

#[tokio::test]
async fn only_needed_response_headers_arrive() {
    let scripted = RawScriptedUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), "").await;
    let run = world.run("r1", "acct-1").await;
    let request = with_lines(b"te: trailers");
    for attack in attacks() {
        scripted.say(&[&attack.says]);
        let answer = told(&run.agent, &request).await;
        let row = format!("{}: {}", attack.row, answer.chars().take(900).collect::<String>());
        assert_eq!(status(&answer), attack.told, "{row}");
        assert!(!answer.contains(MARK), "{row}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut names: Vec<_> = head.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
        names.retain(|name| !TOLD.contains(name) && *name != "x-should-retry");
        assert!(names.is_empty(), "{names:?} in {row}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{row}");
        let is_ours = attack.told == 200 || body.contains("upstream_failed");
        assert!(is_ours && (attack.told != 200 || body.contains(BODY)), "{row}");
        // Control: without Sluicegate all of it reaches the agent.
        assert!(told(&scripted.agent(), &request).await.contains(MARK), "{row}");
    }
}

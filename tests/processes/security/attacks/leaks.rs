//! Attacks on confidentiality: an upstream or Sluicegate itself could reveal data that is not the agent's. Such data
//! are keys, addresses, other runs and other teams. They come in errors of every shape, whole and in the middle of a
//! stream, in pieces that split a secret.

use bench::upstream::ScriptedUpstream;
use harness::{
    Agent, CANARY_KEY, RawScriptedUpstream, World,
    agent::{Answering, body_for},
    canary::CANARY_SECRET,
    files::files,
    grant,
};
use http::{Method, StatusCode};
use platform_core::{grant::RunGrant, record::Outcome};
use serde_json::json;

use super::{CHAT, with_lines};
use crate::proxy::shared::{SLOT, Shared, TRACE, good};

/// Texts as LiteLLM and the services around it write them, each with the part that must not reach the agent.
const INSIDES: &[(&str, &str)] = &[
    ("Authentication Error, invalid key: sk-canary-7f3a91c2", "sk-canary-7f3a91c2"),
    ("Incorrect API key provided: sk-proj-Ab12Cd34. Find yours online", "sk-proj-Ab12Cd34"),
    ("headers={'Authorization': 'Bearer sk-9f86d081884c'}", "sk-9f86d081884c"),
    ("api_key:sk-9f86d081884c is over its limit", "sk-9f86d081884c"),
    ("{\"error\":{\"message\":\"bad\\nsk-9f86d081884c\"}}", "sk-9f86d081884c"),
    (
        "Key Hash (Token) =e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "e3b0c44298fc1c14",
    ),
    ("hashed_token:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "e3b0c44298fc1c14"),
    ("Team=team-of-others over its rate", "team-of-others"),
    ("not in team_id: f47ac10b-58cc-4372-a567-0e02b2c3d479", "f47ac10b-58cc"),
    ("Deployment='gpt-4o-eu-17' is cooling down", "gpt-4o-eu-17"),
    ("cooldown_list=[{'model_id': 'azure-seventeen', 'status': 429}]", "azure-seventeen"),
    ("{\"api_base\": \"gateway-seventeen\"}", "gateway-seventeen"),
    ("api_base=https://eu-17.openai.azure.com/openai", "eu-17.openai"),
    ("Cannot connect to host 10.1.2.3:4000 ssl:default", "10.1.2.3"),
    ("OSError: Multiple exceptions: [Errno 111] ('::1', 4000), litellm:4000", "litellm:4000"),
    ("could not translate host name litellm-db.internal to address", "litellm-db.internal"),
    ("redis://:hunter2@redis:6379/0 is down", "hunter2"),
    ("Can't reach postgresql://llm:hunter2@db/litellm", "hunter2"),
    ("no such file: /run/sluicegate/runs/Qx7/llm.sock", "/run/sluicegate"),
    ("in /usr/lib/python3.13/site-packages/litellm/main.py, line 9", "site-packages"),
    (
        "failed\nTraceback (most recent call last):\n  File \"main.py\", line 9, in secret_step\n",
        "secret_step",
    ),
];

/// Shape in which an upstream wraps such a text, and the route it does so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    OpenAi,
    Anthropic,
    Detail,
    Members,
    Text,
    Html,
    Moved,
    Header,
    ChatStream,
    ChatStreamWithAnswer,
    MessagesStream,
    ResponsesStream,
    NamedEvent,
    Unended,
}

const SHAPES: [Shape; 14] = [
    Shape::OpenAi,
    Shape::Anthropic,
    Shape::Detail,
    Shape::Members,
    Shape::Text,
    Shape::Html,
    Shape::Moved,
    Shape::Header,
    Shape::ChatStream,
    Shape::ChatStreamWithAnswer,
    Shape::MessagesStream,
    Shape::ResponsesStream,
    Shape::NamedEvent,
    Shape::Unended,
];

/// Text that a model says before the error; the proxy must not change it.
const SAID: &str = "see http://10.9.9.9/sk-mine-1234";

impl Shape {
    const fn path(self) -> &'static str {
        match self {
            Self::Anthropic | Self::MessagesStream => "/v1/messages",
            Self::ResponsesStream => "/v1/responses",
            _ => CHAT,
        }
    }

    const fn is_stream(self) -> bool {
        matches!(
            self,
            Self::ChatStream
                | Self::ChatStreamWithAnswer
                | Self::MessagesStream
                | Self::ResponsesStream
                | Self::NamedEvent
                | Self::Unended
        )
    }

    /// Returns the status, content type and body.
    fn wrapped(self, text: &str) -> (&'static str, &'static str, String) {
        let json = "application/json";
        let error = json!({ "message": text, "type": "server_error", "param": null, "code": "500" });
        match self {
            Self::OpenAi => ("400 Bad Request", json, json!({ "error": error }).to_string()),
            Self::Anthropic => {
                let error = json!({ "type": "overloaded_error", "message": text });
                ("529 Overloaded", json, json!({ "type": "error", "error": error }).to_string())
            }
            Self::Detail => ("404 Not Found", json, json!({ "detail": { "error": text } }).to_string()),
            Self::Members => {
                let error = json!({ "message": "m", "provider_specific_fields": { text: text } });
                ("500 Oh", json, json!({ "error": error, "litellm_debug": text }).to_string())
            }
            Self::Text => ("500 Oh", "text/plain", text.to_owned()),
            Self::Html => ("502 Oh", "text/html", format!("<html><h1>502</h1><pre>{text}</pre></html>")),
            Self::Moved => ("307 Moved", json, json!({ "error": error }).to_string()),
            Self::Header => ("500 Oh", json, json!({ "error": { "message": "m" } }).to_string()),
            _ => ("200 OK", "text/event-stream", self.events(text)),
        }
    }

    fn events(self, text: &str) -> String {
        let error = json!({ "message": text, "type": "server_error", "param": null, "code": "500" });
        let chat = json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": SAID } }] });
        match self {
            Self::MessagesStream => {
                let delta = json!({ "type": "text_delta", "text": SAID });
                let said = json!({ "type": "content_block_delta", "delta": delta });
                let error =
                    json!({ "type": "error", "error": { "type": "overloaded_error", "message": text } });
                format!("event: content_block_delta\ndata: {said}\n\nevent: error\ndata: {error}\n\n")
            }
            Self::ResponsesStream => {
                let said = json!({ "type": "response.output_text.delta", "delta": SAID });
                let failed = json!({ "status": "failed", "error": error });
                let failed = json!({ "type": "response.failed", "response": failed });
                format!("data: {said}\n\nevent: response.failed\ndata: {failed}\n\n")
            }
            Self::ChatStreamWithAnswer => {
                let mut with = chat.clone();
                with["error"] = error;
                format!("data: {chat}\r\n\r\ndata: {with}\r\n\r\ndata: [DONE]\r\n\r\n")
            }
            Self::NamedEvent => {
                format!("data: {chat}\n\nevent: error\ndata: {}\n\n", text.replace('\n', " "))
            }
            Self::Unended => format!("data: {chat}\n\ndata: {}", json!({ "error": error })),
            _ => format!("data: {chat}\n\ndata: {}\n\ndata: [DONE]\n\n", json!({ "error": error })),
        }
    }

    /// Returns the answer in writes; those of a stream split the secret.
    fn writes(self, text: &str, secret: &str) -> Vec<Vec<u8>> {
        let (status, kind, body) = self.wrapped(text);
        let header = match self {
            Self::Header => format!("request-id: {}\r\n", text.replace('\n', " ")),
            _ => String::new(),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{header}connection: close\r\n\r\n");
        if !self.is_stream() {
            return vec![(head + &body).into_bytes()];
        }
        let at = body.find(secret).unwrap_or(body.len() / 2) + secret.len() / 2;
        let cuts = [body.find("error").unwrap_or(0).min(at), at, body.len() - 1, body.len()];
        let mut writes = vec![head.into_bytes()];
        let mut from = 0;
        for cut in cuts {
            writes.push(body.as_bytes()[from..cut].to_vec());
            from = cut;
        }
        writes
    }
}

fn leaks() -> impl Iterator<Item = (Shape, &'static str, &'static str)> {
    SHAPES.into_iter().flat_map(|shape| INSIDES.iter().map(move |(text, secret)| (shape, *text, *secret)))
}

/// Returns the number of rows.
pub(super) fn count() -> usize {
    leaks().count() + refused().len()
}

async fn in_front_of(scripted: &RawScriptedUpstream) -> World {
    World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), "").await
}

/// Returns all that the agent receives: status, headers, and the body as far as it came.
async fn told(agent: &Agent, shape: Shape) -> (StatusCode, String) {
    let answering = if shape.is_stream() { Answering::Streamed } else { Answering::Whole };
    let body = body_for(shape.path(), "m", answering).to_string();
    let stream = agent.send(Method::POST, shape.path(), body.into()).await.unwrap();
    let (status, headers) = (stream.status, format!("{:?}", stream.headers));
    (status, headers + &stream.until_break().await.0)
}

#[tokio::test]
async fn no_error_of_an_upstream_tells_of_its_insides() {
    let scripted = RawScriptedUpstream::start().await;
    let world = in_front_of(&scripted).await;
    let run = world.run("r1", "acct-1").await;
    for (shape, text, secret) in leaks() {
        let writes = shape.writes(text, secret);
        scripted.say(&writes.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (status, answer) = told(&run.agent, shape).await;
        let row = format!("{shape:?} {text}: {status} {answer}");
        assert!(!answer.contains(secret), "{row}");
        assert!(answer.contains("error"), "that there was an error is told: {row}");
        assert!(!shape.is_stream() || answer.contains(SAID), "what the model said is left as it is: {row}");
        let quoted = json!(secret).to_string();
        let direct = told(&scripted.agent(), shape).await.1;
        assert!(direct.contains(quoted.trim_matches('"')), "the control: {row}: {direct}");
    }
    let records = world.records(leaks().count()).await;
    for (line, (shape, text, _)) in records.iter().zip(leaks()) {
        let failed = line.record.outcome == Outcome::StreamError;
        assert_eq!(failed, shape.is_stream(), "{shape:?} {text}: {line:?}");
    }
    for (path, content) in files(world.path()) {
        for (_, secret) in INSIDES.iter().filter(|_| path.ends_with(".ndjson") || path.ends_with(".log")) {
            assert!(!content.contains(secret), "{secret} is in {path}");
        }
    }
}

#[tokio::test]
async fn a_gateway_gets_stream_errors_reworded() {
    let scripted = RawScriptedUpstream::start().await;
    let shared = Shared::of(in_front_of(&scripted).await, "gateways").await;
    let words = "your credit balance is too low, api key expired";
    for shape in SHAPES.into_iter().filter(|shape| shape.is_stream()) {
        let writes = shape.writes(words, "balance");
        scripted.say(&writes.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (status, answer) = told(&shared.with_token(&good("r1")), shape).await;
        assert!(
            status == 200 && answer.contains("upstream_failed") && answer.contains(SAID),
            "{shape:?}: {answer}"
        );
        assert!(!answer.contains("credit") && !answer.contains("expired"), "{shape:?}: {answer}");
        assert!(told(&scripted.agent(), shape).await.1.contains(words), "{shape:?}: the control");
    }
}

/// Returns calls that Sluicegate itself refuses: path, lines of the head, and body.
fn refused() -> Vec<(String, String, String)> {
    let chat = |model: &str| body_for(CHAT, model, Answering::Whole).to_string();
    let mut unknown = body_for(CHAT, "m", Answering::Whole);
    unknown["api_base"] = json!("x");
    let slot = format!("/slot/{SLOT}{CHAT}");
    let trace = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n");
    vec![
        (CHAT.to_owned(), String::new(), "{".to_owned()),
        (CHAT.to_owned(), String::new(), unknown.to_string()),
        (CHAT.to_owned(), String::new(), chat("other")),
        (CHAT.to_owned(), "content-encoding: gzip\r\n".to_owned(), chat("m")),
        (CHAT.to_owned(), "transfer-encoding: gzip\r\n".to_owned(), String::new()),
        (CHAT.to_owned(), "x-run-token: x\r\n".to_owned(), chat("m")),
        (CHAT.to_owned(), format!("x-run-token: {}\r\n", good("r9")), chat("m")),
        (CHAT.to_owned(), format!("{trace}x-run-token: {}\r\n", good("r1")), chat("m")),
        ("/v1/nothing".to_owned(), String::new(), String::new()),
        ("/v1/models/other-model".to_owned(), String::new(), String::new()),
        (slot, format!("x-run-token: {}\r\n", good("r1")), chat("m")),
        // And one that no upstream takes.
        (CHAT.to_owned(), format!("x-run-token: {}\r\n", good("r1")), chat("m")),
    ]
}

#[tokio::test]
async fn no_refusal_of_our_own_tells_of_others() {
    let nobody = harness::bridge::free_port();
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &format!("http://{nobody}"), "").await;
    let shared = Shared::of(world, "gateways").await;
    crate::proxy::shared::open(&shared.world, "other-run", "other-account").await;
    for path in [format!("traces/{TRACE}"), format!("slots/{SLOT}")] {
        assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/other-run/{path}")).await, 200);
    }
    let models = Some(vec!["m".parse().unwrap()]);
    let run = shared.world.run_with(RunGrant { models, ..grant("own", "acct-1") }).await;
    let directory = shared.world.path().display().to_string();
    let nobody = nobody.to_string();
    let secrets = [CANARY_KEY, "other-run", "other-account", &nobody, &directory, ".sock", CANARY_SECRET];
    for (path, lines, body) in refused() {
        for agent in [&run.agent, &shared.agent()] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let answer = super::told(agent, request.as_bytes()).await;
            assert!(super::status(&answer) >= 400, "{path} {lines}: {answer}");
            for secret in secrets {
                assert!(!answer.contains(secret), "{secret}: {path} {lines}: {answer}");
            }
        }
    }
    // Control: the operator, who may know, sees it on the control socket.
    let told = shared.world.control.send(Method::GET, "/v1/runs", String::new()).await.text();
    assert!(told.contains("other-run") && told.contains("other-account"), "{told}");
    assert!(shared.world.log().contains(&nobody), "the operator's log says whom it tried");
    assert!(super::status(&super::told(&run.agent, &with_lines(b"a: b")).await) >= 400);
}

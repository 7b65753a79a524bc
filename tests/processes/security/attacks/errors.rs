//! Attacks by errors in shapes that no API documents, and by Sluicegate's own key in answers that look good. They come
//! in streams and whole, on a run's own socket and on a gateway's listener, in every dialect.

use bench::upstream::ScriptedUpstream;
use harness::{
    Agent, CANARY_KEY, RawScriptedUpstream, World,
    agent::{Answering, body_for},
    canary::CANARY_SECRET,
    grant,
};
use http::{Method, StatusCode};
use platform_core::record::Outcome;

use super::CHAT;
use crate::proxy::shared::{Shared, good};

/// A key of the upstream, in the upstream's words.
const THEIRS: &str = "sk-theirs-9f86d081884c7d65";
/// Text of the model, which passes untouched.
const SAID: &str = "see http://10.9.9.9/sk-mine-1234";

/// A route, an ordinary event of its streams with a text, and what makes an object look like one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Api {
    pub(super) path: &'static str,
    event: fn(&str) -> String,
    looks: &'static str,
}

pub(super) const APIS: [Api; 4] = [
    Api {
        path: CHAT,
        event: |text| {
            format!(
                "data: {{\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            )
        },
        looks: r#""choices":[],"#,
    },
    Api {
        path: "/v1/completions",
        event: |text| {
            format!("data: {{\"model\":\"m\",\"choices\":[{{\"index\":0,\"text\":\"{text}\"}}]}}\n\n")
        },
        looks: r#""choices":[],"#,
    },
    Api {
        path: "/v1/responses",
        event: |text| {
            format!(
                "data: {{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"{text}\"}}\n\n"
            )
        },
        looks: r#""type":"response.in_progress","#,
    },
    Api {
        path: "/v1/messages",
        event: |text| {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
            )
        },
        looks: r#""type":"message_delta","#,
    },
];

/// Errors in a stream; `S` is the secret, `L` what looks like an ordinary event, `P` more than is held.
const IN_STREAMS: [&str; 24] = [
    "event: Error\ndata: S\n\n",
    "event: error\ndata: {\"message\":\"S\"}\n\n",
    "event: S\ndata: {L\"x\":1}\n\n",
    "data: {\"detail\":\"S\"}\n\n",
    "data: {L\"detail\":\"S\"}\n\n",
    "data: {\"errors\":[\"S\"]}\n\n",
    "data: {L\"errors\":[{\"message\":\"S\"}]}\n\n",
    "data: {L\"Error\":\"S\"}\n\n",
    "data: {L\"\\u0065rror\":\"S\"}\n\n",
    "data: {\"message\":\"S\"}\n\n",
    "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"message\":\"S\"}}}\n\n",
    "data: {\"choices\":[{\"index\":0,\"error\":{\"message\":\"S\"}}]}\n\n",
    "data: {\"choices\":[\"S\"]}\n\n",
    "data: {\"choices\":\"S\"}\n\n",
    "data: {\"output\":[\"S\"]}\n\n",
    "data: {L\"error\":\ndata: {\"message\":\"S\"}}\n\n",
    "data: {'error': {'message': 'S'}}\n\n",
    "data: litellm.AuthenticationError: S\n\n",
    "Internal Server Error: S\n\n",
    "{\"error\":{\"message\":\"S\"}}\n\n",
    "data: {L\"x\":1} S\n\n",
    "data: {\"x\":\"P\",\"error\":\"S\"}\n\n",
    "data: {L\"x\":\"P\",\"error\":{\"message\":\"S\"}}\n\n",
    "data: {L\"x\":\"P\"}\ndata: S\n\n",
];

/// Lines that clients ignore.
const IGNORED: [&str; 5] = [": S\n\n", ": S\n", "id: S\n", "retry: S\n", "S: x\n"];

/// Errors with a good status.
const WHOLE: [&str; 15] = [
    r#"{"error":{"message":"S"}}"#,
    r#"{L"error":"S"}"#,
    r#"{"choices":[{"index":0,"message":{"content":"x"}}],"error":{"message":"S"}}"#,
    r#"{"choices":[{"index":0,"error":{"message":"S"}}]}"#,
    r#"{"choices":["S"]}"#,
    r#"{"choices":"S"}"#,
    r#"{"object":"response","status":"failed","error":{"message":"S"},"output":[]}"#,
    r#"{"output":["S"]}"#,
    r#"{"output":"S"}"#,
    r#"{"detail":"S"}"#,
    r#"{"errors":["S"]}"#,
    r#"{"type":"error","error":{"type":"api_error","message":"S"}}"#,
    "{'error': {'message': 'S'}}",
    "Internal Server Error: S",
    r#"{"x":"P","error":"S"}"#,
];

fn filled(pattern: &str, api: Api, secret: &str) -> String {
    let pattern = pattern.replace("L\"", &format!("{}\"", api.looks)).replace("\"S\"", "\u{1}");
    let pattern = pattern.replace('P', &"x".repeat(70_000)).replace('\u{1}', "\"S\"");
    // Nothing else in the patterns ends so.
    let mut text = String::new();
    for (at, part) in pattern.split('S').enumerate() {
        let is_word = at > 0 && part.starts_with("erver");
        text += if at == 0 {
            ""
        } else if is_word {
            "S"
        } else {
            secret
        };
        text += part;
    }
    text
}

/// Returns the number of rows: each is tried on both listeners.
pub(super) fn count() -> usize {
    2 * (APIS.len() * (IN_STREAMS.len() * 3 + IGNORED.len() + WHOLE.len()) + own_keys().len() + HEADERS.len())
}

/// A world with its own run socket and one that comes through a gateway.
pub(super) struct Doors {
    shared: Shared,
    pub(super) own: Agent,
    pub(super) scripted: RawScriptedUpstream,
}

impl Doors {
    pub(super) async fn open() -> Self {
        let scripted = RawScriptedUpstream::start().await;
        let upstream = ScriptedUpstream::start().await.unwrap();
        let world = World::in_front_of(upstream, &scripted.base_url(), "").await;
        let shared = Shared::of(world, "gateways").await;
        let own = shared.world.run_with(grant("own", "acct-1")).await.agent.clone();
        Self { shared, own, scripted }
    }

    pub(super) fn gateway(&self) -> Agent {
        self.shared.with_token(&good("r1"))
    }

    /// Makes the upstream send a head with `lines`, then `body` in two pieces, split at `cut`.
    fn say(&self, kind: &str, lines: &str, (body, cut): (&str, usize)) {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{lines}connection: close\r\n\r\n");
        let (before, after) = body.as_bytes().split_at(cut);
        self.scripted.say(&[head.as_bytes(), before, after]);
    }
}

/// Returns all that the agent receives: status, headers, and the body as far as it came.
pub(super) async fn told(agent: &Agent, path: &str, answering: Answering) -> (StatusCode, String) {
    let body = body_for(path, "m", answering).to_string();
    let stream = agent.send(Method::POST, path, body.into()).await.unwrap();
    let (status, headers) = (stream.status, format!("{:?}", stream.headers));
    (status, headers + &stream.until_break().await.0)
}

fn in_the_middle(body: &str, secret: &str) -> usize {
    body.find(secret).map_or(body.len() / 2, |at| at + secret.len() / 2)
}

/// An upstream sends an error event in any shape and with any line ending; the agent receives it redacted or in
/// Sluicegate's words.
#[tokio::test]
async fn errors_in_streams_never_pass() {
    let doors = Doors::open().await;
    let mut calls = 0;
    for api in APIS {
        let line_ends: [fn(String) -> String; 3] =
            [|it| it, |it| it.replace('\n', "\r\n"), |it| format!("\u{feff}{}", it.replace('\n', "\r"))];
        for (pattern, ends) in
            IN_STREAMS.into_iter().flat_map(|it| line_ends.iter().map(move |end| (it, end)))
        {
            let body = ends((api.event)(SAID) + &filled(pattern, api, THEIRS));
            doors.say("text/event-stream", "", (&body, in_the_middle(&body, THEIRS)));
            for (agent, is_gateway) in [(&doors.own, false), (&doors.gateway(), true)] {
                let (status, answer) = told(agent, api.path, Answering::Streamed).await;
                let row = format!("{} {pattern:?} {is_gateway}: {status} {:.600}", api.path, answer);
                assert!(!answer.contains("theirs") && answer.contains(SAID), "{row}");
                assert!(answer.contains("error"), "that there was an error is told: {row}");
                assert!(!is_gateway || answer.contains("upstream_failed"), "{row}");
                calls += 1;
            }
            let direct = told(&doors.scripted.agent(), api.path, Answering::Streamed).await.1;
            assert!(direct.contains(THEIRS), "the control: {direct:.600}");
        }
    }
    for line in doors.shared.world.records(calls).await {
        assert_eq!(line.record.outcome, Outcome::StreamError, "{line:?}");
    }
}

/// An upstream hides a secret in comments and lines that clients ignore; none of it passes, and the stream is otherwise
/// as good as without them.
#[tokio::test]
async fn ignored_lines_of_streams_carry_nothing() {
    let doors = Doors::open().await;
    for api in APIS {
        for line in IGNORED {
            let body = filled(line, api, THEIRS) + &(api.event)(SAID);
            doors.say("text/event-stream", "", (&body, in_the_middle(&body, THEIRS)));
            for agent in [&doors.own, &doors.gateway()] {
                let (_, answer) = told(agent, api.path, Answering::Streamed).await;
                assert!(!answer.contains("theirs"), "{} {line}: {answer}", api.path);
                assert!(answer.ends_with(&(api.event)(SAID)), "{} {line}: {answer}", api.path);
            }
            let direct = told(&doors.scripted.agent(), api.path, Answering::Streamed).await.1;
            assert!(direct.contains(THEIRS), "the control: {direct}");
        }
    }
}

/// An upstream sends a document that reports an error with status 200; Sluicegate treats it as an error.
#[tokio::test]
async fn errors_with_a_good_status_never_pass() {
    let doors = Doors::open().await;
    for api in APIS {
        for pattern in WHOLE {
            let body = filled(pattern, api, THEIRS);
            doors.say("application/json", "", (&body, in_the_middle(&body, THEIRS)));
            for (agent, is_gateway) in [(&doors.own, false), (&doors.gateway(), true)] {
                let (status, answer) = told(agent, api.path, Answering::Whole).await;
                let row = format!("{} {pattern} {is_gateway}: {status} {answer:.600}", api.path);
                assert!(!answer.contains("theirs"), "{row}");
                let is_cut = body.len() > 70_000;
                assert!(is_cut || answer.contains("error") || answer.contains("[key]"), "{row}");
                assert!(is_cut || !is_gateway || answer.contains("upstream_failed"), "{row}");
            }
            let direct = told(&doors.scripted.agent(), api.path, Answering::Whole).await.1;
            assert!(direct.contains(THEIRS), "the control: {direct:.600}");
        }
    }
}

/// Returns good answers with one of our own secrets: route, streaming or not, and body.
fn own_keys() -> Vec<(Api, Answering, String)> {
    let [chat, ..] = APIS;
    let escaped: String = CANARY_KEY.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    let whole = |text: &str| {
        format!(
            "{{\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}}}}]}}"
        )
    };
    let mut all = vec![
        (chat, Answering::Whole, whole(CANARY_KEY)),
        (chat, Answering::Whole, whole(&escaped)),
        (chat, Answering::Whole, whole(&format!("{CANARY_SECRET}new"))),
        (chat, Answering::Whole, whole(&("x".repeat(70_000) + CANARY_KEY))),
        (chat, Answering::Whole, whole("x").replace("\"index\"", &format!("\"{CANARY_KEY}\""))),
    ];
    for api in APIS {
        let done = "data: [DONE]\n\n";
        all.push((api, Answering::Streamed, (api.event)(CANARY_KEY) + done));
        all.push((api, Answering::Streamed, (api.event)(&escaped) + done));
        all.push((
            api,
            Answering::Streamed,
            (api.event)(&format!("{}{CANARY_KEY}", "x".repeat(70_000))) + done,
        ));
        all.push((api, Answering::Streamed, format!(": {CANARY_KEY}\n\n{}{done}", (api.event)("x"))));
        all.push((api, Answering::Streamed, format!("event: {CANARY_KEY}\n{}{done}", (api.event)("x"))));
        for cut in [1, 8, 9, CANARY_KEY.len() - 1] {
            let (begin, end) = CANARY_KEY.split_at(cut);
            all.push((api, Answering::Streamed, (api.event)(begin) + &(api.event)(end) + done));
        }
        let letters = CANARY_KEY.chars().map(|letter| (api.event)(&letter.to_string()));
        all.push((api, Answering::Streamed, letters.collect::<String>() + done));
    }
    all
}

/// Returns the texts of all events, as a client joins them.
fn joined(answer: &str) -> String {
    let events = answer
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line.split_once("data: ")?.1).ok());
    let text = |event: serde_json::Value| {
        let places = ["/choices/0/delta/content", "/choices/0/text", "/delta", "/delta/text"];
        places.iter().find_map(|place| event.pointer(place)?.as_str().map(str::to_owned)).unwrap_or_default()
    };
    events.map(text).collect()
}

/// An upstream repeats its key or a secret of tokens in a good answer; neither reaches an agent, however it is written
/// or spread.
#[tokio::test]
async fn our_own_secrets_pass_in_no_answer() {
    let doors = Doors::open().await;
    let tells = |answer: &str| {
        let plain = answer.replace("\\u00", "\u{1}");
        let all = joined(answer) + answer;
        [CANARY_KEY, CANARY_SECRET].iter().any(|secret| all.contains(secret))
            || plain.matches('\u{1}').count() >= CANARY_KEY.len()
    };
    for (api, answering, body) in own_keys() {
        let kind = if answering == Answering::Streamed { "text/event-stream" } else { "application/json" };
        doors.say(kind, "", (&body, in_the_middle(&body, CANARY_KEY)));
        for agent in [&doors.own, &doors.gateway()] {
            let (status, answer) = told(agent, api.path, answering).await;
            assert!(status == 200 && !tells(&answer), "{} {body:.300}: {answer:.600}", api.path);
        }
        let direct = told(&doors.scripted.agent(), api.path, answering).await.1;
        assert!(tells(&direct), "the control: {direct:.600}");
    }
}

/// Headers of a good answer that pass, with values that must not.
const HEADERS: [&str; 6] = [
    "request-id: S",
    "cache-control: S",
    "cache-control: max-age=S",
    "retry-after: S",
    "llm_provider-retry-after: S",
    "request-id: http://10.1.2.3/S",
];

/// An upstream puts secrets into headers of good answers and of errors; both are judged alike.
#[tokio::test]
async fn headers_of_good_answers_tell_nothing() {
    let doors = Doors::open().await;
    let body = r#"{"choices":[]}"#;
    for header in HEADERS {
        for secret in [CANARY_KEY, THEIRS] {
            doors.say("application/json", &(header.replace('S', secret) + "\r\n"), (body, 4));
            for agent in [&doors.own, &doors.gateway()] {
                let (status, answer) = told(agent, CHAT, Answering::Whole).await;
                assert!(status == 200 && answer.ends_with(body), "{header}: {answer}");
                assert!(!answer.contains(secret), "{header}: {answer}");
            }
            let direct = told(&doors.scripted.agent(), CHAT, Answering::Whole).await.1;
            assert!(direct.contains(secret), "the control: {direct}");
        }
    }
    // Well-formed values pass.
    doors.say("Application/JSON; charset=utf-8", "request-id: req_011CS\r\nretry-after: 7\r\n", (body, 4));
    let (_, answer) = told(&doors.own, CHAT, Answering::Whole).await;
    for value in ["Application/JSON; charset=utf-8", "req_011CS", "\"7\""] {
        assert!(answer.contains(value), "{answer}");
    }
}

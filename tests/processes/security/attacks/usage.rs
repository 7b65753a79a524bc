//! Attacks on usage: an agent, or a careless upstream, would have it recorded as less or as more than it is. Each row
//! is an answer of an upstream. The control beside it is the same upstream without the hostile part, with exact usage.

use bench::upstream::ScriptedUpstream;
use harness::{RawScriptedUpstream, World, grant};
use platform_core::{
    budget::Budget,
    grant::RunGrant,
    record::{ExchangeRecord, TokensSource},
    refusal::Refusal,
};

use super::{status, told};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const EMBEDDINGS: &str = "/v1/embeddings";

/// Usage that the upstream reports, in the names of Anthropic and OpenAI's responses, and of chat.
const USAGE: &str = r#""usage":{"input_tokens":300,"output_tokens":6000}"#;
const CHAT_USAGE: &str = r#""usage":{"prompt_tokens":300,"completion_tokens":6000}"#;
const EXACT: Books = Books::Exact(300, 6000);

/// An answer of the upstream, and the usage that must be recorded.
pub(super) struct Attack {
    row: &'static str,
    path: &'static str,
    says: Vec<u8>,
    books: Books,
}

/// Usage that must be in the record.
#[derive(Debug, Clone, Copy)]
enum Books {
    /// Exactly this input and output.
    Exact(u64, u64),
    /// This much input, and output for so many bytes of text at the least: partly counted.
    Partial(u64, u64),
    /// Nothing was counted: input by the request, so much output at the least, and never more than was reserved.
    Estimated(u64),
    /// No model worked on it.
    Nothing,
}

/// End of an answer.
#[derive(Debug, Clone, Copy)]
enum End {
    Whole,
    Cut,
}

fn answer(content_type: &str, body: &str, end: End) -> Vec<u8> {
    let framing = match end {
        End::Whole => format!("content-length: {}\r\n\r\n{body}", body.len()),
        End::Cut => format!("content-length: {}\r\n\r\n{body}", body.len() + 1),
    };
    let named =
        if content_type.is_empty() { String::new() } else { format!("content-type: {content_type}\r\n") };
    format!("HTTP/1.1 200 OK\r\n{named}connection: close\r\n{framing}").into_bytes()
}

fn attack(row: &'static str, path: &'static str, (content_type, body): (&str, &str), books: Books) -> Attack {
    Attack { row, path, says: answer(content_type, body, End::Whole), books }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Fifty-five bytes of text.
const TEXT: &str = "a model that says fifty-five bytes in one piece of text";

/// Builds a response as LiteLLM streams it: without nulls, the request's own fields repeated in the last event.
fn response(echo: &str) -> String {
    format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"model\":\"m\",\"status\":\"in_progress\"}}}}\n\n\
         data: {{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{{{echo}\"status\":\"completed\",{USAGE}}}}}\n\ndata: [DONE]\n\n"
    )
}

/// Builds a chat in which the model says [`TEXT`], with `before` and `after` around it.
fn chat(before: &str, after: &str) -> String {
    format!("{before}data: {{\"choices\":[{{\"delta\":{{\"content\":\"{TEXT}\"}}}}]}}\n\n{after}")
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn usage(figures: &str) -> String {
    format!("data: {{\"choices\":[],\"usage\":{{{figures}}}}}\n\n")
}

fn hidden() -> Vec<Attack> {
    let long = format!("\"instructions\":\"{}\",", " ".repeat(1_100_000));
    // As deep as a request may be that is echoed.
    let deep = format!("\"metadata\":{}{},", "[".repeat(126), "]".repeat(126));
    let echoes = [
        ("a delta in a tool's schema", r#""tools":[{"parameters":{"default":{"delta":"x"}}}],"#),
        ("a delta in the format", r#""text":{"format":{"schema":{"delta":"x"}}},"#),
        ("an error in metadata", r#""metadata":{"error":"x","type":"error"},"#),
        ("usage in a tool", r#""tools":[{"usage":{"input_tokens":1,"output_tokens":1}}],"#),
        ("brackets in instructions", r#""instructions":"}]}\"usage\":{\"input_tokens\":1}","#),
        ("a long echo", &long),
        ("a deep echo", &deep),
    ];
    let streamed = echoes.iter().map(|(row, echo)| attack(row, RESPONSES, (EVENTS, &response(echo)), EXACT));
    let whole = echoes.iter().map(|(row, echo)| {
        attack(row, RESPONSES, (JSON, &format!("{{{echo}\"status\":\"completed\",{USAGE}}}")), EXACT)
    });
    streamed.chain(whole).collect()
}

fn odd() -> Vec<Attack> {
    let whole = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{TEXT}\"}}}}],{CHAT_USAGE}}}");
    let split = CHAT_USAGE.replace(":{", ":\ndata: {");
    let end = format!("data: {{\"choices\":[],{split}}}\n\n{DONE}");
    let exponents = usage(r#""prompt_tokens":3e2,"completion_tokens":6E3"#);
    vec![
        attack("media type in capitals", CHAT, ("Application/JSON; charset=utf-8", &whole), EXACT),
        attack("another kind of JSON", CHAT, ("application/vnd.api+json", &whole), EXACT),
        attack("mark before JSON", CHAT, (JSON, &format!("\u{feff}{whole}")), EXACT),
        attack("stream in capitals", RESPONSES, ("Text/Event-Stream", &response("")), EXACT),
        attack("mark before a stream", RESPONSES, (EVENTS, &format!("\u{feff}{}", response(""))), EXACT),
        attack("usage over two lines", CHAT, (EVENTS, &chat("", &format!("{STOP}{end}"))), EXACT),
        attack("exponents", CHAT, (EVENTS, &chat("", &format!("{STOP}{exponents}{DONE}"))), EXACT),
    ]
}

fn partial() -> Vec<Attack> {
    let said = TEXT.len() as u64;
    let ends = |figures: &str| chat("", &format!("{STOP}{}{DONE}", usage(figures)));
    let books = Books::Partial(100, said * 2 / 7);
    let zero = usage(r#""prompt_tokens":100,"completion_tokens":0"#);
    let early = |row, end, least| Attack {
        row,
        path: CHAT,
        says: answer(EVENTS, &chat(&zero, if matches!(end, End::Whole) { DONE } else { "" }), end),
        books: Books::Partial(100, least),
    };
    let start =
        r#"data: {"type":"message_start","message":{"usage":{"input_tokens":100,"output_tokens":1}}}"#;
    let delta = format!("data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{TEXT}\"}}}}");
    vec![
        attack("no output", CHAT, (EVENTS, &ends(r#""prompt_tokens":100"#)), books),
        attack(
            "null output",
            CHAT,
            (EVENTS, &ends(r#""prompt_tokens":100,"completion_tokens":null"#)),
            books,
        ),
        attack("negative", CHAT, (EVENTS, &ends(r#""prompt_tokens":100,"completion_tokens":-50"#)), books),
        attack(
            "nothing for text",
            CHAT,
            (EVENTS, &ends(r#""prompt_tokens":100,"completion_tokens":0"#)),
            books,
        ),
        early("usage before text", End::Whole, said * 2 / 7),
        early("usage before text that is cut", End::Cut, said),
        Attack {
            row: "Anthropic's first usage",
            path: MESSAGES,
            says: answer(EVENTS, &format!("{start}\n\n{delta}\n\n"), End::Cut),
            books: Books::Partial(100, said),
        },
    ]
}

fn guessed() -> Vec<Attack> {
    let vectors = "0.0123456,".repeat(1_800_000);
    let embedding = |usage: &str| format!("{{\"data\":[{{\"embedding\":[{vectors}0]}}]{usage}}}");
    let filler = "x".repeat(17 << 20);
    let smaller = usage(r#""prompt_tokens":300,"completion_tokens":1"#);
    let larger = format!("data: {{\"choices\":[],{CHAT_USAGE}}}\n\n");
    let smaller_last = chat("", &format!("{STOP}{larger}{smaller}{DONE}"));
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n";
    let begun = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":100,\"output_tokens\":1}}}\n\n";
    vec![
        attack(
            "large embeddings",
            EMBEDDINGS,
            (JSON, &embedding(",\"usage\":{\"prompt_tokens\":173333}")),
            Books::Exact(173_333, 0),
        ),
        attack("large embeddings without usage", EMBEDDINGS, (JSON, &embedding("")), Books::Estimated(0)),
        attack(
            "a long chat",
            CHAT,
            (JSON, &format!("{{\"choices\":[{{\"message\":{{\"content\":\"{filler}\"}}}}]}}")),
            Books::Estimated(8192),
        ),
        attack(
            "a long chat with usage",
            CHAT,
            (JSON, &format!("{{\"choices\":[{{\"message\":{{\"content\":\"{filler}\"}}}}],{CHAT_USAGE}}}")),
            EXACT,
        ),
        attack(
            "embeddings whose total alone is told",
            EMBEDDINGS,
            (JSON, r#"{"data":[{"embedding":[0.5]}],"usage":{"total_tokens":5000}}"#),
            Books::Exact(5000, 0),
        ),
        attack("a later, smaller usage", CHAT, (EVENTS, &smaller_last), EXACT),
        attack("no content type", CHAT, ("", &format!("{{\"choices\":[],{CHAT_USAGE}}}")), EXACT),
        attack("an error that comes first", MESSAGES, (EVENTS, overloaded), Books::Nothing),
        attack(
            "an error behind an answer's beginning",
            MESSAGES,
            (EVENTS, &format!("{begun}{overloaded}")),
            Books::Partial(100, 1),
        ),
        attack(
            "a count of tokens",
            "/v1/messages/count_tokens",
            (JSON, &format!("{{\"input_tokens\":9,{USAGE}}}")),
            Books::Nothing,
        ),
        attack(
            "another count of tokens",
            "/v1/responses/input_tokens",
            (JSON, &format!("{{\"input_tokens\":9,{USAGE}}}")),
            Books::Nothing,
        ),
    ]
}

/// Returns the rows of all tables.
pub(super) fn attacks() -> Vec<Attack> {
    [hidden(), odd(), partial(), guessed()].into_iter().flatten().collect()
}

fn request(path: &str) -> Vec<u8> {
    let input = match path {
        RESPONSES | EMBEDDINGS | "/v1/responses/input_tokens" => r#""input":"hi""#,
        MESSAGES => r#""max_tokens":8192,"messages":[{"role":"user","content":"hi"}]"#,
        _ => r#""messages":[{"role":"user","content":"hi"}]"#,
    };
    let stream = if path == EMBEDDINGS || path.ends_with("_tokens") { "" } else { ",\"stream\":true" };
    let body = format!("{{\"model\":\"m\",{input}{stream}}}");
    let head = "host: a\r\ncontent-type: application/json\r\nconnection: close";
    format!("POST {path} HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn assert_booked(row: &str, record: &ExchangeRecord, books: Books) {
    let (input, output) = (record.tokens.input, record.tokens.output);
    let booked = format!("{row}: {:?} {input}/{output} {}", record.tokens_source, record.outcome);
    match books {
        Books::Exact(prompt, answer) => {
            assert_eq!(
                (record.tokens_source, input, output),
                (TokensSource::Exact, prompt, answer),
                "{booked}"
            );
        }
        Books::Partial(prompt, least) => {
            assert_eq!((record.tokens_source, input), (TokensSource::Partial, prompt), "{booked}");
            assert!((least..=8192).contains(&output), "{booked}");
        }
        Books::Estimated(most) => {
            assert_eq!(record.tokens_source, TokensSource::Estimated, "{booked}");
            assert!((1..1000).contains(&input) && output == most, "{booked}");
        }
        Books::Nothing => {
            assert_eq!((record.tokens_source, input, output), (TokensSource::None, 0, 0), "{booked}");
        }
    }
}

async fn in_front_of(scripted: &RawScriptedUpstream) -> World {
    World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), "").await
}

/// A client calls models with answers that hide usage in other text; the record has usage as the upstream counted it.
/// Usage that was not counted is estimated at no more than the call had reserved.
#[tokio::test]
async fn usage_is_booked_for_what_it_is() {
    let scripted = RawScriptedUpstream::start().await;
    let world = in_front_of(&scripted).await;
    let run = world.run("r1", "acct-1").await;
    let honest = attack("the control", RESPONSES, (EVENTS, &response("")), EXACT);
    for (calls, attack) in (1..).zip([honest].into_iter().chain(attacks())) {
        scripted.say(&[&attack.says]);
        let answer = told(&run.agent, &request(attack.path)).await;
        assert_eq!(status(&answer), 200, "{}: {}", attack.row, answer.get(..300).unwrap_or(&answer));
        let record = world.records(calls).await.pop().unwrap().record;
        assert_booked(attack.row, &record, attack.books);
    }
}

/// An upstream sends an answer that is not a model's answer; the agent receives it in other words, and the call is still
/// billed: at most as much as it had reserved.
#[tokio::test]
async fn an_answer_of_another_kind_is_booked() {
    let scripted = RawScriptedUpstream::start().await;
    let world = in_front_of(&scripted).await;
    let run = world.run("r1", "acct-1").await;
    scripted.say(&[&answer("application/octet-stream", &"x".repeat(17 << 20), End::Whole)]);
    assert_eq!(status(&told(&run.agent, &request(CHAT)).await), 502);
    let record = world.records(1).await.pop().unwrap().record;
    // A byte of the request is at most a token; providers may add a thousand.
    let most = record.request_bytes + 1024;
    assert_eq!((record.tokens_source, record.tokens.output), (TokensSource::Estimated, 8192));
    assert!((1..=most).contains(&record.tokens.input), "{record:?}");
}

/// An upstream compresses an answer although it was told not to: neither agent nor meter can read it, and the call is
/// booked for all that it may have had.
#[tokio::test]
async fn an_answer_that_was_not_read_is_booked() {
    let scripted = RawScriptedUpstream::start().await;
    let world = in_front_of(&scripted).await;
    let run = world.run("r1", "acct-1").await;
    let whole = answer(JSON, &format!("{{\"choices\":[],{CHAT_USAGE}}}"), End::Whole);
    let encoded = String::from_utf8(whole.clone()).unwrap().replacen(
        "connection",
        "content-encoding: gzip\r\nconnection",
        1,
    );
    scripted.say(&[encoded.as_bytes()]);
    assert_eq!(status(&told(&run.agent, &request(CHAT)).await), 502);
    let record = world.records(1).await.pop().unwrap().record;
    assert_booked("gzip", &record, Books::Estimated(8192));
    scripted.say(&[&whole]);
    assert_eq!(status(&told(&run.agent, &request(CHAT)).await), 200);
    assert_booked("the control", &world.records(2).await.pop().unwrap().record, EXACT);
}

/// An agent that repeats the one call that hid its usage gets no further than an honest one.
#[tokio::test]
async fn hidden_usage_evades_no_limit() {
    let scripted = RawScriptedUpstream::start().await;
    let world = in_front_of(&scripted).await;
    for (run, echo) in [("honest", ""), ("hostile", r#""tools":[{"parameters":{"default":{"delta":"x"}}}],"#)]
    {
        let budget = Budget { output_tokens: Some(10_000), ..Budget::default() };
        let run = world.run_with(RunGrant { budget, ..grant(run, "acct-1") }).await;
        scripted.say(&[&answer(EVENTS, &response(echo), End::Whole)]);
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(status(&told(&run.agent, &request(RESPONSES)).await));
        }
        assert_eq!(statuses, [200, 200, 400], "{echo}");
    }
    let refusals: Vec<_> = world.records(6).await.into_iter().map(|line| line.record.refusal).collect();
    let used_up = Some(Refusal::QuotaExhausted);
    assert_eq!(refusals, [None, None, used_up, None, None, used_up]);
}

/// A write to a cache for an hour costs twice the prompt's price, in Anthropic's names and in LiteLLM's; the control is
/// a write for five minutes.
#[tokio::test]
async fn a_cache_write_of_an_hour_costs_twice() {
    let scripted = RawScriptedUpstream::start().await;
    let prices = "[prices.m]\ninput = \"1.00\"\noutput = \"5.00\"\n";
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &scripted.base_url(), prices).await;
    let run = world.run("r1", "acct-1").await;
    let written = r#""cache_creation_input_tokens":1000"#;
    let table = [
        (MESSAGES, format!(r#""input_tokens":0,"output_tokens":10,{written}"#), 1_250_000),
        (
            MESSAGES,
            format!(
                r#""input_tokens":0,"output_tokens":10,{written},"cache_creation":{{"ephemeral_1h_input_tokens":1000}}"#
            ),
            2_000_000,
        ),
        (
            CHAT,
            format!(
                r#""prompt_tokens":1000,"completion_tokens":10,{written},"prompt_tokens_details":{{"cache_creation_token_details":{{"ephemeral_1h_input_tokens":1000}}}}"#
            ),
            2_000_000,
        ),
    ];
    for (calls, (path, figures, prompt)) in (1..).zip(table) {
        scripted.say(&[&answer(JSON, &format!("{{\"usage\":{{{figures}}}}}"), End::Whole)]);
        assert_eq!(status(&told(&run.agent, &request(path)).await), 200);
        let record = world.records(calls).await.pop().unwrap().record;
        assert_eq!(record.cost_nanodollars.unwrap().0, prompt + 10 * 5000, "{figures}: {:?}", record.tokens);
    }
}

//! Tests the meter with answers of every API, whole and split at every byte.

mod allocations;
mod hostile;
mod lenient;
mod partial;
mod properties;
mod recorded;

use bytes::Bytes;
use platform_core::{money::NanoDollars, record::Tokens, route::Route};

use super::{AnswerDelta, Finality, Format, Meter, UsageReport};

const CHAT: &str = concat!(
    "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grü\"}}]}\r\n\r\n",
    "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":6,\"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2},\"cost\":2.3e-05}}\n\n",
    "data: [DONE]\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"search\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const RESPONSES: &str = concat!(
    "data: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-r\",\"usage\":null}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"name\":\"lookup\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Yes\"}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{not text}\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"lookup\"}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-r\",\"output\":[{\"type\":\"function_call\",\"name\":\"lookup\"}],\"usage\":{\"input_tokens\":7,\"output_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":1},\"output_tokens_details\":{\"reasoning_tokens\":3}}}}\n\n",
);

struct Seen {
    report: UsageReport,
    complete: bool,
    text: String,
    tools: Vec<String>,
}

fn read(route: Route, format: Format, pieces: &[&[u8]]) -> Seen {
    let (mut text, mut tools) = (String::new(), Vec::new());
    let mut sink = |delta: AnswerDelta<'_>| match delta {
        AnswerDelta::Text(delta) => text += delta,
        AnswerDelta::Tool(name) => tools.push(name.to_owned()),
    };
    let mut meter = Meter::new(route, format);
    for piece in pieces {
        meter.feed(&Bytes::copy_from_slice(piece), Some(&mut sink));
    }
    let report = meter.finish(Some(&mut sink));
    Seen { complete: meter.is_complete(&report), report, text, tools }
}

fn stream_cases() -> [(Route, &'static str, Tokens, &'static str, &'static str, &'static str); 3] {
    [
        (
            Route::ChatCompletions,
            CHAT,
            Tokens { input: 11, output: 6, cached: 3, cache_written: 0, cache_written_1h: 0, reasoning: 2 },
            "gpt-x",
            "get_weather",
            "Grü",
        ),
        (
            Route::Messages,
            MESSAGES,
            Tokens { input: 17, output: 15, cached: 5, cache_written: 2, cache_written_1h: 0, reasoning: 0 },
            "claude-x",
            "search",
            "Hi",
        ),
        (
            Route::Responses,
            RESPONSES,
            Tokens { input: 7, output: 4, cached: 1, cache_written: 0, cache_written_1h: 0, reasoning: 3 },
            "gpt-r",
            "lookup",
            "Yes",
        ),
    ]
}

#[test]
fn streams_are_read_alike_however_split() {
    for (route, stream, tokens, model, tool, text) in stream_cases() {
        let stream = stream.as_bytes();
        for at in 0..=stream.len() {
            let seen = read(route, Format::Events, &[&stream[..at], &stream[at..]]);
            assert_eq!(seen.report.tokens(), Some(tokens), "{route:?} split at {at}");
            assert_eq!(seen.report.model.as_ref().unwrap().as_str(), model);
            assert_eq!(
                (seen.report.tools.len(), seen.report.tools[0].as_str()),
                (1, tool),
                "{route:?} split at {at}"
            );
            assert_eq!((seen.text.as_str(), seen.tools.as_slice()), (text, &[tool.to_owned()][..]));
            assert!(seen.complete, "{route:?} split at {at}");
        }
        let bytewise: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(route, Format::Events, &bytewise).report.tokens(), Some(tokens));
    }
}

#[test]
fn usage_is_the_same_without_watchers() {
    for (route, stream, tokens, _, tool, _) in stream_cases() {
        let mut meter = Meter::new(route, Format::Events);
        meter.feed(&Bytes::from_static(stream.as_bytes()), None);
        let report = meter.finish(None);
        assert_eq!((report.tokens(), report.tools[0].as_str()), (Some(tokens), tool), "{route:?}");
        assert!(meter.is_complete(&report));
    }
}

#[test]
fn early_usage_of_a_stream_is_not_final() {
    let start = MESSAGES.find("event: content_block_start").unwrap();
    let seen = read(Route::Messages, Format::Events, &[&MESSAGES.as_bytes()[..start]]);
    assert_eq!((seen.report.tokens().unwrap().output, seen.report.finality), (1, Finality::Preliminary));
    assert!(
        stream_cases()
            .iter()
            .all(|case| read(case.0, Format::Events, &[case.1.as_bytes()]).report.finality == Finality::Final)
    );
}

#[test]
fn the_cost_of_a_stream_is_in_its_usage() {
    assert_eq!(
        read(Route::ChatCompletions, Format::Events, &[CHAT.as_bytes()]).report.cost,
        Some(NanoDollars(23_000))
    );
}

#[test]
fn a_cut_or_failed_stream_is_not_complete() {
    for (route, stream, ..) in stream_cases() {
        let last_event = stream.trim_end().rfind("\n\n").unwrap();
        assert!(!read(route, Format::Events, &[&stream.as_bytes()[..last_event + 2]]).complete, "{route:?}");
    }
    let failed = "data: {\"error\": {\"message\": \"overload\", \"code\": \"500\"}}\n\n";
    let seen = read(Route::ChatCompletions, Format::Events, &[CHAT.as_bytes(), failed.as_bytes()]);
    assert!(seen.report.failed && !seen.complete);
    let anthropic = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    assert!(read(Route::Messages, Format::Events, &[anthropic.as_bytes()]).report.failed);
}

#[test]
fn whole_answers_are_read_in_any_pieces() {
    let cases = [
        (
            r#"{"model":"m","choices":[{"message":{"content":"Hi","tool_calls":[{"function":{"name":"t"}}]}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
            3,
            2,
            1,
        ),
        (
            r#"{"type":"message","model":"m","content":[{"type":"text","text":"Hi"},{"type":"tool_use","name":"t"}],"usage":{"input_tokens":3,"output_tokens":2}}"#,
            3,
            2,
            1,
        ),
        (
            r#"{"model":"m","output":[{"type":"function_call","name":"t"}],"usage":{"input_tokens":3,"output_tokens":2}}"#,
            3,
            2,
            1,
        ),
        (
            r#"{"model":"m","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":5,"total_tokens":5}}"#,
            5,
            0,
            0,
        ),
    ];
    for (document, input, output, tools) in cases {
        let (a, b) = document.as_bytes().split_at(document.len() / 2);
        let seen = read(Route::ChatCompletions, Format::Json, &[a, b]);
        assert_eq!(seen.report.tokens(), Some(Tokens { input, output, ..Tokens::default() }), "{document}");
        assert_eq!(seen.report.tools.len(), tools, "{document}");
        assert!(seen.complete);
    }
}

#[test]
fn an_own_event_fits_only_between_two_others() {
    let mut meter = Meter::new(Route::ChatCompletions, Format::Events);
    for (piece, between) in [
        ("", true),
        ("da", false),
        ("ta: {}", false),
        ("\n", false),
        ("\n", true),
        ("data: {}\r\n\r", true),
        ("\n", true),
        (": c", false),
        ("\r", false),
        // A piece may be empty, which ends nothing.
        ("", false),
        ("\n", false),
        ("\n", true),
    ] {
        meter.feed(&Bytes::from_static(piece.as_bytes()), None);
        assert_eq!(meter.between_events(), between, "after {piece:?}");
    }
}

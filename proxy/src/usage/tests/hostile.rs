//! Checks that text which an agent has echoed never hides usage, however long, and that what standards allow
//! is read.

use platform_core::{record::Tokens, route::Route};
use proptest::prelude::*;

use super::{
    super::{Finality, Format, Meter, UsageReport},
    read,
};

const USAGE: &str = r#""usage":{"input_tokens":300,"output_tokens":6000}"#;
const TOKENS: Tokens =
    Tokens { input: 300, output: 6000, cached: 0, cache_written: 0, cache_written_1h: 0, reasoning: 0 };

/// Returns the last event of a response, as LiteLLM sends it: without nulls, and with fields of the request.
fn completed(echo: &str) -> String {
    format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"model\":\"m\",\"status\":\"in_progress\"}}}}\n\n\
         data: {{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{{{echo},\"status\":\"completed\",{USAGE}}}}}\n\ndata: [DONE]\n\n"
    )
}

/// Reads where nothing watches: there an event of text was once passed over by its words.
fn unwatched(route: Route, format: Format, pieces: &[&[u8]]) -> UsageReport {
    let mut meter = Meter::new(route, format);
    pieces.iter().for_each(|piece| meter.feed(&bytes::Bytes::copy_from_slice(piece), None));
    meter.finish(None)
}

fn assert_counted(report: &UsageReport, echo: &str) {
    let shown = echo.get(..200).unwrap_or(echo);
    assert_eq!((report.tokens(), report.finality), (Some(TOKENS), Finality::Final), "{shown}");
    assert!(!report.failed, "{shown}");
}

#[test]
fn echoed_words_hide_no_usage() {
    let deep = format!("\"metadata\":{}1{}", "{\"usage\":[".repeat(5000), "]}".repeat(5000));
    let table = [
        r#""tools":[{"parameters":{"default":{"delta":"x"}}}]"#,
        r#""tools":[{"parameters":{"usage":{"input_tokens":1,"output_tokens":1},"error":"x","type":"error"}}]"#,
        r#""text":{"format":{"schema":{"delta":{"text":"x"},"choices":[{"finish_reason":"stop"}]}}}"#,
        r#""instructions":"\"usage\":{\"input_tokens\":1} \\\\","input":[{"content":"}}}]]"}]"#,
        r#""prediction":{"response":{"usage":null}},"output":[{"usage":{"output_tokens":1},"error":1}]"#,
        &deep,
    ];
    for echo in table {
        for (format, text) in [
            (Format::Events, completed(echo)),
            (Format::Json, format!("{{\"status\":\"completed\",{echo},{USAGE}}}")),
        ] {
            let seen = read(Route::Responses, format, &[text.as_bytes()]);
            assert_counted(&seen.report, echo);
            assert_counted(&unwatched(Route::Responses, format, &[text.as_bytes()]), echo);
            assert!(seen.complete, "{echo}");
        }
    }
}

/// Megabytes are skipped by their brackets and quotes, in no memory.
#[test]
fn echoes_of_any_size_hide_no_usage() {
    let echoes = [
        format!("\"instructions\":\"{}\"", "words \\n".repeat(1 << 20)),
        format!("\"tools\":[{}]", vec!["{\"delta\":\"x\"}"; 1 << 18].join(",")),
        format!("\"metadata\":{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20)),
    ];
    for echo in echoes {
        let whole = format!("{{{echo},{USAGE}}}");
        for (format, text) in [(Format::Events, completed(&echo)), (Format::Json, whole)] {
            let mut meter = Meter::new(Route::Responses, format);
            for piece in text.as_bytes().chunks(16 << 10) {
                meter.feed(&bytes::Bytes::copy_from_slice(piece), None);
                assert!(meter.kept() <= 1 << 10, "{}", meter.kept());
            }
            assert_counted(&meter.finish(None), &echo);
        }
    }
}

/// An answer of embeddings that is larger than any document that was ever looked into.
#[test]
fn a_large_answer_is_read_to_its_usage() {
    let numbers = "0.0123456,".repeat(2 << 20);
    let text =
        format!("{{\"data\":[{{\"embedding\":[{numbers}0]}}],\"usage\":{{\"prompt_tokens\":173333}}}}");
    let report = read(Route::Embeddings, Format::Json, &[text.as_bytes()]).report;
    assert_eq!(
        (report.tokens().unwrap().input, report.text_bytes, report.finality),
        (173_333, 0, Finality::Final)
    );
}

#[test]
fn legal_variants_of_events_are_read() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":300,"completion_tokens":6000}}"#;
    let (first, second) = usage.split_at(30);
    let end = "data: [DONE]\n\n";
    let streams = [
        format!("data: {usage}\n\n{end}"),
        format!("\u{feff}data:{usage}\n\n{end}"),
        format!("id: 7\r\nevent: message\r\ndata: {{\r\ndata: {}\r\n\r\n{end}", &usage[1..]),
        format!("data: \ndata:{usage}\rdata\r\r{end}"),
        format!(": {}\n\nretry: 5\ndata:   {usage}\n\n{end}", "x".repeat(2 << 20)),
        format!("data: {usage}\n\ndata: [DONE]"),
    ];
    for stream in streams {
        let seen = read(Route::ChatCompletions, Format::Events, &[stream.as_bytes()]);
        assert_counted(&seen.report, &stream);
        assert!(seen.complete, "{stream}");
    }
    let within_a_name = format!("data: {first}\ndata: {second}\n\n{end}");
    assert!(read(Route::ChatCompletions, Format::Events, &[within_a_name.as_bytes()]).complete);
    for text in [format!("\u{feff}{usage}"), format!(" \r\n{usage}\n"), usage.replace("usage", "us\\u0061ge")]
    {
        assert_counted(&read(Route::ChatCompletions, Format::Json, &[text.as_bytes()]).report, &text);
    }
}

/// A long text reaches watchers whole, in pieces that end with whole characters.
#[test]
fn a_long_text_is_told_whole_however_it_is_split() {
    let texts = ["words and ", "\\\\", "\\\\\\\"x", "\\ud83d\\ude00", "\\u4f60\\n", "é", "😀b"];
    for text in texts {
        let long = text.repeat((200 << 10) / text.len());
        let whole = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{long}\"}}}}]}}");
        let expected: String = serde_json::from_str(&format!("\"{long}\"")).unwrap();
        for size in [whole.len(), 1 << 16, (1 << 16) + 1, 9_999, 7] {
            let pieces: Vec<_> = whole.as_bytes().chunks(size).collect();
            let seen = read(Route::ChatCompletions, Format::Json, &pieces);
            assert!(seen.text == expected, "{text} in pieces of {size}: {} bytes", seen.text.len());
        }
    }
}

#[test]
fn media_types_are_compared_as_http_does() {
    let table = [
        (Some("application/json"), Format::Json),
        (Some("Application/JSON; charset=utf-8"), Format::Json),
        (Some(" application/problem+JSON "), Format::Json),
        (Some("Text/Event-Stream;charset=UTF-8"), Format::Events),
        (Some("text/plain; a=application/json"), Format::Opaque),
        (Some("application/jsonx"), Format::Opaque),
        (None, Format::Json),
    ];
    for (text, format) in table {
        assert_eq!(Format::of(text), format, "{text:?}");
    }
}

/// Returns JSON of names and words that matter elsewhere.
fn echo() -> impl Strategy<Value = serde_json::Value> {
    let words =
        ["usage", "delta", "error", "response", "type", "response.completed", "}", "\"", "\\", "é", ""];
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        word.clone().prop_map(Into::into),
        any::<u32>().prop_map(Into::into),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::vec((word.clone(), inner), 0..5)
                .prop_map(|all| all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_echo_hides_usage(echo in echo(), size in 1..70_usize) {
        for name in ["tools", "text", "instructions", "metadata", "prediction", "input", "output", "x"] {
            let echo = format!("\"{name}\":{echo}");
            let text = completed(&echo);
            let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
            assert_counted(&read(Route::Responses, Format::Events, &pieces).report, &echo);
            assert_counted(&unwatched(Route::Responses, Format::Events, &pieces), &echo);
        }
    }
}

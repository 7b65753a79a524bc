//! Checks that strange, repeated or late reports, and those of several upstreams, are read for what they are.

use platform_core::{record::Tokens, route::Route};

use super::{super::Format, CHAT, MESSAGES, RESPONSES, read};

/// Field by field: what one is spoilt by costs nothing but itself.
#[test]
fn an_unexpected_type_costs_only_its_field() {
    let usage = r#""usage":{"prompt_tokens":11,"completion_tokens":6}"#;
    let table = [
        (format!(r#"{{"model":"m","choices":[{{"delta":{{"content":["a",1]}}}}],{usage}}}"#), Some((11, 6))),
        (format!(r#"{{"model":"m","choices":[{{"delta":{{"content":7}}}}],{usage}}}"#), Some((11, 6))),
        (format!(r#"{{"model":"m","choices":{{"a":1}},{usage}}}"#), Some((11, 6))),
        (format!(r#"{{"model":"m","choices":[3,null,"x"],"delta":9,"item":[],"output":1,{usage}}}"#), Some((11, 6))),
        (format!(r#"{{"model":7,"type":[],"error":null,{usage}}}"#), Some((11, 6))),
        (format!(r#"{{"model":"m","usage":null,{usage}}}"#), Some((11, 6))),
        (r#"{"model":"m","usage":{"prompt_tokens":11.0,"completion_tokens":"6"}}"#.to_owned(), Some((11, 6))),
        (r#"{"model":"m","usage":{"prompt_tokens":11,"completion_tokens":null}}"#.to_owned(), Some((11, 0))),
        (r#"{"model":"m","usage":{"prompt_tokens":-4,"completion_tokens":6}}"#.to_owned(), Some((0, 6))),
        (
            r#"{"model":"m","usage":{"prompt_tokens":11,"completion_tokens":6,"prompt_tokens_details":"?","completion_tokens_details":[1]}}"#
                .to_owned(),
            Some((11, 6)),
        ),
        (r#"{"model":"m","usage":{"prompt_tokens":{},"completion_tokens":[]}}"#.to_owned(), None),
        (r#"{"model":"m","usage":7}"#.to_owned(), None),
        (r#"["usage",{"prompt_tokens":1}]"#.to_owned(), None),
    ];
    for (json, expected) in table {
        let event = format!("data: {{\"model\":\"m\"}}\r\n\r\ndata:{json}\r\n\r\n");
        for (format, bytes) in [(Format::Events, event.as_bytes()), (Format::Json, json.as_bytes())] {
            let seen = read(Route::ChatCompletions, format, &[bytes]);
            let tokens = seen.report.tokens().map(|tokens| (tokens.input, tokens.output));
            assert_eq!(tokens, expected, "{format:?} {json}");
        }
    }
}

#[test]
fn the_finish_reason_is_the_upstreams_word() {
    let chat = |reasons: [&str; 2]| {
        reasons.map(|it| {
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":{it}}}]}}\n\n")
        })
    };
    let response = |kind: &str, response: &str| {
        format!("data: {{\"type\":\"response.{kind}\",\"response\":{response}}}\n\n")
    };
    let message = |delta: &str| format!("data: {{\"type\":\"message_delta\",\"delta\":{delta}}}\n\n");
    let table = [
        (Route::ChatCompletions, chat(["null", "\"length\""]).concat(), Some("length")),
        (Route::ChatCompletions, chat(["\"stop\"", "\"length\""]).concat(), Some("stop")),
        (Route::ChatCompletions, chat(["7", "\"\""]).concat(), None),
        (Route::Completions, chat(["null", "\"content_filter\""]).concat(), Some("content_filter")),
        (Route::Responses, response("created", r#"{"status":"in_progress"}"#), None),
        (Route::Responses, response("completed", r#"{"status":"completed"}"#), Some("completed")),
        (
            Route::Responses,
            response(
                "incomplete",
                r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#,
            ),
            Some("max_output_tokens"),
        ),
        (Route::Responses, response("incomplete", r#"{"status":"incomplete"}"#), Some("incomplete")),
        (Route::Responses, response("failed", r#"{"status":"failed"}"#), Some("failed")),
        (Route::Messages, message(r#"{"stop_reason":"max_tokens"}"#), Some("max_tokens")),
        (Route::Messages, message(r#"{"stop_reason":null}"#), None),
    ];
    for (route, stream, reason) in table {
        let report = read(route, Format::Events, &[stream.as_bytes()]).report;
        assert_eq!(report.finish.as_ref().map(|reason| reason.as_str()), reason, "{stream}");
    }
    let whole = r#"{"stop_reason":"end_turn","content":[]}"#;
    let report = read(Route::Messages, Format::Json, &[whole.as_bytes()]).report;
    assert_eq!(report.finish.unwrap().as_str(), "end_turn");
}

#[test]
fn of_several_counts_the_larger_holds() {
    let counted = |usages: &[&str]| {
        let start =
            format!("data: {{\"type\":\"message_start\",\"message\":{{\"usage\":{}}}}}\n\n", usages[0]);
        let rest =
            usages[1..].iter().map(|it| format!("data: {{\"type\":\"message_delta\",\"usage\":{it}}}\n\n"));
        let stream = start + &rest.collect::<String>();
        read(Route::Messages, Format::Events, &[stream.as_bytes()]).report.tokens().unwrap()
    };
    let table: [(&[&str], Tokens); 5] = [
        (
            &[
                r#"{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}"#,
                r#"{"output_tokens":15}"#,
                r#"{"output_tokens":40}"#,
            ],
            Tokens { input: 17, output: 40, cached: 5, cache_written: 2, cache_written_1h: 0, reasoning: 0 },
        ),
        (
            &[r#"{"input_tokens":90,"output_tokens":6000}"#, r#"{"input_tokens":70,"output_tokens":1}"#],
            Tokens { input: 90, output: 6000, ..Tokens::default() },
        ),
        (
            &[r#"{"prompt_tokens":1,"input_tokens":90,"completion_tokens":1,"output_tokens":15}"#],
            Tokens { input: 90, output: 15, ..Tokens::default() },
        ),
        (
            &[
                r#"{"input_tokens":9,"cache_read_input_tokens":4}"#,
                r#"{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}"#,
            ],
            Tokens { input: 13, output: 3, cached: 4, ..Tokens::default() },
        ),
        // LiteLLM's chat answers of Anthropic's models.
        (
            &[
                r#"{"prompt_tokens":20,"completion_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":6,"prompt_tokens_details":{"cached_tokens":4,"cache_creation_tokens":6}}"#,
            ],
            Tokens { input: 20, output: 3, cached: 4, cache_written: 6, cache_written_1h: 0, reasoning: 0 },
        ),
    ];
    for (usages, tokens) in table {
        assert_eq!(counted(usages), tokens, "{usages:?}");
    }
}

#[test]
fn several_answers_name_the_tools_of_all() {
    let call = |index: u8, name: &str| {
        format!(
            "{{\"index\":{index},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"{name}\"}}}}]}}}}"
        )
    };
    let stream = format!(
        "data: {{\"model\":\"m\",\"choices\":[{},{}]}}\n\ndata: {{\"choices\":[{}]}}\n\n",
        call(0, "one"),
        call(1, "two"),
        call(2, "three")
    );
    let seen = read(Route::ChatCompletions, Format::Events, &[stream.as_bytes()]);
    assert_eq!(seen.tools, ["one", "two", "three"]);
}

#[test]
fn text_of_the_model_is_measured() {
    let table = [
        (Route::ChatCompletions, CHAT, "Grü".len() + "get_weather".len() + "{}".len()),
        (Route::Messages, MESSAGES, "Hi".len()),
        (Route::Responses, RESPONSES, "Yes{not text}".len()),
        (Route::Completions, "data: {\"choices\":[{\"text\":\" word\\n\",\"finish_reason\":null}]}\n\n", 6),
        (
            Route::ChatCompletions,
            "data: {\"choices\":[{\"delta\": {\"reasoning_content\": \"hm\", \"thinking_blocks\":[{\"thinking\":\"hm\"}]}},{\"delta\":{\"content\":\"abc\"}}],\"obfuscation\":\"xxxx\"}\n\n",
            5,
        ),
        (
            Route::Messages,
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"Ab==\"}}\n\n",
            0,
        ),
    ];
    for (route, stream, bytes) in table {
        assert_eq!(
            read(route, Format::Events, &[stream.as_bytes()]).report.text_bytes,
            bytes as u64,
            "{stream}"
        );
    }
    let whole =
        r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}"#;
    for (end, bytes) in [(whole.len(), 5), (whole.find("llo").unwrap(), 2)] {
        let seen = read(Route::ChatCompletions, Format::Json, &[&whole.as_bytes()[..end]]);
        assert_eq!(seen.report.text_bytes, bytes, "{}", &whole[..end]);
    }
}

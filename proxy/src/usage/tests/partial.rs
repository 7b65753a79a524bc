//! Checks when an upstream's count is the whole truth, and when it is not.

use platform_core::route::Route;

use super::{
    super::{Finality, Format},
    read,
};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"words and words\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\n";
const EARLY: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":0}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A count is final where it came behind all text, at an end that the stream has reported.
#[test]
fn usage_is_final_only_behind_the_whole_answer() {
    let table: [(&[&str], Finality); 9] = [
        (&[TEXT, STOP, USAGE, DONE], Finality::Final),
        (&[TEXT, STOP, USAGE], Finality::Final),
        (&[TEXT, USAGE, DONE], Finality::Final),
        (&[TEXT, STOP, DONE], Finality::Preliminary),
        (&[TEXT, USAGE], Finality::Preliminary),
        (&[EARLY, TEXT, TEXT], Finality::Preliminary),
        (&[EARLY, TEXT, STOP, DONE], Finality::Preliminary),
        (&[TEXT, STOP, USAGE, TEXT, DONE], Finality::Preliminary),
        (&[TEXT, STOP, EARLY, DONE], Finality::Preliminary),
    ];
    for (events, count) in table {
        let stream = events.concat();
        let seen = read(Route::ChatCompletions, Format::Events, &[stream.as_bytes()]);
        assert_eq!(seen.report.finality, count, "{stream}");
    }
}

/// A figure that is missing, null or impossible makes what there is partial; one that is there stays.
#[test]
fn spoilt_figures_make_usage_partial() {
    let table = [
        (r#""prompt_tokens":100,"completion_tokens":7"#, (100, 7), Finality::Final),
        (r#""prompt_tokens":1e2,"completion_tokens":7E0"#, (100, 7), Finality::Final),
        (r#""completion_tokens":7,"completion_tokens":3,"prompt_tokens":100"#, (100, 7), Finality::Final),
        (r#""prompt_tokens":100"#, (100, 0), Finality::Preliminary),
        (r#""prompt_tokens":100,"completion_tokens":null"#, (100, 0), Finality::Preliminary),
        (r#""prompt_tokens":100,"completion_tokens":-50"#, (100, 0), Finality::Preliminary),
        (r#""prompt_tokens":100,"completion_tokens":{}"#, (100, 0), Finality::Preliminary),
        (r#""prompt_tokens":100,"completion_tokens":0"#, (100, 0), Finality::Preliminary),
        (r#""completion_tokens":7"#, (0, 7), Finality::Preliminary),
        (r#""prompt_tokens":0,"completion_tokens":7"#, (0, 7), Finality::Preliminary),
    ];
    for (figures, tokens, count) in table {
        let usage = format!("data: {{\"choices\":[],\"usage\":{{{figures}}}}}\n\n");
        let stream = [TEXT, STOP, &usage, DONE].concat();
        let whole =
            format!("{{\"choices\":[{{\"message\":{{\"content\":\"Hi\"}}}}],\"usage\":{{{figures}}}}}");
        for (format, text) in [(Format::Events, &stream), (Format::Json, &whole)] {
            let report = read(Route::ChatCompletions, format, &[text.as_bytes()]).report;
            let tokens_read = report.tokens().unwrap();
            assert_eq!(
                ((tokens_read.input, tokens_read.output), report.finality),
                (tokens, count),
                "{format:?} {figures}"
            );
        }
    }
}

/// An error counts as a refusal only where it comes first and alone.
#[test]
fn an_error_that_comes_first_is_a_refusal() {
    const ERROR: &str =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let table: [(&[&str], bool); 8] = [
        (&[ERROR], true),
        (&[": ping\n\n", ERROR, DONE], true),
        (&["data: {\"error\":\"busy\"}\n\n"], true),
        (&["data: {\"error\":null}\n\n", ERROR], false),
        (&[TEXT, ERROR], false),
        (&[ERROR, TEXT], false),
        (&[ERROR, USAGE], false),
        (&[TEXT, STOP, USAGE, DONE], false),
    ];
    for (events, is_refusal) in table {
        let stream = events.concat();
        let seen = read(Route::ChatCompletions, Format::Events, &[stream.as_bytes()]);
        assert_eq!(seen.report.is_refusal(), is_refusal, "{stream}");
    }
    let documents = [
        (r#"{"error":{"message":"busy"}}"#, true),
        (r#"{"error":null,"choices":[]}"#, false),
        (r#"{"status":"failed","error":{"message":"busy"}}"#, false),
        (r#"{"error":{"message":"busy"},"usage":{"prompt_tokens":9}}"#, false),
        ("", false),
    ];
    for (document, is_refusal) in documents {
        let report = read(Route::ChatCompletions, Format::Json, &[document.as_bytes()]).report;
        assert_eq!(report.is_refusal(), is_refusal, "{document}");
    }
}

#[test]
fn embeddings_have_no_output_to_miss() {
    let answer = r#"{"data":[{"embedding":[0.5,-0.5]}],"usage":{"prompt_tokens":5,"total_tokens":5}}"#;
    let report = read(Route::Embeddings, Format::Json, &[answer.as_bytes()]).report;
    assert_eq!((report.finality, report.text_bytes), (Finality::Final, 0));
    let report = read(Route::ChatCompletions, Format::Json, &[answer.as_bytes()]).report;
    assert_eq!(report.finality, Finality::Preliminary, "the control");
}

#[test]
fn a_total_counts_for_embeddings_alone() {
    let answer = r#"{"data":[{"embedding":[0.5,-0.5]}],"usage":{"total_tokens":5000}}"#;
    let report = read(Route::Embeddings, Format::Json, &[answer.as_bytes()]).report;
    assert_eq!((report.finality, report.tokens().unwrap().input), (Finality::Final, 5000));
    let report = read(Route::ChatCompletions, Format::Json, &[answer.as_bytes()]).report;
    assert_eq!(report.tokens(), None, "the control: the total of a chat has an answer in it");
}

/// Every way in which OpenAI ends a response reports its usage.
#[test]
fn responses_tell_usage_however_they_end() {
    for (kind, complete) in
        [("completed", true), ("incomplete", true), ("cancelled", true), ("failed", false)]
    {
        let stream = format!(
            "data: {{\"type\":\"response.{kind}\",\"response\":{{\"usage\":{{\"input_tokens\":9,\"output_tokens\":5}}}}}}\n\ndata: [DONE]\n\n"
        );
        let seen = read(Route::Responses, Format::Events, &[stream.as_bytes()]);
        assert_eq!((seen.report.finality, seen.complete), (Finality::Final, complete), "{kind}");
    }
}

/// Written to a cache for an hour: Anthropic's names, and LiteLLM's.
#[test]
fn cache_writes_of_an_hour_are_told_apart() {
    let table = [
        r#"{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}"#,
        r#"{"prompt_tokens":31,"completion_tokens":2,"cache_creation_input_tokens":30,"prompt_tokens_details":{"cache_creation_tokens":30,"cache_creation_token_details":{"ephemeral_1h_input_tokens":20}}}"#,
    ];
    for usage in table {
        let answer = format!("{{\"usage\":{usage}}}");
        let tokens = read(Route::Messages, Format::Json, &[answer.as_bytes()]).report.tokens().unwrap();
        assert_eq!((tokens.input, tokens.cache_written, tokens.cache_written_1h), (31, 30, 20), "{usage}");
    }
}

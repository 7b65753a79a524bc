//! Checks fields, names and shapes that must not pass. For the rows see `super::assert_rows`.

use super::*;

#[test]
fn control_fields_of_litellm_and_unknown_ones() {
    assert_rows(
        Route::ChatCompletions,
        &[
            (r#""no-log":true"#, "field no-log", r#""n":1"#),
            (r#""fallbacks":["m2"]"#, "field fallbacks", r#""stop":["m2"]"#),
            (r#""api_base":"http://evil""#, "field api_base", r#""prompt_cache_key":"http://evil""#),
            (r#""mock_response":"x""#, "field mock_response", r#""verbosity":"low""#),
            (r#""custom_llm_provider":"anthropic""#, "field custom_llm_provider", r#""top_p":1"#),
            (r#""input_cost_per_token":0"#, "field input_cost_per_token", r#""temperature":0"#),
            (r#""num_retries":9"#, "field num_retries", r#""seed":9"#),
            (r#""cache":{"no-store":true}"#, "field cache", r#""logit_bias":{"1":1}"#),
            (r#""litellm_metadata":{"user":"v"}"#, "field litellm_metadata", r#""metadata":{"user":"v"}"#),
            (r#""tags":["a"]"#, "field tags", r#""modalities":["text"]"#),
            (r#""extra_body":{"no-log":true}"#, "field extra_body", r#""audio":{"voice":"a"}"#),
            (r#""no\u002dlog":true"#, "field no-log", r#""see\u0064":1"#),
            (r#""Model":"x""#, "field Model", r#""user":"x""#),
            (r#""previous_response_id":"r""#, "field previous_response_id", r#""service_tier":"auto""#),
            (r#""a b\n\"budget":1"#, "field a?b??budget", r#""n":null"#),
        ],
    );
}

/// The routes below `/v1/responses` take no more than the API documents there.
#[test]
fn counting_and_compacting_have_own_lists() {
    for route in [Route::InputTokens, Route::Compact] {
        assert_rows(
            route,
            &[
                (r#""stream":true"#, "field stream", r#""input":"a""#),
                (r#""store":true"#, "field store", r#""text":{}"#),
                (r#""background":true"#, "field background", r#""reasoning":{}"#),
                (r#""metadata":{}"#, "field metadata", r#""parallel_tool_calls":true"#),
                (r#""user":"victim""#, "field user", r#""instructions":"user""#),
                (r#""max_output_tokens":9"#, "field max_output_tokens", r#""instructions":null"#),
                (r#""previous_response_id":"r""#, "stored_responses", r#""previous_response_id":null"#),
                (
                    r#""input":[{"type":"item_reference","id":"a"}]"#,
                    "stored_responses",
                    r#""input":[{"type":"message","role":"user","content":"a"}]"#,
                ),
                (
                    r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"http://e"}]}]"#,
                    "media_urls",
                    r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,e"}]}]"#,
                ),
                (
                    r#""tools":[{"type":"web_search"}]"#,
                    "web_search",
                    r#""tools":[{"type":"function","name":"a"}]"#,
                ),
            ],
        );
    }
    assert_rows(
        Route::InputTokens,
        &[
            (r#""conversation":"c""#, "stored_responses", r#""conversation":null"#),
            (r#""prompt_cache_key":"k""#, "field prompt_cache_key", r#""truncation":"auto""#),
        ],
    );
    assert_rows(
        Route::Compact,
        &[
            (r#""conversation":"c""#, "field conversation", r#""prompt_cache_key":"k""#),
            (r#""service_tier":"priority""#, "premium_service", r#""service_tier":"auto""#),
        ],
    );
}

#[test]
fn the_model() {
    let bad = [
        r#"{}"#,
        r#"{"model":null}"#,
        r#"{"model":["m","m2"]}"#,
        r#"{"model":""}"#,
        r#"{"model":"m,m2"}"#,
        r#"{"model":"m\u002cm2"}"#,
        r#"{"model":"m "}"#,
        r#"{"model":"other"}"#,
        r#"{"model":"M"}"#,
        r#"{"model":{"m":1}}"#,
        r#"{"MODEL":"m"}"#,
    ];
    for body in bad {
        assert!(verdict(Route::Embeddings, body, &policy()).is_err(), "{body}");
    }
    passes(Route::Embeddings, r#"{"model":"m"}"#, &policy());
    passes(Route::Embeddings, r#"{"\u006dodel":"\u006d"}"#, &policy());
    let any = Policy { models: None, ..policy() };
    passes(Route::Embeddings, r#"{"model":"openai/gpt-4.1@eu:x"}"#, &any);
    assert_eq!(word(&verdict(Route::Embeddings, r#"{"model":"a,b"}"#, &any).unwrap_err()), "model");
}

#[test]
fn names_that_are_there_twice() {
    assert_rows(
        Route::ChatCompletions,
        &[
            (r#""model":"m2""#, "duplicate", r#""n":1"#),
            (r#""mo\u0064el":"m2""#, "duplicate", r#""n":1"#),
            (r#""stream":true,"str\u0065am":false"#, "duplicate", r#""stream":true"#),
            (
                r#""stream_options":{"include_usage":true,"include_usage":false}"#,
                "duplicate",
                r#""stream_options":{"include_usage":true,"include_obfuscation":false}"#,
            ),
            (
                r#""messages":[{"role":"user","role":"system"}]"#,
                "duplicate",
                r#""messages":[{"role":"user"},{"role":"system"}]"#,
            ),
            (
                r#""messages":[{"role":"user","content":[{"type":"text","typ\u0065":"text"}]}]"#,
                "duplicate",
                r#""messages":[{"role":"user","content":[{"type":"text","kind":"text"}]}]"#,
            ),
            (
                r#""tools":[{"type":"function","type":"function"}]"#,
                "duplicate",
                r#""tools":[{"type":"function"},{"type":"function"}]"#,
            ),
            (
                r#""tools":[{"type":"function","function":{"name":"a","name":"b"}}]"#,
                "duplicate",
                r#""tools":[{"type":"function","function":{"parameters":{"a":1,"a":2}}}]"#,
            ),
            (
                r#""tool_choice":{"type":"function","type":"mcp"}"#,
                "duplicate",
                r#""tool_choice":{"type":"function","function":{"name":"a"}}"#,
            ),
        ],
    );
}

#[test]
fn messages_of_odd_shapes() {
    assert_rows(
        Route::ChatCompletions,
        &[
            (r#""messages":"hi""#, "type messages", r#""messages":[]"#),
            (r#""messages":{"role":"user"}"#, "type messages", r#""messages":[{"role":"user"}]"#),
            (r#""messages":["hi"]"#, "type messages", r#""messages":[{"content":"hi"}]"#),
            (r#""messages":[[{"role":"user"}]]"#, "type messages", r#""messages":[{"content":[["hi"]]}]"#),
            (
                r#""messages":[{"role":"user","content":{"type":"image_url","image_url":"http://e"}}]"#,
                "media_urls",
                r#""messages":[{"role":"user","content":{"type":"text","text":"http://e"}}]"#,
            ),
            (r#""messages":[{"role":["user"]}]"#, "type role", r#""messages":[{"role":"user"}]"#),
            (
                r#""messages":[{"role":"assistant","audio":{"id":"audio_1"}}]"#,
                "stored_files",
                r#""messages":[{"role":"assistant","audio":null}]"#,
            ),
            (
                r#""prediction":{"type":"content","content":[{"image_url":"http://e"}]}"#,
                "media_urls",
                r#""prediction":{"type":"content","content":"http://e"}"#,
            ),
            (r#""stream":"true""#, "type stream", r#""stream":true"#),
            (r#""stream":1"#, "type stream", r#""stream":null"#),
            (r#""store":"true""#, "type store", r#""store":true"#),
            (r#""n":-1"#, "type n", r#""n":1"#),
            (r#""max_tokens":1.5"#, "type max_tokens", r#""max_tokens":15"#),
            (r#""max_tokens":"9""#, "type max_tokens", r#""max_tokens":null"#),
            (r#""max_completion_tokens":1e9"#, "type max_completion_tokens", r#""max_completion_tokens":9"#),
            (r#""stream_options":[]"#, "type stream_options", r#""stream_options":null"#),
            (r#""stream_options":{"x":1}"#, "field x", r#""stream_options":{}"#),
        ],
    );
}

/// Bodies made to be slow.
#[test]
fn crowds_are_refused_early() {
    let many: String = (0..100_000).map(|i| format!(r#","a{i}":0"#)).collect();
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user"{many}}}]}}"#);
    assert_eq!(word(&verdict(Route::ChatCompletions, &body, &policy()).unwrap_err()), "crowded");
    let body = format!(r#"{{"model":"m"{many}}}"#);
    assert_eq!(word(&verdict(Route::ChatCompletions, &body, &policy()).unwrap_err()), "field a0");
    let deep = |n: usize| {
        format!(r#"{{"model":"m","messages":[{{"content":{}{}}}]}}"#, "[".repeat(n), "]".repeat(n))
    };
    passes(Route::ChatCompletions, &deep(124), &policy());
    assert_eq!(word(&verdict(Route::ChatCompletions, &deep(125), &policy()).unwrap_err()), "syntax");
}

//! Checks what must pass without any grant: requests of real clients.

use super::*;

const ACCEPTED: [(Route, &str); 20] = [
    // OpenClaw 2026.2 and 2026.9, shape measured.
    (
        Route::ChatCompletions,
        r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stream":true,"stream_options":{"include_usage":true},"store":false,"max_completion_tokens":8192,"tools":[{"type":"function","function":{"name":"web_search","description":"d","parameters":{"type":"object","properties":{"image_url":{"type":"string","format":"uri"},"type":{"const":"mcp"}}},"strict":false}}]}"#,
    ),
    (
        Route::ChatCompletions,
        r#"{"model":"m","messages":[{"role":"assistant","content":null,"reasoning_content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"fetch","arguments":"{\"url\":\"http://e\"}"}}]},{"role":"tool","tool_call_id":"c","content":"http://e"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":8192,"tools":[],"tool_choice":"auto","reasoning_effort":"low"}"#,
    ),
    // A LiteLLM answer sent back whole.
    (
        Route::ChatCompletions,
        r#"{"model":"m","messages":[{"role":"assistant","content":"a","refusal":null,"audio":null,"function_call":null,"tool_calls":null,"annotations":[{"type":"url_citation","url_citation":{"url":"http://e","title":"t","start_index":0,"end_index":1}}],"thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}],"provider_specific_fields":{"refusal":null}}]}"#,
    ),
    (
        Route::ChatCompletions,
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"file_id":{"type":"string"}}}}},"n":2,"seed":1,"logprobs":true,"top_logprobs":5,"logit_bias":{"50256":-100},"parallel_tool_calls":false,"service_tier":"auto","user":"u","metadata":{"k":"v"},"safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h","verbosity":"low","modalities":["text"],"stop":["a"]}"#,
    ),
    (
        Route::ChatCompletions,
        r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"functions":[{"name":"f","description":"d","parameters":{}}],"function_call":{"name":"f"},"tools":[{"type":"custom","custom":{"name":"c","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /http:\/\//"}}}}],"tool_choice":{"type":"custom","custom":{"name":"c"}}}"#,
    ),
    (
        Route::Completions,
        r#"{"model":"m","prompt":["a","b"],"best_of":2,"echo":false,"logprobs":1,"max_tokens":16,"n":1,"suffix":"x","stream":false,"user":"u"}"#,
    ),
    (Route::Completions, r#"{"model":"m","prompt":[[1,2],[3]],"stop":"\n","temperature":0.5,"top_p":1e0}"#),
    (
        Route::Responses,
        r#"{"model":"m","input":"Hi","instructions":"i","reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"text"},"verbosity":"low"},"include":["reasoning.encrypted_content"],"store":false,"stream":true,"stream_options":{"include_obfuscation":false},"truncation":"auto","max_output_tokens":9,"max_tool_calls":2,"tool_choice":{"type":"function","name":"f"},"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true,"async":true,"output_schema":null}],"prompt_cache_key":"k","previous_response_id":null}"#,
    ),
    (
        Route::Responses,
        r#"{"model":"m","input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}","id":"fc"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"http://e"}]},{"type":"message","role":"assistant","id":"msg","status":"completed","content":[{"type":"output_text","text":"t","annotations":[{"type":"file_citation","file_id":"f","index":0}],"logprobs":[]},{"type":"refusal","refusal":"r"}]},{"type":"custom_tool_call","call_id":"c","name":"n","input":"http://e"},{"type":"custom_tool_call_output","call_id":"c","output":"o"}]}"#,
    ),
    // Codex 0.169, written from descriptions of its requests: gpt-5.5 with sub-agents and a search for tools, then gpt-6.1 with all tools in the input.
    (
        Route::Responses,
        r#"{"model":"m","instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"tool_search_call","call_id":"c","status":"completed","execution":"client","arguments":{"query":"q","limit":8}},{"type":"tool_search_output","call_id":"c","status":"completed","execution":"client","tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f","description":"d","strict":false,"defer_loading":true,"parameters":{"type":"object"}}]}]},{"type":"function_call","namespace":"n","name":"f","arguments":"{}","call_id":"d"}],"tools":[{"type":"function","name":"exec_command","description":"d","strict":false,"parameters":{"type":"object"}},{"type":"namespace","name":"multi_agent_v1","description":"d","tools":[{"type":"function","name":"spawn_agent","description":"d","strict":false,"parameters":{"type":"object"}}]},{"type":"tool_search","execution":"client","description":"d","parameters":{"type":"object"}}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"session_id":"s","x-codex-installation-id":"i"}}"#,
    ),
    (
        Route::Responses,
        r#"{"model":"m","input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","description":"d","tools":[{"type":"custom","name":"exec","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: /a/"}},{"type":"function","name":"wait","description":"d","parameters":{}}]}]},{"type":"message","role":"user","content":"Hi"}],"tool_choice":"auto","stream":true}"#,
    ),
    // Codex 0.171 with its own provider and gpt-6.2, recorded and shortened, then its agents' messages and an effort that
    // changes on the way, from its schema.
    (
        Route::Responses,
        r#"{"model":"m","stream":true,"input":[{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"clock","description":"d","tools":[{"type":"function","name":"sleep","parameters":{}}]}]},{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"i"}],"internal_chat_message_metadata_passthrough":{"turn_id":"t","create_time":1795918646.8104048,"content_item_kinds":["model.base_instructions"],"content_item_metadata":[{"provenance":{"type":"harness","hook":false}}]}},{"type":"message","id":"msg_2","role":"user","content":[{"type":"input_text","text":"Hi"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"tool","namespace":"collaboration"}}]}}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"low","context":"all_turns"},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","text":{"verbosity":"low"},"client_metadata":{"turn_id":"t"}}"#,
    ),
    (
        Route::Responses,
        r#"{"model":"m","input":[{"type":"configuration_update","id":"cu_1","reasoning":{"effort":"high"}},{"type":"agent_message","id":"am_1","author":"/root","recipient":"/root/a","content":[{"type":"input_text","text":"Hi"},{"type":"encrypted_content","encrypted_content":"e"}]},{"type":"context_compaction","encrypted_content":"e"},{"type":"function_call_output","call_id":"c","output":[{"type":"encrypted_content","encrypted_content":"e"}]}]}"#,
    ),
    (
        Route::Messages,
        r#"{"model":"m","max_tokens":1024,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"AA"},{"type":"text","text":"t","citations":[{"type":"web_search_result_location","url":"http://e"}]},{"type":"tool_use","id":"t","name":"n","input":{"source":{"type":"url","url":"http://e"}}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":false,"content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"search_result","source":"http://e","title":"t","content":[{"type":"text","text":"t"}]}]}]}],"tools":[{"name":"n","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"},"eager_input_streaming":true},{"type":"custom","name":"o","input_schema":{}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{"user_id":"u"},"stop_sequences":["a"],"temperature":1,"top_k":5,"top_p":0.9,"stream":true,"output_config":{"effort":"low"},"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"service_tier":"auto"}"#,
    ),
    (
        Route::InputTokens,
        r#"{"model":"m","input":[{"role":"user","content":"Hi"}],"instructions":"i","conversation":null,"previous_response_id":null,"parallel_tool_calls":true,"reasoning":{"effort":"low"},"text":{"verbosity":"low"},"tool_choice":"auto","tools":[{"type":"function","name":"f","parameters":{}}],"truncation":"auto","personality":"friendly"}"#,
    ),
    // Codex's remote compaction, shape read in its source.
    (
        Route::Compact,
        r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"shell","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"ok"}],"instructions":"i","tools":[{"type":"function","name":"shell","parameters":{}}],"parallel_tool_calls":true,"reasoning":{"effort":"low"},"service_tier":"auto","prompt_cache_key":"k","text":{"verbosity":"low"}}"#,
    ),
    (
        Route::CountTokens,
        r#"{"model":"m","system":"s","messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"see http://e"},"title":"a: b","context":"http://e","citations":{"enabled":true}}]}],"tools":[],"thinking":{"type":"disabled"}}"#,
    ),
    (
        Route::Embeddings,
        r#"{"model":"m","input":["a",""],"dimensions":8,"encoding_format":"base64","user":"u"}"#,
    ),
    (Route::Embeddings, r#"{"model":"m","input":[[1,2,3]]}"#),
    (
        Route::Embeddings,
        " \r\n\t{ \"model\" : \"m\" , \"input\" : \"\\ud83d\\ude00 \u{1f600} \\/ \\u0000\" } \n",
    ),
];

#[test]
fn what_real_clients_send() {
    for (route, body) in ACCEPTED {
        passes(route, body, &policy());
    }
}

/// Names in LiteLLM 1.106.2's `all_litellm_params` that are also fields of ours: only those that are
/// overwritten.
#[test]
fn no_field_is_a_control_field_of_litellm() {
    let controls: Vec<&str> =
        include_str!("../../../../../../platform/core/tests/litellm-parameters.txt").lines().collect();
    for (route, control) in
        oracle::ROUTES.iter().flat_map(|route| controls.iter().map(|control| (*route, *control)))
    {
        let body = format!(r#"{{"model":"m","{control}":1}}"#);
        // Not even where an operator has let it through.
        let policy = Policy { extra_fields: [control.into()].into(), ..Policy::default() };
        let passed = check(route, body.as_bytes(), &policy);
        let overwritten = control == "metadata"
            && matches!(route, Route::ChatCompletions | Route::Responses | Route::Messages);
        assert_eq!(passed.is_ok(), overwritten, "{route:?} {control}");
    }
}

#[test]
fn operators_can_add_fields_but_not_undo_rules() {
    let policy = Policy {
        extra_fields: ["chat_template_kwargs".into(), "previous_response_id".into()].into(),
        ..policy()
    };
    passes(Route::ChatCompletions, r#"{"model":"m","chat_template_kwargs":{"a":1}}"#, &policy);
    let body = r#"{"model":"m","previous_response_id":"r"}"#;
    assert_eq!(word(&verdict(Route::Responses, body, &policy).unwrap_err()), "stored_responses");
    let body = r#"{"model":"m","chat_template_kwargs":1,"chat_template_kwargs":2}"#;
    assert_eq!(word(&verdict(Route::ChatCompletions, body, &policy).unwrap_err()), "duplicate");
}

/// OpenClaw sorts a 400 by the words and digits in its message; see `rejection`.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn messages_are_harmless_and_helpful() {
    let words = [
        "expired",
        "denied",
        "budget",
        "spend limit",
        "upstream error",
        "rate",
        "limit",
        "quota",
        "billing",
        "credit",
        "payment",
        "unauthorized",
        "forbidden",
        "authentication",
        "api key",
        "api_key",
        "timeout",
        "timed out",
        "deadline",
        "overloaded",
        "context",
        "too long",
        "too large",
        "token",
        "402",
        "429",
    ];
    let bodies = [
        "",
        "{",
        "[]",
        r#"{"model":"m","n":01}"#,
        r#"{"model":"m","n":1e999}"#,
        r#"{"model":"m","stop":"\x"}"#,
        r#"{"n":1}"#,
        r#"{"model":""}"#,
        r#"{"model":"zz"}"#,
        r#"{"model":"m","zz":1}"#,
        r#"{"model":"m","model":"m"}"#,
        r#"{"model":"m","stream":1}"#,
        r#"{"model":"m","input":[{"id":"a"}]}"#,
        r#"{"model":"m","input":[{"type":"item_reference","id":"a"}]}"#,
        r#"{"model":"m","previous_response_id":"a"}"#,
        r#"{"model":"m","conversation":"a"}"#,
        r#"{"model":"m","background":1}"#,
        r#"{"model":"m","prompt":1}"#,
        r#"{"model":"m","tools":[{"type":"mcp"}]}"#,
        r#"{"model":"m","tools":[{"type":"web_x"}]}"#,
        r#"{"model":"m","tools":[{"type":"x"}]}"#,
        r#"{"model":"m","input":[{"file_id":"a"}]}"#,
        r#"{"model":"m","input":[{"type":"zz"}]}"#,
        r#"{"model":"m","input":[{"file_url":"a"}]}"#,
    ];
    for body in bodies {
        let message = verdict(Route::Responses, body, &policy()).expect_err(body).to_string();
        assert!(message.is_ascii() && message.len() < 300, "{message}");
        for word in words {
            assert!(!message.to_lowercase().contains(word), "{word}: {message}");
        }
    }
    let many = r#"{"model":"zz","a":1,"b":1,"background":1,"tools":[{"type":"mcp"},{"type":"x"}],"input":[{"id":"a"},{"type":"zz"}],"c":1}"#;
    let message = check(Route::Responses, many.as_bytes(), &policy()).expect_err(many).to_string();
    for word in words {
        assert!(!message.to_lowercase().contains(word), "{word}: {message}");
    }
}

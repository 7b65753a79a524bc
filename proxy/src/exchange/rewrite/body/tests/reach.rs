//! Checks tools that run elsewhere, and data that others have stored. For the rows see `super::assert_rows`.

use super::*;

#[test]
fn premium_service_is_granted() {
    let dear = "premium_service";
    let rows = [
        (r#""service_tier":"priority""#, dear, r#""service_tier":"flex""#),
        (r#""service_tier":"Default""#, dear, r#""service_tier":"d\u0065fault""#),
        (r#""service_tier":7"#, "type service_tier", r#""service_tier":null"#),
    ];
    for route in [Route::ChatCompletions, Route::Responses, Route::Messages] {
        assert_rows(route, &rows);
    }
    assert_rows(
        Route::Messages,
        &[
            (r#""speed":"fast""#, dear, r#""speed":"standard""#),
            (r#""inference_geo":"us""#, dear, r#""inference_geo":"global""#),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn tools_that_run_elsewhere() {
    assert_rows(
        Route::ChatCompletions,
        &[
            (
                r#""tools":[{"type":"mcp","server_url":"http://e"}]"#,
                "mcp",
                r#""tools":[{"type":"function"}]"#,
            ),
            (r#""tools":[{"type":"web_search_preview"}]"#, "web_search", r#""tools":[{"type":"custom"}]"#),
            (r#""tools":[{"type":"code_interpreter"}]"#, "server_tools", r#""tools":[]"#),
            (r#""tools":[{"type":"file_search"}]"#, "stored_files", r#""tools":null"#),
            (r#""tools":[{"type":"url","url":"http://e"}]"#, "mcp", r#""tools":[{"type":null}]"#),
            (r#""tools":[{"type":"computer_20250124"}]"#, "server_tools", r#""tools":[{"name":"computer"}]"#),
            (r#""tools":[{"googleSearch":{}}]"#, "server_tools", r#""tools":[{"name":"googleSearch"}]"#),
            (
                r#""tools":[{"type":"function","function":{"name":"a"},"urlContext":{}}]"#,
                "server_tools",
                r#""tools":[{"type":"function","function":{"name":"a","parameters":{"urlContext":{}}}}]"#,
            ),
            (
                r#""tools":[{"type":"function","function":{"name":"a","type":"web_search"}}]"#,
                "web_search",
                r#""tools":[{"type":"function","function":{"name":"web_search"}}]"#,
            ),
            (
                r#""tools":[{"type":"function","function":{"name":"litellm_web_search"}}]"#,
                "server_tools",
                r#""tools":[{"type":"function","function":{"name":"my_litellm_web_search"}}]"#,
            ),
            (r#""tools":[{"type":"Function"}]"#, "server_tools", r#""tools":[{"type":"f\u0075nction"}]"#),
            (r#""tools":{"type":"mcp"}"#, "type tools", r#""tools":[{}]"#),
            (r#""tools":[[{"type":"mcp"}]]"#, "type tools", r#""tools":[null]"#),
            (r#""tools":["web_search"]"#, "type tools", r#""tools":[]"#),
            (
                r#""functions":[{"type":"mcp"}]"#,
                "mcp",
                r#""functions":[{"name":"a","parameters":{"type":"mcp"}}]"#,
            ),
            (r#""tool_choice":{"type":"mcp","server_label":"a"}"#, "mcp", r#""tool_choice":"required""#),
            (
                r#""tool_choice":{"type":"web_search_preview"}"#,
                "web_search",
                r#""tool_choice":{"type":"auto"}"#,
            ),
            (
                r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"mcp"}]}}"#,
                "mcp",
                r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}}]}}"#,
            ),
            (r#""web_search_options":{}"#, "web_search", r#""web_search_options":null"#),
        ],
    );
    assert_rows(
        Route::Messages,
        &[
            (
                r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#,
                "web_search",
                r#""tools":[{"name":"web_search","input_schema":{"type":"object"}}]"#,
            ),
            (
                r#""tools":[{"type":"web_fetch_20250910"}]"#,
                "web_search",
                r#""tools":[{"type":"custom","name":"a"}]"#,
            ),
            (r#""tools":[{"type":"code_execution_20250825"}]"#, "server_tools", r#""tools":[]"#),
            (r#""tools":[{"type":"mcp_toolset"}]"#, "mcp", r#""tools":[]"#),
            (r#""mcp_servers":[{"type":"url","url":"http://e"}]"#, "mcp", r#""mcp_servers":null"#),
            (r#""container":"c_1""#, "server_tools", r#""container":null"#),
            (
                r#""system":[{"type":"image","source":{"type":"url","url":"http://e"}}]"#,
                "media_urls",
                r#""system":[{"type":"text","text":"http://e","cache_control":{"type":"ephemeral"}}]"#,
            ),
            (r#""user":"victim""#, "field user", r#""metadata":{"user_id":"victim"}"#),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn responses_and_what_is_stored() {
    assert_rows(
        Route::Responses,
        &[
            (r#""previous_response_id":"resp_1""#, "stored_responses", r#""previous_response_id":null"#),
            (r#""conversation":{"id":"c"}"#, "stored_responses", r#""conversation":null"#),
            (r#""prompt":{"id":"pmpt_1"}"#, "stored_prompts", r#""prompt":null"#),
            (r#""background":true"#, "background", r#""background":false"#),
            (
                r#""prompt_cache_options":{"comparison_response_id":"r"}"#,
                "stored_responses",
                r#""prompt_cache_options":{"mode":"explicit"}"#,
            ),
            (
                r#""input":[{"type":"item_reference","id":"msg_1"}]"#,
                "stored_responses",
                r#""input":"item_reference""#,
            ),
            (r#""input":[{"id":"msg_1"}]"#, "stored_responses", r#""input":[{"id":"msg_1","role":"user"}]"#),
            (
                r#""input":[{"id":"msg_1","type":null}]"#,
                "stored_responses",
                r#""input":[{"type":"message"}]"#,
            ),
            (r#""input":{"type":"item_reference"}"#, "type input", r#""input":[]"#),
            (
                r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"http://e"}]}]"#,
                "media_urls",
                r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png,A"}]}]"#,
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]"#,
                "stored_files",
                r#""input":[{"role":"user","content":[{"type":"input_image","file_id":null}]}]"#,
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"input_file","file_url":"http://e"}]}]"#,
                "media_urls",
                r#""input":[{"role":"user","content":[{"type":"input_file","file_data":"data:,a"}]}]"#,
            ),
            (
                r#""input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"http://e"}]}]"#,
                "media_urls",
                r#""input":[{"type":"function_call_output","output":"http://e"}]"#,
            ),
            (
                r#""input":[{"type":"computer_call_output","output":{"type":"computer_screenshot"}}]"#,
                "server_tools",
                r#""input":[{"type":"custom_tool_call_output","output":"a"}]"#,
            ),
            (
                r#""input":[{"type":"mcp_approval_response","approve":true}]"#,
                "mcp",
                r#""input":[{"type":"function_call","arguments":"{}"}]"#,
            ),
            (
                r#""input":[{"type":"reasoning"},{"type":"file_search_call"}]"#,
                "stored_files",
                r#""input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}]"#,
            ),
            (
                r#""tools":[{"type":"function","tools":[{"type":"function"}]}]"#,
                "server_tools",
                r#""tools":[{"type":"function","name":"a","parameters":null,"strict":false}]"#,
            ),
            (r#""moderation":{"model":"x"}"#, "field moderation", r#""truncation":"auto""#),
            (r#""max_output_tokens":-5"#, "type max_output_tokens", r#""max_output_tokens":5"#),
        ],
    );
    for (route, field) in [(Route::Completions, "prompt"), (Route::Embeddings, "input")] {
        for (value, good) in
            [(r#"["a",[1,2]]"#, true), (r#""http://e""#, true), (r#"[{"image_url":"x"}]"#, false)]
        {
            let body = format!(r#"{{"model":"m","{field}":{value}}}"#);
            assert_eq!(verdict(route, &body, &policy()).is_ok(), good, "{body}");
        }
    }
}

/// A grant allows its own capability and no other.
#[test]
fn grants_are_narrow() {
    let part =
        r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_url":"http://e"}]}]}"#;
    for capability in Capability::ALL {
        let opened = verdict(Route::Responses, part, &granting(capability)).is_ok();
        assert_eq!(opened, capability == Capability::MediaUrls, "{capability:?}");
    }
    let hosted =
        r#"{"model":"m","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]}"#;
    let fresh = r#"{"model":"m","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}"#;
    let server_tools = granting(Capability::ServerTools);
    assert_eq!(word(&verdict(Route::Responses, hosted, &server_tools).unwrap_err()), "stored_files");
    passes(Route::Responses, fresh, &server_tools);
}

#[test]
fn ungranted_tools_are_refused_everywhere() {
    let granted = Policy { tools: Some(["bash".into(), "read-file".into()].into()), ..policy() };
    let chat = Route::ChatCompletions;
    for (route, bad, name) in [
        (chat, r#""tools":[{"type":"function","function":{"name":"rm"}}]"#, "rm"),
        (
            chat,
            r#""tools":[{"type":"function","function":{"name":"bash"}},{"type":"function","function":{"name":"Bash"}}]"#,
            "Bash",
        ),
        (chat, r#""tools":[{"function":{"name":"bas\u0068 "}}]"#, "bash?"),
        (chat, r#""tools":[{"type":"custom","custom":{"name":"rm"}}]"#, "rm"),
        (chat, r#""tools":[{"name":""}]"#, ""),
        (chat, r#""functions":[{"name":"rm"}]"#, "rm"),
        (
            chat,
            r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"rm"}}]}}"#,
            "rm",
        ),
        (Route::Responses, r#""tools":[{"type":"function","name":"rm"}]"#, "rm"),
        (Route::Responses, r#""tools":[{"type":"custom","name":"rm"}]"#, "rm"),
        (Route::Messages, r#""tools":[{"name":"rm","input_schema":{}}]"#, "rm"),
        (Route::CountTokens, r#""tools":[{"name":"rm"}]"#, "rm"),
    ] {
        let whole = format!(r#"{{"model":"m",{bad}}}"#);
        let rejection = verdict(route, &whole, &granted).expect_err(bad);
        assert_eq!(word(&rejection), format!("tool {name}"), "{bad}");
        // Control: a run that is granted any tool may offer it, and so may one that is granted this very
        // tool.
        passes(route, &whole, &policy());
        if name == "rm" {
            passes(route, &whole.replace("\"rm\"", "\"read-file\""), &granted);
        }
    }
    // What is granted passes spelled as JSON may, and only a tool's name is a tool's name.
    for good in [
        r#""tools":[{"function":{"name":"b\u0061sh"}}],"tool_choice":{"type":"function","function":{"name":"bash"}}"#,
        r#""tools":[{"type":"function","function":{"name":"bash","parameters":{"name":"rm","properties":{"name":{}}}}}]"#,
        r#""tools":null"#,
        r#""messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"rm","arguments":"{}"}}]}]"#,
    ] {
        passes(chat, &format!(r#"{{"model":"m",{good}}}"#), &granted);
    }
    // A tool without a name is not among those granted.
    for (route, bad) in [
        (chat, r#""tools":[{"type":"function"}]"#),
        (chat, r#""tools":[{}]"#),
        (chat, r#""tools":[{"type":"function","function":{"name":null,"description":"d"}}]"#),
        (chat, r#""tools":[{"type":"function","function":null}]"#),
        (chat, r#""functions":[{"description":"d"}]"#),
        (Route::Responses, r#""tools":[{"type":"function","name":null}]"#),
        (Route::Messages, r#""tools":[{"input_schema":{}}]"#),
    ] {
        let whole = format!(r#"{{"model":"m",{bad}}}"#);
        assert_eq!(word(&verdict(route, &whole, &granted).expect_err(bad)), "tool -", "{bad}");
        passes(route, &whole, &policy());
    }
    // A tool that runs elsewhere needs its capability all the same, and one of LiteLLM's own, too.
    for (bad, why) in [
        (r#""tools":[{"type":"web_search_preview","name":"bash"}]"#, "web_search"),
        (r#""tools":[{"name":"litellm_x"}]"#, "server_tools"),
    ] {
        assert_eq!(word(&verdict(chat, &format!(r#"{{"model":"m",{bad}}}"#), &granted).expect_err(bad)), why);
    }
}

#[test]
fn remote_tools_are_granted_by_their_type() {
    let (chat, responses, messages) = (Route::ChatCompletions, Route::Responses, Route::Messages);
    for (route, bad, capability, name, grants) in [
        (responses, r#"{"type":"web_search"}"#, Capability::WebSearch, "web_search", "web_search"),
        (responses, r#"{"type":"mcp","server_label":"x"}"#, Capability::Mcp, "mcp", "mcp"),
        (responses, r#"{"type":"computer","name":"bash"}"#, Capability::ServerTools, "computer", "computer"),
        (
            messages,
            r#"{"type":"web_search_20250305","name":"bash"}"#,
            Capability::WebSearch,
            "web_search_20250305",
            "web_search",
        ),
        (
            messages,
            r#"{"type":"web_search_20250305"}"#,
            Capability::WebSearch,
            "web_search_20250305",
            "web_search_20250305",
        ),
        (chat, r#"{"googleSearch":{}}"#, Capability::ServerTools, "googleSearch", "googleSearch"),
        (
            chat,
            r#"{"function":{"name":"bash"},"urlContext":{}}"#,
            Capability::ServerTools,
            "urlContext",
            "urlContext",
        ),
        (
            chat,
            r#"{"type":"function","function":{"name":"bash","type":"computer"}}"#,
            Capability::ServerTools,
            "computer",
            "computer",
        ),
    ] {
        let with = |tools: &[&str]| Policy {
            tools: Some(tools.iter().map(|&tool| tool.into()).collect()),
            ..granting(capability)
        };
        let whole = format!(r#"{{"model":"m","tools":[{bad}]}}"#);
        let rejection = verdict(route, &whole, &with(&["bash"])).expect_err(bad);
        assert_eq!(word(&rejection), format!("tool {name}"), "{bad}");
        // Controls: a run that has it on its list, and one that has no list.
        passes(route, &whole, &with(&["bash", grants]));
        passes(route, &whole, &granting(capability));
    }
    // One that is on the list does not hide another.
    let two = r#"{"model":"m","tools":[{"urlContext":{},"googleSearch":{}}]}"#;
    let one = |tool: &str| Policy { tools: Some([tool.into()].into()), ..granting(Capability::ServerTools) };
    for (granted, refused) in [("googleSearch", "urlContext"), ("urlContext", "googleSearch")] {
        assert_eq!(word(&verdict(chat, two, &one(granted)).unwrap_err()), format!("tool {refused}"));
    }
    assert_eq!(word(&verdict(chat, two, &one("none")).unwrap_err()), "tool urlContext");
}

#[test]
fn an_empty_list_of_tools_is_one() {
    let chat = Route::ChatCompletions;
    let none = Policy { tools: Some([].into()), ..policy() };
    let bash = r#"{"model":"m","tools":[{"name":"bash"}]}"#;
    assert_eq!(word(&verdict(chat, bash, &none).unwrap_err()), "tool bash");
    passes(chat, r#"{"model":"m","tools":[]}"#, &none);
}

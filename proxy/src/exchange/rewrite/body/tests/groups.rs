//! Checks tools that come in groups or are searched for, as Codex sends them. They reach as far as what is in them.

use super::*;

/// Returns a body of the Responses API in each place where a client may put `tools`.
fn places(tools: &str) -> [String; 5] {
    [
        format!(r#""tools":{tools}"#),
        format!(r#""tools":[{{"type":"namespace","name":"bash","tools":{tools}}}]"#),
        format!(
            r#""tools":[{{"tools":[{{"tools":{tools},"type":"namespace","name":"bash"}}],"name":"bash","type":"namespace"}}]"#
        ),
        format!(r#""input":[{{"type":"additional_tools","role":"developer","tools":{tools}}}]"#),
        format!(
            r#""input":[{{"tools":{tools},"type":"tool_search_output","call_id":"c","execution":"client"}}]"#
        ),
    ]
}

fn whole(part: &str) -> String {
    format!(r#"{{"model":"m",{part}}}"#)
}

#[test]
fn a_group_reaches_as_far_as_its_tools() {
    for part in places(r#"[{"type":"function","name":"a"},{"type":"custom","name":"b"},{"name":"c"}]"#) {
        passes(Route::Responses, &whole(&part), &policy());
    }
    for (tool, why) in [
        (r#"{"type":"mcp","server_url":"http://e"}"#, "mcp"),
        (r#"{"type":"web_search"}"#, "web_search"),
        (r#"{"type":"file_search","vector_store_ids":null}"#, "stored_files"),
        (r#"{"type":"code_interpreter"}"#, "server_tools"),
        (r#"{"type":"image_generation"}"#, "server_tools"),
        (r#"{"type":"namespaces","tools":[]}"#, "server_tools"),
        (r#"{"type":"function","name":"a","tools":[]}"#, "server_tools"),
        (r#"{"type":"function","name":"a","execution":"client"}"#, "server_tools"),
        (r#"{"type":"namespace","name":"a","execution":"client","tools":[]}"#, "server_tools"),
        (r#"{"type":"namespace","name":"a","googleSearch":{},"tools":[]}"#, "server_tools"),
        (r#"{"type":"namespace","name":"a","server_url":"http://e"}"#, "server_tools"),
        (r#"{"tools":[]}"#, "server_tools"),
        (r#"{"type":"tool_search"}"#, "server_tools"),
        (r#"{"type":"tool_search","execution":"server"}"#, "server_tools"),
        (r#"{"type":"tool_search","execution":null}"#, "server_tools"),
        (r#"{"type":"tool_search","execution":["client"]}"#, "server_tools"),
        (r#"{"type":"tool_search","execution":"client","tools":[]}"#, "server_tools"),
        (r#"{"type":"tool_search","execution":"client","urlContext":{}}"#, "server_tools"),
        (r#"{"type":"tool_search_tool_regex_20251119","execution":"client"}"#, "server_tools"),
    ] {
        for part in places(&format!(r#"[{{"type":"function","name":"a"}},{tool}]"#)) {
            let rejection = verdict(Route::Responses, &whole(&part), &policy()).expect_err(&part);
            assert_eq!(word(&rejection), why, "{part}");
            // Control: the grant.
            let Reason::NotGranted { capability, .. } = rejection.reason else { panic!("{rejection}") };
            passes(Route::Responses, &whole(&part), &granting(capability));
        }
    }
}

#[test]
fn lists_of_tools_in_groups_are_lists() {
    for (tools, why) in [(r#"{"type":"mcp"}"#, "type tools"), (r#"[["mcp"]]"#, "type tools"), ("null", "")] {
        for part in places(tools) {
            let verdict = verdict(Route::Responses, &whole(&part), &policy());
            assert_eq!(verdict.as_ref().err().map(word).unwrap_or_default(), why, "{part}");
        }
    }
    let deep = |n: usize| {
        let (open, close) = (r#"{"type":"namespace","name":"a","tools":["#.repeat(n), "]}".repeat(n));
        whole(&format!(r#""tools":[{open}{close}]"#))
    };
    passes(Route::Responses, &deep(62), &policy());
    assert_eq!(word(&verdict(Route::Responses, &deep(63), &policy()).unwrap_err()), "syntax");
}

#[test]
fn tools_in_groups_are_granted_by_name() {
    let granted =
        |tools: &[&str]| Policy { tools: Some(tools.iter().map(|&tool| tool.into()).collect()), ..policy() };
    let (some, more) = (granted(&["bash"]), granted(&["bash", "rm"]));
    for part in places(r#"[{"type":"function","name":"bash"},{"type":"custom","name":"rm"}]"#) {
        assert_eq!(word(&verdict(Route::Responses, &whole(&part), &some).expect_err(&part)), "tool rm");
        passes(Route::Responses, &whole(&part), &more);
    }
    for part in places(r#"[{"type":"function"}]"#) {
        assert_eq!(word(&verdict(Route::Responses, &whole(&part), &some).expect_err(&part)), "tool -");
    }
    // LiteLLM makes a function of a namespace without a list.
    for (namespace, why) in [
        (r#"{"type":"namespace","name":"rm","tools":[{"name":"bash"}]}"#, "tool rm"),
        (r#"{"type":"namespace","name":"rm"}"#, "tool rm"),
        (r#"{"type":"namespace","tools":[{"name":"bash"}]}"#, "tool -"),
    ] {
        let body = whole(&format!(r#""tools":[{namespace}]"#));
        assert_eq!(word(&verdict(Route::Responses, &body, &some).unwrap_err()), why, "{namespace}");
        passes(Route::Responses, &body, &policy());
    }
    let search = whole(r#""tools":[{"type":"tool_search","execution":"client","name":"bash"}]"#);
    assert_eq!(word(&verdict(Route::Responses, &search, &some).unwrap_err()), "tool tool_search");
    passes(Route::Responses, &search, &granted(&["bash", "tool_search"]));
}

#[test]
fn tools_that_a_client_found_pass_as_items() {
    assert_rows(
        Route::Responses,
        &[
            (
                r#""input":[{"type":"tool_search_call","arguments":{}}]"#,
                "server_tools",
                r#""input":[{"type":"tool_search_call","execution":"client","arguments":{"type":"mcp"}}]"#,
            ),
            (
                r#""input":[{"execution":"server","type":"tool_search_output","tools":[]}]"#,
                "server_tools",
                r#""input":[{"execution":"client","type":"tool_search_output","tools":[]}]"#,
            ),
            (
                r#""input":[{"type":"tool_search_call","execution":{"a":"client"}}]"#,
                "server_tools",
                r#""input":[{"type":"message","role":"user","execution":{"a":"client"}}]"#,
            ),
            (
                r#""input":[{"type":"tool_search_x","execution":"client"}]"#,
                "server_tools",
                r#""input":[{"type":"reasoning","execution":"client"}]"#,
            ),
            (
                r#""input":[{"type":"additional_tools_x","tools":[]}]"#,
                "server_tools",
                r#""input":[{"type":"additional_tools","tools":[]}]"#,
            ),
            // They are items, and no parts of content.
            (
                r#""input":[{"role":"user","content":[{"type":"additional_tools","tools":[]}]}]"#,
                "server_tools",
                r#""input":[{"role":"user","content":[{"type":"input_text","tools":[]}]}]"#,
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"tool_search_call","execution":"client"}]}]"#,
                "server_tools",
                r#""input":[{"role":"user","content":[{"type":"input_text","execution":"client"}]}]"#,
            ),
            (r#""client_metadatas":{}"#, "field client_metadatas", r#""client_metadata":{"session_id":"s"}"#),
        ],
    );
    let chat = r#"{"model":"m","messages":[{"type":"additional_tools","role":"developer","tools":[]}]}"#;
    assert_eq!(word(&verdict(Route::ChatCompletions, chat, &policy()).unwrap_err()), "server_tools");
    let chat = r#"{"model":"m","client_metadata":{}}"#;
    assert_eq!(word(&verdict(Route::ChatCompletions, chat, &policy()).unwrap_err()), "field client_metadata");
}

/// Codex's notes pass on items alone, and an item that changes the reasoning is not content.
#[test]
fn codex_notes_pass_on_items_alone() {
    let note = r#""a_metadata_passthrough":[{"provenance":{"type":"harness"}}]"#;
    let user = r#""role":"user","content":"#;
    let on_part = format!(r#""input":[{{{user}[{{"type":"input_text","text":"t",{note}}}]}}]"#);
    let on_item = format!(r#""input":[{{{user}"t",{note}}}]"#);
    let other_name = on_item.replace("passthrough", "passthroughs");
    let in_a_part = format!(r#""input":[{{{user}[{{"type":"configuration_update"}}]}}]"#);
    let is_item = r#""input":[{"type":"configuration_update","reasoning":{"effort":"high"}}]"#;
    assert_rows(
        Route::Responses,
        &[
            (&on_part, "unlisted_content", &on_item),
            (&other_name, "unlisted_content", &on_item),
            (&in_a_part, "unlisted_content", is_item),
            (
                r#""input":[{"type":"configuration_update","tools":[{"type":"mcp"}]}]"#,
                "mcp",
                r#""input":[{"type":"configuration_update","tools":[{"type":"function","name":"f"}]}]"#,
            ),
        ],
    );
    let chat = format!(r#"{{"model":"m","messages":[{{{user}"t",{note}}}]}}"#);
    assert_eq!(word(&verdict(Route::ChatCompletions, &chat, &policy()).unwrap_err()), "unlisted_content");
}

/// LiteLLM drops a tool's type on the way to Gemini, so the member beside it decides.
#[test]
fn a_granted_type_hides_no_gemini_tool() {
    for (kind, capability) in [
        ("web_x", Capability::WebSearch),
        ("file_search", Capability::StoredFiles),
        ("mcp_x", Capability::Mcp),
    ] {
        for member in ["codeExecution", "code_execution", "googleSearch", "url_context", "computerUse"] {
            let body = whole(&format!(r#""tools":[{{"type":"{kind}","{member}":{{}}}}]"#));
            let rejection = verdict(Route::ChatCompletions, &body, &granting(capability)).expect_err(&body);
            assert_eq!(word(&rejection), "server_tools", "{body}");
            // Controls: both grants, and the type without the member.
            let granted = Capabilities::from_iter([capability, Capability::ServerTools]);
            passes(Route::ChatCompletions, &body, &Policy { granted, ..policy() });
        }
        let body = whole(&format!(r#""tools":[{{"type":"{kind}","search_context_size":"low"}}]"#));
        passes(Route::ChatCompletions, &body, &granting(capability));
    }
}

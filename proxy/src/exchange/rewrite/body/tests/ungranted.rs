//! Checks that hosted tools are left out whole where the grant says so, and that nothing else comes in by that way.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn dropping() -> Policy {
    Policy { ungranted_tools: UngrantedTools::Drop, ..policy() }
}

/// Returns the body that is sent, and the types of the tools that are left out.
fn sent(route: Route, body: &str, policy: &Policy) -> Result<(String, Vec<String>), Rejection> {
    let bytes = Bytes::copy_from_slice(body.as_bytes());
    let checked = check(route, &bytes, policy).map_err(|rejections| rejections.first)?;
    let text = String::from_utf8(checked.edits.pieces(&bytes).concat()).unwrap();
    Ok((text, checked.tools_left_out.iter().map(plain).collect()))
}

fn whole(part: &str) -> String {
    format!(r#"{{"model":"m",{part}}}"#)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn hosted_tools_leave_whole_entries() {
    let rows = [
        // Codex and Cline, shapes measured.
        (
            Route::Responses,
            r#""tools":[{"type":"function","name":"shell"},{"type":"web_search","external_web_access":false}],"tool_choice":"auto","parallel_tool_calls":true,"include":["reasoning.encrypted_content"]"#,
            r#""tools":[{"type":"function","name":"shell"}],"tool_choice":"auto","parallel_tool_calls":true,"include":["reasoning.encrypted_content"]"#,
        ),
        (
            Route::Responses,
            r#""tools":[{"type":"web_search"}, {"type":"image_generation"} ,{"name":"a","type":"function"}]"#,
            r#""tools":[{"name":"a","type":"function"}]"#,
        ),
        (
            Route::Responses,
            r#""tools":[ {"name":"a"} , {"type":"mcp","server_url":"http://e"} , {"name":"b"}]"#,
            r#""tools":[ {"name":"a"} , {"name":"b"}]"#,
        ),
        // Every tool, with all that is about tools.
        (
            Route::Responses,
            r#""parallel_tool_calls":false,"tools":[{"type":"web_search"}],"input":"q","tool_choice":"required""#,
            r#""input":"q""#,
        ),
        (Route::Responses, r#""tools":[null,{"type":"mcp"}]"#, ""),
        // Every tool of the list, but not those of the conversation.
        (
            Route::Responses,
            r#""input":[{"type":"additional_tools","tools":[{"type":"function","name":"a"}]}],"tools":[{"type":"web_search"}],"tool_choice":"required","parallel_tool_calls":false"#,
            r#""input":[{"type":"additional_tools","tools":[{"type":"function","name":"a"}]}],"tool_choice":"required","parallel_tool_calls":false"#,
        ),
        (
            Route::Responses,
            r#""tool_choice":{"type":"web_search"},"tools":[{"type":"web_search"}],"input":[{"type":"additional_tools","tools":[{"name":"a"}]}]"#,
            r#""tool_choice":"auto","input":[{"type":"additional_tools","tools":[{"name":"a"}]}]"#,
        ),
        (
            Route::Responses,
            r#""input":[{"type":"additional_tools","tools":[]}],"tools":[{"type":"mcp","tools":[{"name":"a"}]}],"tool_choice":"required""#,
            r#""input":[{"type":"additional_tools","tools":[]}]"#,
        ),
        // `include` goes with its tool, before or behind it.
        (
            Route::Responses,
            r#""include":["web_search_call.action.sources","reasoning.encrypted_content"],"tools":[{"name":"a"},{"type":"web_search_preview"}]"#,
            r#""include":["reasoning.encrypted_content"],"tools":[{"name":"a"}]"#,
        ),
        (
            Route::Responses,
            r#""tools":[{"type":"computer_use_preview"},{"name":"a"}],"include":["computer_call_output.output.image_url"]"#,
            r#""tools":[{"name":"a"}]"#,
        ),
        (
            Route::Responses,
            r#""tools":[{"type":"mcp"},{"name":"a"}],"include":["web_search_call.results",7]"#,
            r#""tools":[{"name":"a"}],"include":["web_search_call.results",7]"#,
        ),
        // So does a choice that names it.
        (
            Route::Responses,
            r#""tool_choice":{"type":"web_search"},"tools":[{"name":"a"},{"type":"web_search"}]"#,
            r#""tool_choice":"auto","tools":[{"name":"a"}]"#,
        ),
        (
            Route::Responses,
            r#""tools":[{"name":"a"},{"type":"mcp"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp"},{"type":"function","name":"a"}]}"#,
            r#""tools":[{"name":"a"}],"tool_choice":"auto""#,
        ),
        (
            Route::Responses,
            r#""tools":[{"name":"a"},{"type":"mcp"}],"tool_choice":{"type":"function","name":"a"}"#,
            r#""tools":[{"name":"a"}],"tool_choice":{"type":"function","name":"a"}"#,
        ),
        (
            Route::ChatCompletions,
            r#""tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"function","function":{"name":"a"}}],"tool_choice":{"type":"function","function":{"name":"web_search"}}"#,
            r#""tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"auto""#,
        ),
        (
            Route::ChatCompletions,
            r#""tools":[{"type":"code_interpreter"},{"name":"a"}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"code_interpreter"}]}}"#,
            r#""tools":[{"name":"a"}],"tool_choice":"auto""#,
        ),
        (
            Route::Messages,
            r#""tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8},{"name":"Bash","input_schema":{}}],"tool_choice":{"type":"tool","name":"web_search"}"#,
            r#""tools":[{"name":"Bash","input_schema":{}}],"tool_choice":{"type":"auto"}"#,
        ),
        (
            Route::CountTokens,
            r#""tools":[{"name":"Bash"},{"type":"web_fetch_20250910","name":"web_fetch"}],"tool_choice":{"type":"any"}"#,
            r#""tools":[{"name":"Bash"}],"tool_choice":{"type":"any"}"#,
        ),
    ];
    for (route, came, left) in rows {
        let (text, left_out) =
            sent(route, &whole(came), &dropping()).unwrap_or_else(|rejection| panic!("{came}\n{rejection}"));
        let text = text.replace(r#""store":false,"#, "");
        let expected = if left.is_empty() { r#"{"model":"m"}"#.to_owned() } else { whole(left) };
        assert_eq!(text, expected, "{came}");
        assert!(!left_out.is_empty(), "{came}");
        // Controls: the same body without the setting, and with the capabilities.
        assert!(verdict(route, &whole(came), &policy()).is_err(), "{came}");
        let granted = Policy { granted: Capability::ALL.into_iter().collect(), ..dropping() };
        assert!(sent(route, &whole(came), &granted).unwrap().1.is_empty(), "{came}");
    }
}

/// An agent could hide a tool behind one that is left out.
#[test]
fn nothing_else_is_let_through() {
    let named = |names: &[&str]| Policy {
        tools: Some(names.iter().map(|&name| name.into()).collect()),
        ..dropping()
    };
    let any = dropping();
    let some = named(&["bash", "web_search"]);
    let (chat, responses, messages) = (Route::ChatCompletions, Route::Responses, Route::Messages);
    let hosted = r#"{"type":"web_search","name":"bash"}"#;
    for (route, policy, part, why) in [
        // Tools that LiteLLM would take for others than their type says.
        (chat, &any, r#""tools":[{"googleSearch":{}}]"#, "server_tools"),
        (
            chat,
            &any,
            r#""tools":[{"type":"function","function":{"name":"bash"},"urlContext":{}}]"#,
            "server_tools",
        ),
        (chat, &any, r#""tools":[{"type":null,"codeExecution":{}}]"#, "server_tools"),
        (
            chat,
            &any,
            r#""tools":[{"type":"function","function":{"name":"bash","type":"web_search"}}]"#,
            "web_search",
        ),
        (chat, &any, r#""tools":[{"name":"litellm_web_search"}]"#, "server_tools"),
        (chat, &any, r#""tools":[{"type":"function","server_url":"http://e"}]"#, "server_tools"),
        // Tools in other places.
        (chat, &any, r#""functions":[{"type":"mcp"}]"#, "mcp"),
        (chat, &any, r#""web_search_options":{}"#, "web_search"),
        (responses, &any, r#""tools":[{"type":"namespace","name":"a","tools":[{"type":"mcp"}]}]"#, "mcp"),
        (responses, &any, r#""input":[{"type":"additional_tools","tools":[{"type":"mcp"}]}]"#, "mcp"),
        (messages, &any, r#""tools":[{"type":"mcp_toolset"}],"mcp_servers":[{"type":"url"}]"#, "mcp"),
        // A choice of a tool that no list has.
        (responses, &any, r#""tool_choice":{"type":"mcp","server_label":"a"}"#, "mcp"),
        (
            responses,
            &any,
            r#""tools":[{"type":"web_search"},{"name":"a"}],"tool_choice":{"type":"mcp"}"#,
            "mcp",
        ),
        // Functions that the run may not offer, beside a tool that is left out.
        (chat, &some, &format!(r#""tools":[{hosted},{{"name":"rm"}}]"#), "tool rm"),
        (responses, &some, &format!(r#""tools":[{hosted},{{"type":"function"}}]"#), "tool -"),
        (
            responses,
            &some,
            &format!(
                r#""tools":[{hosted},{{"name":"bash"}}],"tool_choice":{{"type":"allowed_tools","tools":[{{"type":"web_search"}},{{"name":"rm"}}]}}"#
            ),
            "tool rm",
        ),
        // Documents that two readers could read differently, in a tool that is left out.
        (chat, &any, r#""tools":[{"type":"mcp","type":"function"}]"#, "duplicate"),
        (chat, &any, r#""tools":[{"type":"mcp","server_url":"\x"}]"#, "syntax"),
        (chat, &any, r#""tools":[[{"type":"mcp"}]]"#, "type tools"),
        (chat, &any, r#""tools":{"type":"mcp"}"#, "type tools"),
    ] {
        let rejection = sent(route, &whole(part), policy).expect_err(part);
        assert_eq!(word(&rejection), why, "{part}");
    }
    // Control: the hosted tool alone is left out, whatever its name.
    let body = whole(&format!(r#""tools":[{hosted},{{"name":"bash"}},{{"type":"web_search","name":"rm"}}]"#));
    assert_eq!(sent(chat, &body, &some).unwrap().0, whole(r#""tools":[{"name":"bash"}]"#));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A body that is sent would itself pass where tools are refused.
    #[test]
    fn what_is_left_is_a_body_that_passes(
        tools in vec(select(vec![r#"{"type":"mcp"}"#, r#" {"type":"web_search"} "#, r#"{"name":"a"}"#, "null", r#"{"type":"function","name":"b"}"#, r#"{"type":"computer","name":"c"}"#]), 0..6),
        include in vec(select(vec![r#""web_search_call.results""#, r#""mcp_call.x""#, r#" "reasoning.encrypted_content""#, "null", r#""_call""#]), 0..4),
        choice in select(vec!["null", r#""required""#, r#"{"type":"mcp"}"#, r#"{"type":"function","name":"a"}"#, r#"{"type":"tool","name":"c"}"#]),
        succession in any::<u64>(),
        route in select(vec![Route::ChatCompletions, Route::Responses, Route::Messages]),
    ) {
        let mut members = vec![
            r#""model":"m""#.to_owned(),
            format!(r#" "tools":[{}]"#, tools.join(",")),
            format!(r#""tool_choice":{choice}"#),
            r#""metadata":{"a":1}"#.to_owned(),
        ];
        if route == Route::Responses {
            members.push(format!(r#""include": [{}]"#, include.join(",")));
        }
        if route != Route::Messages {
            members.push(r#""parallel_tool_calls":true "#.to_owned());
        }
        members.sort_by_key(|member| succession.wrapping_mul(member.len() as u64 * 2 + 1) % 97);
        let body = format!("{{{}}}", members.join(","));
        if let Ok((text, left_out)) = sent(route, &body, &dropping()) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{} {}", body, text);
            prop_assert!(verdict(route, &text, &policy()).is_ok(), "{} {}", body, text);
            let hosted = tools.iter().filter(|tool| tool.contains("mcp") || tool.contains("web_search") || tool.contains("computer"));
            prop_assert_eq!(left_out.len(), hosted.count(), "{}", body);
        }
    }
}

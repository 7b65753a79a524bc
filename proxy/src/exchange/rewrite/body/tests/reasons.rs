//! Checks that a refusal names every reason that a client can cure, and stays short.

use super::*;

fn reasons(route: Route, body: &str, policy: &Policy) -> (String, Vec<String>) {
    let rejections = check(route, body.as_bytes(), policy).expect_err(body);
    let all = std::iter::once(&rejections.first).chain(&rejections.others).map(word).collect();
    (rejections.to_string(), all)
}

#[test]
fn all_reasons_are_named_in_their_sequence() {
    let codex = r#"{"model":"zz","input":[{"type":"item_reference","id":"a"}],"tools":[{"type":"web_search"},{"type":"image_generation"}],"previous_response_id":"r","client_meta":1,"background":true}"#;
    let (message, all) = reasons(Route::Responses, codex, &policy());
    let expected = [
        "model",
        "stored_responses",
        "web_search",
        "server_tools",
        "stored_responses",
        "field client_meta",
        "background",
    ];
    assert_eq!(all, expected);
    for cure in [
        "choose one that GET /v1/models lists",
        "in \"input\": \"item_reference\" is not granted",
        "providerOptions.openai.store = false",
        "send the history as input",
        "Also \"client_meta\" is not a field",
        "Also \"background\" is not granted",
    ] {
        assert!(message.contains(cure), "{cure}: {message}");
    }
    let (message, _) = reasons(Route::Responses, r#"{"model":"m","input":"a","tools":7}"#, &policy());
    assert!(message.starts_with("\"tools\" must be"), "{message}");
}

#[test]
fn a_reason_is_named_once_and_ends_never_hide_it() {
    let parts = r#"{"type":"image_url","image_url":"http://e"},"#.repeat(200);
    let body = format!(r#"{{"model":"m","messages":[{{"content":[{parts}0]}}],"n":1,"n":2}}"#);
    let (message, all) = reasons(Route::ChatCompletions, &body, &policy());
    assert_eq!(all, ["media_urls", "duplicate"], "{message}");
}

/// A refused body costs no more than one that passes, and its message is bounded.
#[test]
fn reasons_and_faults_are_bounded() {
    let fields: String = (0..1000).map(|at| format!(r#","a{at}":0"#)).collect();
    let (message, all) = reasons(Route::ChatCompletions, &format!(r#"{{"model":"m"{fields}}}"#), &policy());
    assert_eq!(all.len(), 8);
    assert!(message.ends_with("There may be more") && message.len() < 2500, "{message}");
    // Names that look the same in a message are still counted.
    let fields: String =
        (0..100_000).map(|at| format!(r#","{}":0"#, "é".repeat(64) + &at.to_string())).collect();
    let (_, all) = reasons(Route::ChatCompletions, &format!(r#"{{"model":"m"{fields}}}"#), &policy());
    assert_eq!(all.len(), 1);
}

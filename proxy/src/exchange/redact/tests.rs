//! Tests redaction by tables of texts, documents and events, with what has to stay beside each.

use super::*;
use crate::raw_nest::raw_nest;

#[test]
fn upstream_details_are_redacted() {
    let hash = "1a00c3d2".repeat(8);
    let cases = [
        (
            "Budget exceeded! Key=run-r9 (sk-...Mm3g) cost: 6.89e-05",
            "Budget exceeded! Key=run-r9 ([key]) cost: 6.89e-05",
        ),
        ("Received API Key = sk-abcdef123, try again", "Received API Key = [key], try again"),
        (&format!("for api_key: {hash}. Limit type: requests"), "for api_key: [hash]. Limit type: requests"),
        ("cannot connect to host litellm:4000 ssl:default", "cannot connect to host [address] ssl:default"),
        ("http://127.0.0.1:18080/v1/chat/completions failed", "[url] failed"),
        ("to localhost/10.0.0.5:4000 or /10.0.0.6:80", "to [address] or [address]"),
        ("from 10.1.2.3:443, then fe80::1.", "from [address], then [address]."),
        ("the key master-secret of gw.internal", "the key [upstream] of [upstream]"),
        // Controls: what an agent needs to read.
        (
            "resets at 2026-11-20 18:32:50 UTC, model gpt-4o-2024-08-06",
            "resets at 2026-11-20 18:32:50 UTC, model gpt-4o-2024-08-06",
        ),
        ("{\"error\":{\"code\":\"400\",\"param\":null}}", "{\"error\":{\"code\":\"400\",\"param\":null}}"),
        ("messages.0.content: Field required", "messages.0.content: Field required"),
    ];
    for (text, expected) in cases {
        let known = ["master-secret", "gw.internal"].map(str::to_owned);
        assert_eq!(redact(text, &known), expected);
    }
}

fn known() -> Vec<String> {
    ["master-secret", "gw.internal"].map(str::to_owned).to_vec()
}

#[test]
fn words_that_stand_close_to_others_are_found() {
    let hash = "1a00c3d2".repeat(8);
    let cases = [
        (format!("hashed_token:{hash}, key_{hash}"), "[hash], [hash]"),
        ("api_key:sk-abcdef tokens/sk-abcdef".to_owned(), "[key] [key]"),
        (
            r#"{\"message\":\"bad\nsk-abcdef\n10.1.2.3\u000ask-abcdef\"}"#.to_owned(),
            r#"{\"message\":\"bad\n[key]\n[address]\u000a[key]\"}"#,
        ),
        (
            "Team=t-1, team_id: t-1, 'model_id': 't-1', team \"t-1\"".to_owned(),
            "Team=[withheld], team_id: [withheld], 'model_id': '[withheld]', team \"[withheld]\"",
        ),
        (r#"{\"api_base\": \"gw-7\"}"#.to_owned(), r#"{\"api_base\": \"[withheld]\"}"#),
        ("at /usr/lib/python3/x.py or db.internal".to_owned(), "at [file] or [address]"),
        ("so.\nTraceback (most recent call last):\n  File \"x.py\"".to_owned(), "so.\n[trace]"),
        // Characters right before a detail do not hide it.
        ("%20sk-abcdef, *sk-abcdef, _sk-abcdef".to_owned(), "[key], [key], [key]"),
        (r"is\\nsk-abcdef".to_owned(), r"is\\n[key]"),
        (r"at \/litellm:4000\/v1".to_owned(), r"at \/[address]\/v1"),
        (format!("*{hash} %{hash} .{hash}"), "[hash] [hash] [hash]"),
        ("peer:10.1.2.3:4000, *10.1.2.3, user@10.1.2.3".to_owned(), "[address], [address], [address]"),
        ("POST https://user:pw@litellm.svc/v1?key=AIza-1&alt=sse: 404".to_owned(), "POST [url]: 404"),
        // Controls.
        ("risk-free task-1234 of me@example.org".to_owned(), "risk-free task-1234 of me@example.org"),
        (
            "the team is over its task-1234 on the disk-1234".to_owned(),
            "the team is over its task-1234 on the disk-1234",
        ),
        ("model: m, see /v1/messages".to_owned(), "model: m, see /v1/messages"),
    ];
    for (text, expected) in cases {
        assert_eq!(redact(&text, &known()), expected);
    }
}

#[test]
fn documents_keep_members_that_clients_read() {
    let cases = [
        (
            r#"{"error":{"message":"to gw.internal","type":"t","param":null,"code":"400","provider_specific_fields":{"a":1}},"deployment":"d"}"#,
            Some(r#"{"error":{"code":"400","message":"to [upstream]","param":null,"type":"t"}}"#),
        ),
        (
            r#"{"type":"error","error":{"type":"t","message":"\u0073k-abcdef http:\/\/h\/p"},"request_id":"req_1"}"#,
            Some(r#"{"error":{"message":"[key] [url]","type":"t"},"request_id":"req_1","type":"error"}"#),
        ),
        (
            r#"{"detail":[{"loc":["body","sk-abcdef"],"sk-abcdef":1}]}"#,
            Some(r#"{"detail":[{"[key]":1,"loc":["body","[key]"]}]}"#),
        ),
        (r#"{"error":"at 10.1.2.3"}"#, Some(r#"{"error":"at [address]"}"#)),
        (
            r#"{"choices":[{"delta":{"content":"http://e"}}],"error":{"message":"http://e"}}"#,
            Some(r#"{"choices":[{"delta":{"content":"http://e"}}],"error":{"message":"[url]"}}"#),
        ),
        (
            r#"{"type":"response.failed","response":{"output":[{"type":"x","text":"http://e"}],"error":{"message":"http://e","x":1}}}"#,
            Some(
                r#"{"response":{"error":{"message":"[url]"},"output":[{"text":"http://e","type":"x"}]},"type":"response.failed"}"#,
            ),
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"content":"http://e","error":1},"error":{"message":"sk-abcdef","x":1},"detail":"http://e"}]}"#,
            Some(r#"{"choices":[{"delta":{"content":"http://e"},"error":{"message":"[key]"},"index":0}]}"#),
        ),
        (r#"{"choices":["sk-abcdef"]}"#, Some(r#"{"choices":["[key]"]}"#)),
        (r#"{"output":"at 10.1.2.3"}"#, None),
        (
            r#"{"status":"failed","output":[{"type":"x","error":{"message":"sk-abcdef","x":1}}]}"#,
            Some(r#"{"status":"failed"}"#),
        ),
        ("<html>10.1.2.3</html>", None),
        (r#"{"api_base":"x"}"#, None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(document(text.as_bytes(), &known()).as_deref(), expected, "{text}");
    }
}

#[test]
fn events_keep_their_name_and_document() {
    let cases = [
        ("data: {\"error\":\"sk-abcdef\"}\n\n", Some("data: {\"error\":\"[key]\"}\n\n")),
        (
            "event: error\r\ndata:{\"error\":\r\ndata:\"sk-abcdef\"}\r\nid: 10.1.2.3\r\n\r\n",
            Some("event: error\ndata: {\"error\":\"[key]\"}\n\n"),
        ),
        ("event: sk-abcdef\ndata: {\"error\":1}\n: 10.1.2.3\n\n", Some("data: {\"error\":1}\n\n")),
        ("event: gw.internal\ndata: {\"error\":1}\n\n", Some("data: {\"error\":1}\n\n")),
        ("event: error\ndata: sk-abcdef\n\n", None),
        ("data: {\"detail\":\"x\"}\n\n", None),
        ("event: error\ndata: {\"error\":\"sk-abc", None),
    ];
    for (text, expected) in cases {
        assert_eq!(event(text.as_bytes(), &known()).as_deref(), expected, "{text}");
    }
}

#[test]
fn an_error_beyond_its_bounds_is_replaced() {
    let deep = "[".repeat(64) + &"]".repeat(64);
    let many = format!("[{}0]", "0,".repeat(10_000));
    let long = format!("\"{}\"", "x".repeat(64 << 10));
    for detail in [raw_nest(15), deep, many, long, "18446744073709551616".to_owned()] {
        let text = format!(r#"{{"error":"e","detail":{detail}}}"#);
        assert_eq!(document(text.as_bytes(), &[]), None, "{detail:.100}");
        assert_eq!(error(text.as_bytes(), &[]), None, "{detail:.100}");
        assert_eq!(event(format!("data: {text}\n\n").as_bytes(), &[]), None, "{detail:.100}");
    }
}

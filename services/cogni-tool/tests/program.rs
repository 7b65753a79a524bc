//! Tests the program against a scripted gateway: the exit code of each answer, and answers that are none.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, with the place")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    thread::{self, JoinHandle},
};

use serde_json::{Value, json};

/// A gateway that gives one answer to each of its connections, and keeps the requests.
struct ScriptedGateway {
    address: String,
    requests: JoinHandle<Vec<(String, String)>>,
}

impl ScriptedGateway {
    /// Serves one connection for each of `answers`, byte by byte as they are.
    fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answers: Vec<_> = answers.iter().map(|&answer| answer.to_owned()).collect();
        let serve = move || {
            let served = answers.into_iter().map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&stream);
                stream.write_all(answer.as_bytes()).unwrap();
                request
            });
            let requests = served.collect();
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "a request was sent again");
            requests
        };
        Self { address, requests: thread::spawn(serve) }
    }

    /// Returns head and body of each request, after the program has ended.
    fn requests(self) -> Vec<(String, String)> {
        self.requests.join().unwrap()
    }
}

fn read_request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn command(gateway: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogni-tool"));
    command.args(arguments).env_clear().env("COGNI_GATEWAY_URL", gateway).env("RUN_ID", "r1");
    command.stdin(Stdio::null());
    command
}

fn run(gateway: &str, arguments: &[&str]) -> Output {
    command(gateway, arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the error that `output` reports in one line.
fn error(output: &Output) -> Value {
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = str::from_utf8(&output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}

const CALL: [&str; 3] = ["exec", "core__get_current_time", r#"{"zone": "UTC"}"#];

#[test]
fn a_result_is_printed_as_json() {
    let gateway = ScriptedGateway::start(&[&answer(200, r#"{"ok":true,"result":{"now":"then"}}"#)]);
    let output = run(&gateway.address, &CALL);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "{\"now\":\"then\"}\n"));
    assert!(output.stderr.is_empty(), "{output:?}");
    let requests = gateway.requests();
    let (head, body) = &requests[0];
    assert!(head.starts_with("POST /tool/exec HTTP/1.1\r\nhost: 127.0.0.1:"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    let id = body["callId"].as_str().unwrap();
    let expected =
        json!({ "runId": "r1", "callId": id, "tool": "core__get_current_time", "args": { "zone": "UTC" } });
    assert_eq!(body, expected);
    assert_eq!(id.len(), 32);
}

#[test]
fn a_result_is_printed_in_one_line() {
    let result = "{ \"a\" :\r\n [1e400, 18446744073709551617,\n\"\\n\"] }";
    let gateway = ScriptedGateway::start(&[&answer(200, &format!("{{\"ok\":true,\"result\":{result}}}"))]);
    let output = run(&gateway.address, &CALL);
    let expected = "{ \"a\" :   [1e400, 18446744073709551617, \"\\n\"] }\n";
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), expected));
    gateway.requests();
}

#[test]
fn arguments_come_from_standard_input() {
    let gateway = ScriptedGateway::start(&[&answer(200, r#"{"ok":true,"result":null}"#)]);
    let mut command = command(&gateway.address, &["exec", "--call-id", "c1", "a__b", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"text\": \"\\u00e9\"}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "null\n"));
    let body = &gateway.requests()[0].1;
    assert_eq!(body, r#"{"runId":"r1","callId":"c1","tool":"a__b","args":{"text": "\u00e9"}}"#);
}

#[test]
fn each_refusal_has_its_exit_code() {
    for (status, body, exit, code) in [
        (200, r#"{"ok":false,"error":{"code":"tool_failed","message":"m"}}"#, 1, "tool_failed"),
        (200, r#"{"ok":false,"error":{"code":"approval_timeout","message":"m"}}"#, 3, "approval_timeout"),
        (200, r#"{"ok":false,"error":{"code":"call_in_progress","message":"m"}}"#, 4, "call_in_progress"),
        (400, r#"{"ok":false,"error":{"code":"invalid_arguments","message":"m"}}"#, 1, "invalid_arguments"),
        (403, r#"{"ok":false,"error":{"code":"policy_denied","message":"m"}}"#, 3, "policy_denied"),
        (400, r#"{"error":{"code":"policy_denied","message":"m","type":"t"}}"#, 3, "policy_denied"),
        (503, r#"{"ok":false,"error":{"code":"tools_unavailable","message":"m"}}"#, 4, "tools_unavailable"),
        (429, r#"{"error":{"code":"rate_limited","message":"m","type":"t"}}"#, 4, "rate_limited"),
    ] {
        let gateway = ScriptedGateway::start(&[&answer(status, body)]);
        let output = run(&gateway.address, &["exec", "--call-id", "c1", "a__b", "{}"]);
        assert_eq!(output.status.code(), Some(exit), "{status} {body}: {output:?}");
        assert_eq!(error(&output), json!({ "code": code, "message": "m", "callId": "c1" }));
        gateway.requests();
    }
}

#[test]
fn a_call_without_answer_is_not_sent_again() {
    for broken in [
        String::new(),
        "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"ok\":true".to_owned(),
        answer(200, "<html>"),
        answer(200, r#"{"ok":true}"#),
        answer(200, r#"{"ok":false,"result":1}"#),
        answer(500, r#"{"ok":true,"result":1}"#),
        answer(200, &format!(r#"{{"ok":false,"error":{}}}"#, raw_nest(15))),
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_owned(),
        "\u{0}\u{1}\r\n\r\n".to_owned(),
    ] {
        let gateway = ScriptedGateway::start(&[&broken]);
        let output = run(&gateway.address, &["exec", "--call-id", "c1", "a__b", "{}"]);
        assert_eq!(output.status.code(), Some(1), "{broken:?}: {output:?}");
        let error = error(&output);
        assert_eq!(
            (&error["code"], &error["callId"]),
            (&json!("outcome_unknown"), &json!("c1")),
            "{broken:?}"
        );
        assert!(error["message"].as_str().unwrap().contains("--call-id c1"), "{error}");
        assert_eq!(gateway.requests().len(), 1);
    }
}

#[test]
fn a_gateway_that_is_away_is_unavailable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for arguments in [&CALL[..], &["list"]] {
        let output = run(&format!("http://{free}"), arguments);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert_eq!(error(&output)["code"], "gateway_unavailable");
    }
}

#[test]
fn nothing_is_sent_after_a_mistake() {
    let gateway = ScriptedGateway::start(&[]);
    let deep = "[".repeat(100_000);
    for arguments in [
        &["exec", "a__b", "{"][..],
        &["exec", "a__b", &deep],
        &["exec", "a__b", "{} {}"],
        &["exec", "a__b", ""],
        &["exec", "a__b", "-"],
        &["exec", "a b", "{}"],
        &["exec", "a__b"],
        &["frobnicate"],
        &[],
    ] {
        let output = run(&gateway.address, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert_eq!(error(&output)["code"], "usage");
    }
    let output = command(&gateway.address, &CALL).env_remove("RUN_ID").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(gateway.requests(), []);
    let output = run("https://localhost", &CALL);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

const LISTED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"core__get_current_time","description":"The time.\nMore.","inputSchema":{"type":"object"}}]}}"#;

#[test]
fn tools_are_listed_as_text_and_json() {
    let stream = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: message\ndata: {LISTED}\n\n"
    );
    let gateway = ScriptedGateway::start(&[&answer(200, LISTED), &answer(200, LISTED), &stream]);
    let text = run(&gateway.address, &["list"]);
    assert_eq!(stdout(&text), format!("{:<32} The time.\n", "core__get_current_time"));
    for _form in ["json", "event stream"] {
        let listed = run(&gateway.address, &["list", "--json"]);
        let tools: Value = serde_json::from_str(&stdout(&listed)).unwrap();
        let schema = json!({ "type": "object" });
        assert_eq!(
            tools,
            json!([{ "name": "core__get_current_time", "description": "The time.\nMore.", "inputSchema": schema }])
        );
    }
    let (head, body) = gateway.requests().remove(0);
    assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["method"], "tools/list");
}

/// Returns a refusal of the data plane in the form of JSON-RPC.
fn rpc_refusal(code: &str) -> String {
    let error = json!({ "code": -32000, "message": "m", "data": { "code": code } });
    json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string()
}

#[test]
fn a_list_that_does_not_come_has_a_code() {
    for (text, exit, code) in [
        (answer(503, &rpc_refusal("tools_unavailable")), 4, "tools_unavailable"),
        (answer(403, &rpc_refusal("policy_denied")), 3, "policy_denied"),
        (answer(503, r#"{"error":{"code":"draining","message":"m","type":"t"}}"#), 4, "draining"),
        (
            answer(200, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#),
            4,
            "gateway_unavailable",
        ),
        (answer(200, "[]"), 4, "gateway_unavailable"),
        (answer(200, &LISTED.replace("\"The time.\\nMore.\"", &raw_nest(15))), 4, "gateway_unavailable"),
        (String::new(), 4, "gateway_unavailable"),
    ] {
        let gateway = ScriptedGateway::start(&[&text]);
        let output = run(&gateway.address, &["list"]);
        assert_eq!(output.status.code(), Some(exit), "{text}: {output:?}");
        assert_eq!(error(&output)["code"], code, "{text}");
        gateway.requests();
    }
}

#[test]
fn help_shows_examples() {
    let output = run("http://localhost", &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    assert!(
        help.contains("cogni-tool exec core__get_current_time '{}'") && help.contains("3 denied"),
        "{help}"
    );
}

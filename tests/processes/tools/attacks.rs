//! Attacks of an agent on host tools. None reaches the control plane, which the controls do.

use harness::{Agent, Raw, World, grant, shared};
use http::Method;
use platform_core::{host_tools::ToolLimits, limit::ByteSize};
use serde_json::json;

use super::{CLOCK, Tools, call, granted, message, refusal};

const EXEC: &str = "/tool/exec";
const MCP: &str = "/mcp";

/// Returns the text of a call of [`CLOCK`], with a piece replaced.
fn exec_with(piece: &str, other: &str) -> String {
    let text = format!(r#"{{"runId":"r1","callId":"c1","tool":"{CLOCK}","args":{{}}}}"#);
    assert!(text.contains(piece), "{piece}");
    text.replacen(piece, other, 1)
}

/// Returns the text of a message that calls [`CLOCK`], with a piece replaced.
fn mcp_with(piece: &str, other: &str) -> String {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{CLOCK}","arguments":{{}}}}}}"#
    );
    assert!(text.contains(piece), "{piece}");
    text.replacen(piece, other, 1)
}

/// Names that are not the granted one, and look like it.
fn names() -> Vec<String> {
    [
        "Core__get_current_time",
        "CORE__GET_CURRENT_TIME",
        "core__get_current_tim",
        "core__get_current_time_",
        "core__get_current_time.",
        "core_get_current_time",
        "core__get_current_time\\u0000",
        "core__get_current_time\\n",
        " core__get_current_time",
        "core__get_current_time ",
        "core__get_current_t\\u0131me",
        "c\\u043ere__get_current_time",
        "\\uff43ore__get_current_time",
        "core__get_current_time,core__metrics_query",
        "../core__get_current_time",
        "core__get_current_time/../admin",
        "*",
        "",
    ]
    .map(str::to_owned)
    .into()
}

/// Returns attacks by a body: path, body, status, code.
fn bodies() -> Vec<(&'static str, String, u16, &'static str)> {
    let mut rows = Vec::new();
    let tool = format!(r#""{CLOCK}""#);
    for name in names() {
        let well_formed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            && !name.is_empty();
        let (status, code) = if well_formed { (403, "policy_denied") } else { (400, "body_invalid") };
        rows.push((EXEC, exec_with(&tool, &format!("\"{name}\"")), status, code));
        rows.push((MCP, mcp_with(&tool, &format!("\"{name}\"")), status, code));
    }
    for run in ["r2", "r1x", "r", "unattributed"] {
        rows.push((EXEC, exec_with("\"r1\"", &format!("\"{run}\"")), 403, "run_mismatch"));
    }
    for run in ["\"R1\"", "\"r1 \"", "\"r\\u0661\"", "null", "1", "[\"r1\"]", "\"\""] {
        rows.push((EXEC, exec_with("\"r1\"", run), 400, "body_invalid"));
    }
    let invalid_exec = [
        exec_with("\"runId\":\"r1\"", "\"runId\":\"r1\",\"runId\":\"r2\""),
        exec_with("\"runId\":\"r1\"", "\"runId\":\"r1\",\"run\\u0049d\":\"r2\""),
        exec_with("\"args\":{}", "\"args\":{},\"args\":{\"x\":1}"),
        exec_with("\"args\":{}", "\"args\":{},\"tool\":\"admin\""),
        exec_with("\"args\":{}", "\"args\":{},\"account\":\"acct-2\""),
        exec_with("\"args\":{}", "\"args\":{},\"Tool\":\"admin\""),
        exec_with(",\"args\":{}", ""),
        exec_with("\"c1\"", "\"\""),
        exec_with("\"c1\"", "\"a/b\""),
        format!("[{}]", exec_with("\"c1\"", "\"c2\"")),
        format!("{0}{0}", exec_with("\"c1\"", "\"c2\"")),
        format!("\u{feff}{}", exec_with("\"c1\"", "\"c2\"")),
        exec_with("\"args\":{}", &format!("\"args\":{}{}", "[".repeat(100_000), "]".repeat(100_000))),
        String::new(),
        "null".to_owned(),
        "{".to_owned(),
    ];
    rows.extend(invalid_exec.map(|body| (EXEC, body, 400, "body_invalid")));
    let invalid_mcp = [
        format!("[{}]", mcp_with("\"id\":1", "\"id\":2")),
        mcp_with("\"id\":1", "\"id\":1,\"id\":2"),
        mcp_with("\"id\":1,", ""),
        mcp_with("\"id\":1", "\"id\":null"),
        mcp_with("\"id\":1", "\"id\":{\"a\":1}"),
        mcp_with("\"method\":\"tools/call\"", "\"method\":\"tools/list\",\"method\":\"tools/call\""),
        mcp_with("\"method\":\"tools/call\"", "\"method\":\"tools/list\",\"m\\u0065thod\":\"tools/call\""),
        mcp_with("\"arguments\":{}", "\"name\":\"admin\""),
        mcp_with("\"arguments\":{}", "\"n\\u0061me\":\"admin\""),
        mcp_with("\"arguments\":{}", "\"arguments\":{},\"arguments\":{\"x\":1}"),
        mcp_with("\"2.0\"", "\"1.0\""),
        mcp_with("\"2.0\"", "2.0"),
        mcp_with("{\"jsonrpc\"", "{\"tool\":\"x\",\"jsonrpc\""),
        mcp_with(
            "\"arguments\":{}",
            &format!("\"arguments\":{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        ),
        "data: {}\n\n".to_owned(),
    ];
    rows.extend(invalid_mcp.map(|body| (MCP, body, 400, "body_invalid")));
    rows
}

#[tokio::test]
async fn no_body_executes_what_was_not_granted() {
    let tools = Tools::start().await;
    let limits = ToolLimits { calls_per_minute: 1_000_000, ..ToolLimits::default() };
    let run = tools.run_within("r1", limits).await;
    let other = tools.run("r2").await;
    let rows = bodies();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    for (path, body, status, code) in rows {
        let shown: String = body.chars().take(200).collect();
        let answer = run.agent.request(Method::POST, path, body.into()).await.unwrap();
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{path} {shown}");
    }
    assert_eq!(tools.socket.seen().len(), 0);
    // The controls: the same calls as they should be, and the other run's own.
    for (path, body) in [(EXEC, exec_with("\"c1\"", "\"c2\"")), (MCP, mcp_with("\"id\":1", "\"id\":2"))] {
        assert_eq!(run.agent.request(Method::POST, path, body.into()).await.unwrap().status, 200, "{path}");
    }
    assert_eq!(other.agent.post(EXEC, &call("r2", CLOCK)).await.status, 200);
    assert_eq!(tools.socket.seen().len(), 3);
}

#[tokio::test]
async fn large_and_encoded_bodies_are_refused() {
    let tools = Tools::start().await;
    let limits = ToolLimits { request_body: ByteSize(200), ..ToolLimits::default() };
    let run = tools.run_within("r1", limits).await;
    let body = |length: usize| {
        let args = json!({ "x": "y".repeat(length) });
        json!({ "runId": "r1", "callId": "c1", "tool": CLOCK, "args": args })
    };
    assert_eq!(refusal(&run.agent.post(EXEC, &body(200)).await), (413, "body_too_large".to_owned()));
    for encoding in ["gzip", "br", "identity, gzip", "deflate"] {
        let agent = run.agent.clone().with_header("content-encoding", encoding);
        assert_eq!(refusal(&agent.post(EXEC, &call("r1", CLOCK)).await), (400, "body_encoded".to_owned()));
        assert_eq!(refusal(&agent.post(MCP, &message(CLOCK)).await).1, "body_encoded");
    }
    assert_eq!(tools.socket.seen().len(), 0);
    assert_eq!(run.agent.post(EXEC, &body(20)).await.status, 200, "the control");
}

/// Headers by which an agent would say who its call is from, what it may call, or how it ended.
const SPOOFED: [&str; 14] = [
    "x-sluice-tool-protocol",
    "x-sluice-run",
    "x-sluice-attempt",
    "x-sluice-account",
    "x-sluice-call",
    "x-sluice-tools",
    "x-sluice-tool",
    "x-sluice-tool-outcome",
    "x-sluice-tool-connection",
    "X-Sluice-Run",
    "authorization",
    "cookie",
    "x-forwarded-for",
    "mcp-session-id",
];

#[tokio::test]
async fn no_header_of_an_agent_says_whose_a_call_is() {
    let tools = Tools::start().await;
    let limits = ToolLimits { calls_per_minute: 1_000, ..ToolLimits::default() };
    let run = tools.run_within("r1", limits).await;
    let clean = run.agent.post(EXEC, &call("r1", CLOCK)).await;
    assert_eq!(clean.status, 200);
    let mut expected: Vec<_> = names_of(&tools);
    expected.sort_unstable();
    for name in SPOOFED {
        let raw = Raw::post(EXEC, &call("r1", CLOCK)).header(name, "victim").header(name, "r2");
        let answer = raw.ask(&run.agent).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        let mut names = names_of(&tools);
        names.sort_unstable();
        assert_eq!(names, expected, "{name}");
        let seen = tools.socket.seen().pop().unwrap();
        let text = format!("{:?}", seen.headers);
        assert!(!text.contains("victim") && !text.contains("\"r2\""), "{name}: {text}");
        assert_eq!(seen.headers.get_all("x-sluice-run").iter().count(), 1);
    }
}

fn names_of(tools: &Tools) -> Vec<String> {
    let seen = tools.socket.seen().pop().unwrap();
    seen.headers.keys().map(ToString::to_string).collect()
}

/// Requests that a second reader could split, or send elsewhere.
#[tokio::test]
async fn no_framing_smuggles_a_call() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    let body = call("r1", CLOCK);
    for (raw, status) in [
        (Raw::post(EXEC, &body).header("transfer-encoding", "gzip, chunked"), "400"),
        (Raw::post(EXEC, &body).header("content-length", "5"), "400"),
        (Raw::post(EXEC, &body).header("host", "other"), "400"),
        (Raw::post("http://other/tool/exec", &body), "404"),
        (Raw::post("/tool/exec/", &body), "404"),
        (Raw::post("/tool//exec", &body), "404"),
        (Raw::post("/TOOL/EXEC", &body), "404"),
        (Raw::post("/tool/%65xec", &body), "404"),
        (Raw::post("/tool/../tool/exec", &body), "404"),
        (Raw::post("/v1/../mcp", &body), "404"),
        (Raw::post("/mcp/sse", &body), "404"),
        (Raw::post("/slot/0123456789abcdef0123456789abcdef/tool/exec", &body), "404"),
    ] {
        let answer = raw.ask(&run.agent).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert_eq!(tools.socket.seen().len(), 0);
    let control = Raw::post("/tool/exec?runId=r2", &body).ask(&run.agent).await;
    assert!(control.starts_with("HTTP/1.1 200"), "{control}");
    assert_eq!(tools.socket.seen().len(), 1);
}

/// On the listener that runs share, a call is of the run that proves it, and of no other.
#[tokio::test]
async fn a_shared_call_needs_a_proof() {
    let mut world = World::start().await;
    shared::share(&mut world, "gateways").await;
    let socket = harness::ToolSocket::below(&world.path().join("run"));
    let tools = Tools { world, socket };
    let address = shared::register_shared(&tools.world, granted("r1", ToolLimits::default())).await;
    shared::register_shared(&tools.world, granted("r2", ToolLimits::default())).await;
    shared::register_shared(&tools.world, grant("r3", "acct-1")).await;
    let agent = Agent::over_tcp(address).searched();
    for (path, body) in [(EXEC, call("r1", CLOCK)), (MCP, message(CLOCK))] {
        assert_eq!(refusal(&agent.post(path, &body).await), (400, "unattributed".to_owned()), "{path}");
    }
    let of = |run: &str| agent.clone().with_header("x-run-token", &shared::token(run, 0, "new", 60));
    // A gateway would lock its provider for all on 403.
    assert_eq!(refusal(&of("r2").post(EXEC, &call("r1", CLOCK)).await), (400, "run_mismatch".to_owned()));
    assert_eq!(refusal(&of("r3").post(EXEC, &call("r3", CLOCK)).await), (400, "policy_denied".to_owned()));
    assert_eq!(refusal(&of("r3").post(MCP, &message(CLOCK)).await), (400, "policy_denied".to_owned()));
    assert_eq!(tools.socket.seen().len(), 0);
    assert_eq!(of("r1").post(EXEC, &call("r1", CLOCK)).await.status, 200, "the control");
    assert_eq!(of("r2").post(MCP, &message(CLOCK)).await.status, 200, "the control");
    assert_eq!(tools.socket.seen()[1].header("x-sluice-run"), Some("r2"));
}

//! Tests the way of a tool call through the proxy: what the control plane sees, what the agent gets, what is recorded.

use std::{fs, path::Path};

use harness::{Play, eventually, foreign_uid_client::open_to_all_uids};
use http::Method;
use platform_core::{
    control::Usage,
    host_tools::{ToolLimits, ToolOutcome},
    limit::{ByteSize, Millis},
    record::Outcome,
    refusal::Refusal,
};
use serde_json::{Value, json};
use tokio::{net::UnixStream, process::Command};

use super::{CLOCK, Tools, assert_of_tool, call, message, refusal};

/// SHA-256 of `{"zone":"UTC"}`.
const ARGS_SHA256: &str = "025a9d33d6270f819e0a181b9c16bd672a6d9fa3197299f74d1f19a528be7153";

#[tokio::test]
async fn a_call_reaches_the_control_plane_unchanged() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({ "ok": true, "result": { "now": 1 } })));
    let seen = tools.socket.seen().pop().unwrap();
    let record = tools.last(1).await;
    let call_id = record.litellm_call_id.to_string();
    assert_eq!(seen.path, "/tool/exec");
    assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), call("r1", CLOCK));
    for (name, value) in [
        ("x-sluice-tool-protocol", "1"),
        ("x-sluice-run", "r1"),
        ("x-sluice-attempt", "0"),
        ("x-sluice-account", "acct-1"),
        ("x-sluice-call", &call_id),
        ("x-sluice-tools", CLOCK),
        ("x-sluice-tool", CLOCK),
        ("content-type", "application/json"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_of_tool(&record);
    assert_eq!((record.route.word(), record.status, record.outcome), ("tool_exec", 200, Outcome::Complete));
    let tool = record.tool.unwrap();
    assert_eq!((tool.name.as_str(), tool.outcome, tool.connection), (CLOCK, ToolOutcome::Done, None));
    assert_eq!(tool.args_sha256.unwrap().as_str(), ARGS_SHA256);
    assert_eq!(record.response_bytes, answer.body.len() as u64);
}

#[tokio::test]
async fn messages_of_mcp_take_the_same_way() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("mcp-protocol-version", "2025-06-18".to_owned()),
        ("mcp-session-id", "s1".to_owned()),
        ("x-sluice-tool-outcome", "failed".to_owned()),
        ("x-sluice-tool-connection", "gh".to_owned()),
    ];
    let body = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}"#;
    tools.socket.play(Play::Answer(200, headers, body.to_owned()));
    let agent = run.agent.clone().with_header("mcp-protocol-version", "2025-06-18");
    let answer = agent
        .with_header("accept", "application/json, text/event-stream")
        .post("/mcp", &message(CLOCK))
        .await;
    assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, body));
    let mut names: Vec<_> = answer.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "content-type", "date", "mcp-protocol-version"]);
    let seen = tools.socket.seen().pop().unwrap();
    assert_eq!((seen.path.as_str(), seen.header("mcp-protocol-version")), ("/mcp", Some("2025-06-18")));
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    let record = tools.last(1).await;
    assert_of_tool(&record);
    let tool = record.tool.unwrap();
    assert_eq!((tool.outcome, tool.connection.unwrap().as_str()), (ToolOutcome::Failed, "gh"));
    assert_eq!(tool.args_sha256.unwrap().as_str(), ARGS_SHA256);

    tools.socket.play(Play::Answer(202, vec![], String::new()));
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = run.agent.post("/mcp", &note).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0));
    let list = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    assert_eq!(run.agent.post("/mcp", &list).await.status, 200);
    assert_eq!(tools.socket.seen().pop().unwrap().header("x-sluice-tool"), None, "nothing is executed");
    let record = tools.last(3).await;
    assert_of_tool(&record);
    assert_eq!(record.tool, None);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = run.agent.request(method, "/mcp", Vec::new().into()).await.unwrap();
        assert_eq!(refusal(&answer), (405, "method_not_allowed".to_owned()));
        assert_eq!(answer.headers["allow"], "POST");
    }
    assert_of_tool(&tools.last(3).await);
    assert_eq!(tools.socket.seen().len(), 0);
}

/// Model calls go on meanwhile.
#[tokio::test]
async fn tools_come_back_with_the_control_plane() {
    let mut tools = Tools::start().await;
    let run = tools.run("r1").await;
    tools.socket.stop();
    for gone in [false, true] {
        if gone {
            fs::remove_file(tools.socket.path()).unwrap();
        }
        let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
        assert_eq!(refusal(&answer), (503, "tools_unavailable".to_owned()));
        assert_eq!(answer.headers["retry-after"], "1");
        assert_eq!(refusal(&run.agent.post("/mcp", &message(CLOCK)).await).1, "tools_unavailable");
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    tools.socket.listen();
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 200);
    // A control plane of another version, or one that starts, runs nothing.
    for status in [503, 505] {
        tools.socket.play(Play::Answer(status, vec![], String::new()));
        let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
        assert_eq!(refusal(&answer), (503, "tools_unavailable".to_owned()));
    }
    let records = tools.world.records(9).await;
    let outcomes = records.iter().filter_map(|line| Some(line.record.tool.as_ref()?.outcome));
    assert_eq!(outcomes.filter(|outcome| *outcome == ToolOutcome::Denied).count(), 6);
}

/// Another user could have taken the path before the control plane did.
#[tokio::test]
async fn a_listener_of_another_user_gets_nothing() {
    let mut tools = Tools::start().await;
    let run = tools.run("r1").await;
    tools.socket.stop();
    fs::remove_file(tools.socket.path()).unwrap();
    let got = tools.world.path().join("got");
    fs::write(&got, "").unwrap();
    let listen = async |uid| {
        let dir = tools.socket.path().parent().unwrap();
        open_to_all_uids(dir);
        drop(fs::remove_file(tools.socket.path()));
        let socket = format!("UNIX-LISTEN:{},fork,mode=777", tools.socket.path().display());
        let file = format!("OPEN:{},wronly,append", got.display());
        std::os::unix::fs::chown(&got, Some(uid), Some(uid)).unwrap();
        let child =
            Command::new("socat").args(["-u", &socket, &file]).uid(uid).gid(uid).kill_on_drop(true).spawn();
        // The path is there before anything listens.
        let listens = || async { UnixStream::connect(tools.socket.path()).await.is_ok() };
        eventually("another process listens", listens, |listens| *listens).await;
        child.unwrap()
    };
    let listening = listen(1234).await;
    let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
    assert_eq!(refusal(&answer), (503, "tools_unavailable".to_owned()));
    assert_eq!(fs::read_to_string(&got).unwrap(), "");
    drop(listening);
    // The control: a user whom the configuration trusts gets the call.
    tools.world.reconfigure("threads = 2", "threads = 2\ncontrol_uids = [1234]");
    tools.world.sluice().run(&["reload"]).await;
    let _listening = listen(1234).await;
    let asking = run.agent.request(Method::POST, "/tool/exec", call("r1", CLOCK).to_string().into());
    let arrived =
        eventually("the call arrives", || async { read(&got) }, |text| text.contains("x-sluice-run: r1"));
    tokio::select! {
        _answer = asking => panic!("no process answers"),
        _text = arrived => {}
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn a_broken_call_is_never_repeated() {
    let tools = Tools::start().await;
    let run = tools.run("r1").await;
    let plays = [
        Play::Close,
        Play::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec()),
        Play::Raw(b"no HTTP at all\r\n\r\n".to_vec()),
        Play::Answer(500, vec![], String::new()),
        Play::Answer(302, vec![("location", "/mcp".to_owned())], String::new()),
        Play::Answer(200, vec![("content-encoding", "gzip".to_owned())], String::new()),
        Play::Answer(200, vec![("x-sluice-tool-protocol", "2".to_owned())], String::new()),
    ];
    for (number, play) in (1..).zip(plays) {
        tools.socket.play(play.clone());
        let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
        assert_eq!(refusal(&answer), (502, "outcome_unknown".to_owned()), "{play:?}");
        assert_eq!(answer.headers["x-should-retry"], "false");
        assert_eq!(tools.socket.seen().len(), number, "once: {play:?}");
        let record = tools.last(number).await;
        assert_eq!((record.outcome, record.refusal), (Outcome::UpstreamGone, Some(Refusal::OutcomeUnknown)));
        assert_eq!(record.tool.unwrap().outcome, ToolOutcome::Unknown);
    }
    // The control: an answer that says how the call ended passes, whatever its status.
    let headers = vec![("x-sluice-tool-outcome", "failed".to_owned())];
    tools.socket.play(Play::Answer(500, headers, r#"{"ok":false}"#.to_owned()));
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.status, 500);
}

#[tokio::test]
async fn a_call_ends_in_its_time() {
    let tools = Tools::start().await;
    let limits = ToolLimits { call_ms: Millis(300), ..ToolLimits::default() };
    let run = tools.run_within("r1", limits).await;
    tools.socket.play(Play::Hang);
    let answer = run.agent.post("/mcp", &message(CLOCK)).await;
    assert_eq!(refusal(&answer), (504, "tool_timeout".to_owned()));
    assert_eq!(answer.json()["id"], 7);
    let record = tools.last(1).await;
    assert_eq!((record.outcome, record.refusal), (Outcome::TimedOut, Some(Refusal::ToolTimeout)));
    assert_eq!(record.tool.unwrap().outcome, ToolOutcome::Unknown);
    eventually("the control plane is told", || async { tools.socket.ended() }, |ended| *ended == 1).await;
}

#[tokio::test]
async fn an_answer_has_a_largest_size() {
    let tools = Tools::start().await;
    let limits = ToolLimits { answer_body: ByteSize(100), ..ToolLimits::default() };
    let run = tools.run_within("r1", limits).await;
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nx-sluice-tool-outcome: done\r\ntransfer-encoding: chunked\r\n\r\n65\r\n{}\r\n0\r\n\r\n",
        "x".repeat(101)
    );
    for (number, play) in (1..).zip([Play::done(&"x".repeat(101)), Play::Raw(chunked.into_bytes())]) {
        tools.socket.play(play);
        let answer = run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
        assert_eq!(refusal(&answer), (502, "tool_answer_too_large".to_owned()));
        let record = tools.last(number).await;
        assert_eq!(record.refusal, Some(Refusal::ToolAnswerTooLarge));
        assert_eq!(record.tool.unwrap().outcome, ToolOutcome::Done, "the tool has run");
    }
    tools.socket.play(Play::done(&"x".repeat(100)));
    assert_eq!(run.agent.post("/tool/exec", &call("r1", CLOCK)).await.text().len(), 100, "the control");
}

/// The proxy dies while a tool works. The agent's call is recorded once, and no proxy repeats it.
#[tokio::test]
async fn a_killed_proxy_leaves_one_record() {
    let mut tools = Tools::start().await;
    let run = tools.run("r1").await;
    tools.socket.play(Play::Hang);
    let agent = run.agent.clone();
    let asking =
        platform_runtime::task::spawn(
            "call",
            async move { agent.post("/tool/exec", &call("r1", CLOCK)).await },
        );
    eventually("the tool works", || async { tools.socket.seen().len() }, |seen| *seen == 1).await;
    tools.world.kill_proxy().await;
    drop(asking.await.unwrap_err());
    for _ in 0..2 {
        tools.world.start_proxy().await;
        let records = tools.world.records(1).await;
        assert_eq!(records.len(), 1);
        let record = &records[0].record;
        assert_of_tool(record);
        assert_eq!(record.outcome, Outcome::Interrupted);
        let tool = record.tool.clone().unwrap();
        assert_eq!((tool.name.as_str(), tool.outcome), (CLOCK, ToolOutcome::Unknown));
        tools.world.kill_proxy().await;
    }
    assert_eq!(tools.socket.seen().len(), 1);
    tools.world.start_proxy().await;
}

/// Each kind counts by itself, before and after a restart.
#[tokio::test]
async fn tool_calls_are_not_model_calls() {
    let mut tools = Tools::start().await;
    let run = tools.run("r1").await;
    run.agent.chat("fake").await;
    for _ in 0..2 {
        run.agent.post("/tool/exec", &call("r1", CLOCK)).await;
    }
    for _ in 0..2 {
        let view = tools.world.control.run(&run.grant.run_id).await.unwrap();
        let Usage { calls, tool_calls, .. } = view.usage;
        assert_eq!((calls, tool_calls), (1, 2));
        assert!(tools.world.stop_proxy().await);
        tools.world.start_proxy().await;
    }
    let shown = tools.world.sluice().run(&["audit", "tail", "--kind", "tool"]).await;
    assert!(shown.stdout.contains(CLOCK), "{shown:?}");
}

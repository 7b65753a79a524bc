//! Tests sessions against scripted servers: those that hang, lie, flood or break off. The control of each is a server that
//! answers as it should.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use platform_core::id::ToolServerName;
use platform_runtime::{
    config::Sources,
    settings::{Settings, ToolServer},
    task,
};
use runner_docker::ServerOutput;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
    },
    sync::mpsc,
};
use tokio_util::{io::ReaderStream, task::TaskTracker};

use crate::{
    error::ServerError,
    session::{Link, ServerSession},
    stdio::{LinkBounds, StdioLink, Streams},
};

/// Bytes of a message that links here take.
const MAX_MESSAGE: usize = 64 << 10;

/// A scripted server: its standard streams.
struct Double {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    stderr: mpsc::Sender<Bytes>,
}

impl Double {
    /// Returns the next message that the client sends; `None` at its end.
    async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).await.ok()?;
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn print(&mut self, bytes: &[u8]) {
        // The client may have left: then the test looks at why.
        drop(self.output.write_all(bytes).await);
    }

    async fn say(&mut self, message: &Value) {
        self.print(format!("{message}\n").as_bytes()).await;
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Answers up to the first call of a tool, and returns that call.
    async fn until_call(&mut self) -> Option<Value> {
        loop {
            let message = self.next().await?;
            match message["method"].as_str().unwrap_or_default() {
                "initialize" => self.answer(&message, initialized("2025-06-18")).await,
                "tools/list" => self.answer(&message, json!({ "tools": [tool("add", "Adds.")] })).await,
                "ping" => self.answer(&message, json!({})).await,
                "tools/call" => return Some(message),
                _ => {}
            }
        }
    }
}

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
pub(crate) fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}

/// Returns an array of this depth.
pub(crate) fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

fn initialized(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "double", "version": "1" } })
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}

/// Returns a server with calls that take at most `timeout`.
fn settings(timeout: &str) -> ToolServer {
    let text = format!(
        "[tools.servers.double]\nimage = 'i:1'\ncommand = ['x']\ntools = ['add', 'get']\ntimeout = '{timeout}'"
    );
    let file = Some(("s.toml".into(), text));
    let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
    settings.tools.servers.into_values().next().unwrap()
}

/// Returns a link to a server that does what `script` says.
fn link<F: Future<Output = ()> + Send + 'static>(
    idle: Duration,
    script: impl FnOnce(Double) -> F + Send + 'static,
) -> Link {
    let (client, server) = duplex(64 << 10);
    let (output, input) = split(client);
    let (stderr, errors) = mpsc::channel(4);
    let (read, write) = split(server);
    let double = Double { input: BufReader::new(read), output: write, stderr };
    drop(task::spawn("double", script(double)));
    let out = ReaderStream::new(output).map(|piece| piece.map(ServerOutput::Out));
    let errors = stream::unfold(errors, |mut errors| async {
        errors.recv().await.map(|piece| (Ok(ServerOutput::Err(piece)), errors))
    });
    // The output ends with the program, whatever is left of standard error.
    let ended = stream::once(async { None }).boxed();
    let out = out.map(Some).chain(ended);
    let merged =
        stream::select(out, errors.map(Some)).take_while(|piece| std::future::ready(piece.is_some()));
    let output: Pin<Box<dyn futures_util::Stream<Item = std::io::Result<ServerOutput>> + Send>> =
        Box::pin(merged.filter_map(std::future::ready));
    let bounds = LinkBounds { message: MAX_MESSAGE, idle };
    Link::Stdio(StdioLink::start(
        Streams { output, input: Box::pin(input) },
        bounds,
        &TaskTracker::new(),
        Box::pin(async {}),
    ))
}

const LONG: Duration = Duration::from_secs(600);

async fn open<F: Future<Output = ()> + Send + 'static>(
    script: impl FnOnce(Double) -> F + Send + 'static,
) -> Result<ServerSession, ServerError> {
    ServerSession::open(link(LONG, script), &settings("1s")).await
}

/// Opens a session, calls `add`, and returns the result.
async fn call<F: Future<Output = ()> + Send + 'static>(
    answer: impl FnOnce(Double, Value) -> F + Send + 'static,
) -> Result<Value, ServerError> {
    let session = open(|mut double| async move {
        if let Some(call) = double.until_call().await {
            answer(double, call).await;
        }
    });
    let session = session.await.unwrap();
    let result = session.call("add", &json!({ "a": 1 })).await?;
    Ok(result.marked(&ToolServerName::parse("double").unwrap()))
}

fn is_protocol(error: &ServerError, words: &str) -> bool {
    matches!(error, ServerError::Protocol { problem } if problem.contains(words))
}

#[tokio::test]
async fn a_server_that_keeps_the_protocol_is_called() {
    let result = call(|mut double, call| async move {
        assert_eq!(call["params"], json!({ "name": "add", "arguments": { "a": 1 } }));
        double.answer(&call, done()).await;
        double.next().await;
    });
    let result = result.await.unwrap();
    assert_eq!(result["content"][0]["text"], "done");
    assert!(result["_untrusted"].as_str().unwrap().contains("`double`"));
}

#[tokio::test]
async fn another_version_is_refused() {
    for (version, is_known) in
        [("2025-06-18", true), ("2024-11-05", true), ("1999-01-01", false), ("", false)]
    {
        let opened = open(move |mut double| async move {
            let first = double.next().await.unwrap();
            double.answer(&first, initialized(version)).await;
            double.until_call().await;
        });
        match opened.await {
            Ok(_) => assert!(is_known, "{version}"),
            Err(error) => {
                assert!(!is_known && matches!(error, ServerError::Version { .. }), "{version}: {error}")
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_message_ends_the_session() {
    let nest =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"structuredContent\":{}}}}}\n", raw_nest(15));
    let rows: [(&[u8], &str); 8] = [
        (nest.as_bytes(), "reserved"),
        (b"Server is running\n", "not a message"),
        (b"\xff\xfe\n", "not UTF-8"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n", "which was not made"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}\n", "no request has"),
        (b"[]\n", "not a message"),
        (b"{\"jsonrpc\":\"1.0\",\"id\":3,\"result\":{}}\n", "JSON-RPC 2.0"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":1}}\n", "another form"),
    ];
    for (bytes, words) in rows {
        let bytes = bytes.to_vec();
        let error = call(move |mut double, _call| async move {
            double.print(&bytes).await;
            double.next().await;
        });
        let error = error.await.unwrap_err();
        assert!(is_protocol(&error, words) && error.may_have_run(), "{words}: {error}");
    }
}

#[tokio::test]
async fn a_deep_result_ends_its_call_alone() {
    let session = open(|mut double| async move {
        let first = double.until_call().await.unwrap();
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        double.answer(&first, json!({ "structuredContent": { "a": deep } })).await;
        let second = double.until_call().await.unwrap();
        double.answer(&second, done()).await;
        double.next().await;
    });
    let session = session.await.unwrap();
    let error = session.call("add", &json!({})).await.unwrap_err();
    assert!(is_protocol(&error, "deeper than 64 levels"), "{error}");
    assert!(session.call("add", &json!({})).await.is_ok());
}

#[tokio::test]
async fn a_huge_result_is_cut_in_bounded_memory() {
    let error = call(|mut double, _call| async move {
        double.print(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"").await;
        // 100 MiB, of which the pipe takes what the client reads.
        for _ in 0..1600 {
            double.print(&[b'x'; 64 << 10]).await;
        }
    });
    assert_eq!(error.await.unwrap_err(), ServerError::TooLarge { limit: MAX_MESSAGE });
}

#[tokio::test]
async fn a_flood_ends_the_session() {
    let note = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n";
    let of_messages = call(move |mut double, _call| async move {
        for _ in 0..5000 {
            double.print(note).await;
        }
        double.next().await;
    });
    let of_stderr = call(|mut double, _call| async move {
        let piece = Bytes::from(vec![b'e'; 64 << 10]);
        while double.stderr.send(piece.clone()).await.is_ok() {}
        double.next().await;
    });
    for error in [of_messages.await.unwrap_err(), of_stderr.await.unwrap_err()] {
        assert!(matches!(error, ServerError::Flood { .. }), "{error}");
    }
    // The control: as many messages as a server may send.
    let few = call(move |mut double, call| async move {
        for _ in 0..100 {
            double.print(note).await;
        }
        double.answer(&call, done()).await;
        double.next().await;
    });
    assert!(few.await.is_ok());
}

#[tokio::test]
async fn a_server_that_hangs_is_left() {
    let session = open(|mut double| async move {
        double.until_call().await;
        while double.next().await.is_some() {}
    });
    let session = session.await.unwrap();
    assert_eq!(session.call("add", &json!({})).await.unwrap_err(), ServerError::TimedOut { seconds: 1 });
    // The next call asks whether it lives, and ends the session.
    assert_eq!(session.listing().await.unwrap_err(), ServerError::TimedOut { seconds: 5 });
    assert!(session.ended().is_some() || session.call("add", &json!({})).await.is_err());
    let server = settings("1s");
    let silent = ServerSession::open(
        link(LONG, |mut double| async move { while double.next().await.is_some() {} }),
        &server,
    );
    let silent = tokio::time::timeout(Duration::from_secs(40), silent).await.unwrap();
    assert!(matches!(silent, Err(ServerError::TimedOut { .. })));
}

#[tokio::test]
async fn a_late_answer_is_dropped() {
    let session = open(|mut double| async move {
        let first = double.until_call().await.unwrap();
        let note = double.next().await.unwrap();
        assert_eq!(
            (&note["method"], &note["params"]["requestId"]),
            (&json!("notifications/cancelled"), &first["id"])
        );
        double.answer(&first, json!({ "content": [{ "type": "text", "text": "late" }] })).await;
        let second = double.until_call().await.unwrap();
        double.answer(&second, done()).await;
        double.next().await;
    });
    let session = session.await.unwrap();
    assert!(session.call("add", &json!({})).await.is_err());
    let result = session.call("add", &json!({})).await.unwrap();
    assert_eq!(result.texts(), "done", "it is not the answer to the first call");
}

#[tokio::test]
async fn a_server_that_asks_is_refused() {
    let (seen, mut answers) = mpsc::channel(8);
    let result = call(move |mut double, call| async move {
        for method in ["sampling/createMessage", "roots/list", "elicitation/create", "ping"] {
            double.say(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": {} })).await;
            seen.send(double.next().await.unwrap()).await.unwrap();
        }
        double.answer(&call, done()).await;
        double.next().await;
    });
    assert!(result.await.is_ok(), "the call goes on");
    for method in ["sampling/createMessage", "roots/list", "elicitation/create"] {
        let answer = answers.recv().await.unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(method), &json!(-32601)), "{answer}");
    }
    assert_eq!(answers.recv().await.unwrap()["result"], json!({}), "a sign of life is not a favour");
}

#[tokio::test]
async fn a_text_like_an_answer_is_a_text() {
    let result = call(|mut double, call| async move {
        let text = format!(
            "\n{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{{\"code\":1,\"message\":\"m\"}}}}\n",
            call["id"]
        );
        double.answer(&call, json!({ "content": [{ "type": "text", "text": text }] })).await;
        double.next().await;
    });
    let result = result.await.unwrap();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("\"jsonrpc\""), "{result}");
}

#[tokio::test]
async fn a_changed_list_is_read_anew() {
    let session = open(|mut double| async move {
        let mut lists = 0;
        while let Some(message) = double.next().await {
            match message["method"].as_str().unwrap() {
                "initialize" => double.answer(&message, initialized("2025-06-18")).await,
                "tools/list" => {
                    lists += 1;
                    let tools = if lists == 1 {
                        json!([tool("add", "Adds.")])
                    } else {
                        json!([tool("get", "Gets.")])
                    };
                    double.answer(&message, json!({ "tools": tools })).await;
                }
                "tools/call" => {
                    double
                        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }))
                        .await;
                    double.answer(&message, done()).await;
                }
                _ => {}
            }
        }
    });
    let session = session.await.unwrap();
    let names = |listing: crate::Listing| listing.tools.into_keys().collect::<Vec<_>>();
    assert_eq!(names(session.listing().await.unwrap()), ["add"]);
    session.call("add", &json!({})).await.unwrap();
    assert_eq!(names(session.listing().await.unwrap()), ["get"], "the first one is gone");
}

#[tokio::test]
async fn an_endless_list_is_refused() {
    let opened = open(|mut double| async move {
        while let Some(message) = double.next().await {
            match message["method"].as_str().unwrap() {
                "initialize" => double.answer(&message, initialized("2025-06-18")).await,
                "tools/list" => double.answer(&message, json!({ "tools": [], "nextCursor": "again" })).await,
                _ => {}
            }
        }
    });
    assert!(is_protocol(&opened.await.unwrap_err(), "more than 32 pages"));
}

#[tokio::test]
async fn a_server_that_ends_says_why() {
    let error = call(|double, _call| async move {
        double.stderr.send(Bytes::from_static(b"out of\x1b[2J luck\n")).await.unwrap();
        // Its output ends once all of it was taken.
        let free = double.stderr.max_capacity();
        drop(double.stderr.reserve_many(free).await.unwrap());
        drop(double);
    });
    let error = error.await.unwrap_err();
    assert_eq!(error, ServerError::Ended { stderr: "out of luck".to_owned() });
}

#[tokio::test]
async fn an_idle_session_ends() {
    let idle = link(Duration::from_millis(200), |mut double| async move {
        double.until_call().await;
    });
    let session = ServerSession::open(idle, &settings("1s")).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        while session.ended().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(ended.await.is_ok());
    assert_eq!(session.call("add", &json!({})).await.unwrap_err(), ServerError::NotSent);
}

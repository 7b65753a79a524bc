//! Clients without a credential try to take all connections of the API.

use std::{net::SocketAddr, time::Duration};

use harness::{
    Agent,
    agent::Wire,
    eventually,
    served::Served,
    strangers::{Habit, Strangers, unfinished_sign_in, wrong_sign_in},
};
use platform_runtime::task;
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Semaphore,
    time::timeout,
};

/// Most connections that the API serves at a time.
const MAX_CONNECTIONS: usize = 256;
/// Longest accepted time of a request on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns whether a request is answered in time.
async fn answers(api: &Agent) -> bool {
    let asked = api.request(http::Method::GET, "/healthz", "".into());
    timeout(PATIENCE, asked).await.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status == 200))
}

/// Starts a server of as many connections as the API serves, in which none gives way; returns its address. It answers
/// what it reads first.
async fn server_without_defence() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    task::spawn("server", async move {
        let permits: &Semaphore = Box::leak(Box::new(Semaphore::new(MAX_CONNECTIONS)));
        while let Ok(permit) = permits.acquire().await {
            let (mut stream, _) = listener.accept().await.unwrap();
            task::spawn("connection", async move {
                let _permit = permit;
                let mut request = [0; 4096];
                if matches!(stream.read(&mut request).await, Ok(1..)) && request.starts_with(b"GET") {
                    drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await);
                } else {
                    while matches!(stream.read(&mut request).await, Ok(1..)) {}
                }
            });
        }
    });
    address
}

/// More strangers than there are connections: some send slow bodies, some nothing, and all come back.
#[tokio::test]
async fn strangers_do_not_keep_others_out() {
    let there = Served::with("").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let come = |address| {
        [Habit::SlowBody, Habit::Idle].map(|habit| Strangers::come(address, MAX_CONNECTIONS, habit))
    };
    let opened = |strangers: &[Strangers; 2]| strangers.iter().map(Strangers::opened).sum::<usize>();

    let address = server_without_defence().await;
    assert!(answers(&Agent::over_tcp(address)).await, "control: alone, the other server answers");
    let strangers = come(address);
    // Further ones wait in the kernel, which takes a few.
    eventually("they are there", || async { opened(&strangers) }, |count| *count > MAX_CONNECTIONS + 64)
        .await;
    assert!(!answers(&Agent::over_tcp(address)).await, "control: where none gives way, they keep others out");
    drop(strangers);

    let strangers = come(there.address());
    eventually("they are there", || async { opened(&strangers) }, |count| *count >= 2 * MAX_CONNECTIONS)
        .await;
    for _ in 0..50 {
        assert!(answers(&there.api).await, "a request without a credential");
        let listed = timeout(PATIENCE, app.get("/api/v1/runs")).await.expect("it is answered");
        assert_eq!(listed.status, 200, "{}", listed.text());
    }
    drop(strangers);
    there.up.stop(Signal::TERM).await;
}

/// Sends the head of a sign-in; its body is to follow.
async fn begin_sign_in(there: &Served, lines: &str) -> Box<dyn Wire> {
    let mut wire = there.api.connect().await.unwrap();
    wire.write_all(unfinished_sign_in(there.address(), lines).as_bytes()).await.unwrap();
    wire
}

/// Returns what the API answers until it closes the connection.
async fn answer(mut wire: Box<dyn Wire>) -> String {
    let mut answer = Vec::new();
    // A connection that gave way may be reset.
    drop(timeout(Duration::from_secs(30), wire.read_to_end(&mut answer)).await.expect("it is closed"));
    String::from_utf8_lossy(&answer).into_owned()
}

/// The rest of the body never comes.
#[tokio::test]
async fn a_slow_body_is_given_up() {
    let there = Served::with("").await;
    let text = answer(begin_sign_in(&there, "").await).await;
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("body_timeout"), "{text}");
    let mut whole = begin_sign_in(&there, "connection: close\r\n").await;
    whole.write_all(wrong_sign_in().as_bytes()).await.unwrap();
    let text = answer(whole).await;
    assert!(text.starts_with("HTTP/1.1 401 ") && text.contains("link_invalid"), "control: {text}");
    there.up.stop(Signal::TERM).await;
}

/// Begins a sign-in that a proxy forwards for one address, and then more than there is room for, for another; returns
/// the answer to the first once it is whole.
async fn answer_beside_greedy_neighbour(settings: &str) -> String {
    let there = Served::with(settings).await;
    let forwarded = |client: &str| format!("x-forwarded-for: 203.0.113.1, {client}\r\nconnection: close\r\n");
    let mut modest = begin_sign_in(&there, &forwarded("192.0.2.7")).await;
    let mut greedy = Vec::new();
    for _ in 0..MAX_CONNECTIONS + 20 {
        greedy.push(begin_sign_in(&there, &forwarded("192.0.2.9")).await);
    }
    assert!(answers(&there.api).await, "all are accepted");
    drop(modest.write_all(wrong_sign_in().as_bytes()).await);
    let text = answer(modest).await;
    there.up.stop(Signal::TERM).await;
    text
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_its_share() {
    let text = answer_beside_greedy_neighbour("trusted_proxies = ['127.0.0.1']").await;
    assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
    let text = answer_beside_greedy_neighbour("").await;
    assert_eq!(text, "", "control: as one client they all are, and the oldest gives way");
}

//! Tests the bridge: bytes as they are, ends as they come, memory and descriptors with a bound, and no process for any
//! of it.

use std::{io, time::Duration};

use futures_util::future::join_all;
use harness::{
    Agent, Bridge, Init, World,
    agent::{Answering, Stream, Wire, chat_body, saying},
    eventually,
    eventually::PATIENCE,
    raw::Raw,
};
use http::Method;
use platform_core::record::Outcome;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::{Peer, noise};

async fn connect(init: &Init) -> Box<dyn Wire> {
    init.agent.connect().await.unwrap()
}

/// Begins streams that stop after their first event.
async fn stalled(streams: usize, world: &World, agent: &Agent) -> Vec<Stream> {
    let asked = world.upstream.ledger().len();
    let open = join_all((0..streams).map(|_| agent.stream("fake-stall1"))).await;
    assert!(open.iter().all(|stream| stream.status == 200));
    assert_eq!(world.upstream.ledger().len() - asked, streams, "all of them are in flight");
    open
}

/// No descriptor stays open after them.
#[tokio::test]
async fn two_hundred_streams_need_no_processes() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let init = Init::to(&run.socket).await;
    let descriptors = init.descriptors();
    let open = stalled(200, &world, &init.agent).await;
    assert_eq!(
        (init.processes(), init.descriptors()),
        (1, descriptors + 400),
        "the agent, and a pair for each"
    );
    drop(open);
    let left = || async { init.descriptors() };
    eventually("connections are closed with their clients", left, |now| *now == descriptors).await;

    let answers = join_all((0..200).map(|_| async {
        let body = chat_body("fake-words4-gap20ms", Answering::Streamed).to_string();
        let answer = init.agent.request(Method::POST, "/v1/chat/completions", body.into()).await.unwrap();
        harness::events::spoken(&answer.text()).concat()
    }));
    for answer in answers.await {
        assert_eq!(answer, "Hello from the scripted");
    }
    eventually("connections are closed when all is said", left, |now| *now == descriptors).await;

    // Control: a process for each is seen.
    let socat = Bridge::to(&run.socket).await;
    let _open = stalled(20, &world, &socat.agent).await;
    assert_eq!(socat.processes(), 20);
}

#[tokio::test]
async fn either_side_may_finish_first() {
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let mut heard = String::new();

    let mut client = connect(&init).await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut proxy = peer.accept().await;
    proxy.read_to_string(&mut heard).await.unwrap();
    proxy.write_all(b", answer").await.unwrap();
    drop(proxy);
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "question, answer");

    let mut client = connect(&init).await;
    let mut proxy = peer.accept().await;
    proxy.write_all(b", end").await.unwrap();
    proxy.shutdown().await.unwrap();
    client.read_to_string(&mut heard).await.unwrap();
    client.write_all(b", afterthought").await.unwrap();
    drop(client);
    proxy.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "question, answer, end, afterthought");
}

#[tokio::test]
async fn bytes_pass_as_they_are_both_ways_at_once() {
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let (up, down) = (noise(4 << 20), noise((4 << 20) + 1));
    let (mut client, mut proxy) = (connect(&init).await, peer.accept().await);
    let (mut to_client, mut to_proxy) = (vec![0; down.len()], vec![0; up.len()]);
    let (mut read_proxy, mut write_proxy) = proxy.split();
    let (mut read_client, mut write_client) = tokio::io::split(&mut client);
    tokio::try_join!(
        async { write_client.write_all(&up).await },
        async { write_proxy.write_all(&down).await },
        async { read_proxy.read_exact(&mut to_proxy).await.map(drop) },
        async { read_client.read_exact(&mut to_client).await.map(drop) },
    )
    .unwrap();
    assert!(to_proxy == up && to_client == down, "what arrives is not what was sent");
}

#[tokio::test]
async fn a_prompt_of_four_mebibytes_is_unchanged() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let init = Init::to(&run.socket).await;
    // Not ASCII alone, and with characters that JSON escapes.
    let prompt: String = "0123456789 \"\\\n ä€😀".chars().cycle().take(4 << 20).collect();
    assert!(prompt.len() > 4 << 20);
    let body = saying("/v1/chat/completions", "fake", Answering::Whole, &prompt);
    assert_eq!(init.agent.post("/v1/chat/completions", &body).await.status, 200);
    let arrived = world.upstream.ledger().last().unwrap().json().unwrap();
    assert!(arrived["messages"] == body["messages"], "the prompt is not as it was");
}

/// Its writer is held back.
#[tokio::test]
async fn an_unread_stream_costs_little_memory() {
    const ALL: usize = 64 << 20;
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let (mut client, mut proxy) = (connect(&init).await, peer.accept().await);
    let before = init.resident_kib();
    let piece = vec![b'x'; 1 << 16];
    let mut written = 0;
    // The client reads no more of it. The timeout of a write is long enough to write everything many times.
    while let Ok(length) = timeout(Duration::from_secs(1), proxy.write(&piece)).await {
        written += length.unwrap();
        assert!(written < ALL, "it takes everything");
    }
    let grown = init.resident_kib() - before;
    assert!(grown < 1024, "it grew by {grown} KiB");
    // Control: the client held it up.
    let mut read = 0;
    let mut room = vec![0; 1 << 16];
    while read < ALL {
        tokio::select! {
            length = proxy.write(&piece), if written < ALL => written += length.unwrap(),
            length = client.read(&mut room) => read += length.unwrap(),
        }
    }
    assert!(init.resident_kib() - before < 1024);
}

#[tokio::test]
async fn a_client_that_leaves_leaves_nothing_open() {
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let descriptors = init.descriptors();
    for says in [&b""[..], b"half a quest"] {
        let mut client = connect(&init).await;
        let mut proxy = peer.accept().await;
        client.write_all(says).await.unwrap();
        drop(client);
        let mut heard = Vec::new();
        proxy.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, says);
        // The client has left. The proxy's writes fail, and the proxy does not write into the void for ever.
        let speaks = async { while proxy.write_all(&[b'x'; 4096]).await.is_ok() {} };
        timeout(PATIENCE, speaks).await.expect("the proxy is told");
        let left = || async { init.descriptors() };
        eventually("nothing is open", left, |now| *now == descriptors).await;
    }
}

#[tokio::test]
async fn a_client_still_sending_hears_its_refusal() {
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let (mut client, mut proxy) = (connect(&init).await, peer.accept().await);
    let body = noise(8 << 20);
    let refuse = async {
        let mut head = [0; 1024];
        proxy.read_exact(&mut head).await.unwrap();
        proxy.write_all(b"too large").await.unwrap();
        drop(proxy); // with most of the body unread
    };
    let (sent, ()) = tokio::join!(client.write_all(&body), refuse);
    sent.unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "too large");
}

#[tokio::test]
async fn without_descriptors_connections_wait() {
    const CLIENTS: usize = 60;
    let peer = Peer::bind();
    let socket = peer.socket();
    let (init, ()) = tokio::join!(Init::with_descriptors(64, &socket), peer.is_healthy());
    let clients: Vec<_> = join_all((0..CLIENTS).map(|_| connect(&init))).await;
    let mut served = Vec::new();
    while let Ok(proxy) = timeout(Duration::from_millis(500), peer.accept()).await {
        served.push(proxy);
    }
    assert_eq!(served.len(), 16, "(64 - 32) / 2");
    // The others come as these go: they did not get lost.
    let ask = |mut client: Box<dyn Wire>| async move {
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        heard
    };
    let answer = async {
        for proxy in &mut served {
            proxy.write_all(b"yes").await.unwrap();
        }
        let others = CLIENTS - served.len();
        drop(served);
        for _ in 0..others {
            peer.accept().await.write_all(b"yes").await.unwrap();
        }
    };
    let (heard, ()) = tokio::join!(join_all(clients.into_iter().map(ask)), answer);
    assert!(heard.iter().all(|heard| heard == "yes"), "{heard:?}");
}

#[tokio::test]
async fn clients_wait_while_the_proxys_queue_is_full() {
    const CLIENTS: usize = 20;
    let peer = Peer::bind();
    let init = peer.bridged().await;
    rustix::net::listen(&peer.listener, 1).unwrap();
    let mut clients = join_all((0..CLIENTS).map(|_| connect(&init))).await;
    for client in &mut clients {
        client.write_all(b"?").await.unwrap();
    }
    // Control: a client that does not wait is refused.
    let socket = peer.socket();
    let attempt = || async { UnixStream::connect(&socket).await.map(drop).map_err(|error| error.kind()) };
    let full = |attempt: &Result<(), _>| *attempt == Err(io::ErrorKind::WouldBlock);
    eventually("the queue is full", attempt, full).await.unwrap_err();
    let mut served = 0;
    while served < CLIENTS {
        // The attempts that came in have nothing to say.
        served += usize::from(peer.accept().await.read_u8().await.is_ok());
    }
}

/// The next proxy is found.
#[tokio::test]
async fn without_a_proxy_clients_are_hung_up_on() {
    let peer = Peer::bind();
    let init = peer.bridged().await;
    let Peer { listener, dir } = peer;
    drop(listener);
    let mut nothing = Vec::new();
    assert_eq!(connect(&init).await.read_to_end(&mut nothing).await.unwrap_or(0), 0);
    let socket = dir.path().join("llm.sock");
    std::fs::remove_file(&socket).unwrap();
    let peer = Peer { listener: tokio::net::UnixListener::bind(socket).unwrap(), dir };
    let mut client = connect(&init).await;
    client.write_all(b"?").await.unwrap();
    assert_eq!(peer.accept().await.read_u8().await.unwrap(), b'?');
}

/// An agent leaves its call, and the bridge half-closes it; the proxy takes that for the end of the call, as nginx
/// does.
#[tokio::test]
async fn a_cancel_through_a_bridge_ends_the_call() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let (init, socat) = (Init::to(&run.socket).await, Bridge::to(&run.socket).await);
    let mut count = 0;
    for agent in [&init.agent, &socat.agent] {
        // In the middle of a stream.
        let mut stream = agent.stream("fake-stall1").await;
        stream.next().await.unwrap();
        drop(stream);
        let said = world.records(count + 1).await.pop().unwrap().record;
        assert_eq!(said.outcome, Outcome::ClientGone);
        assert!(said.tokens.output < 100, "what was said and no more: {said:?}");
        // Before there is an answer.
        let hang = Raw::post("/v1/chat/completions", &chat_body("fake-hang", Answering::Whole));
        let wire = hang.begin(agent).await;
        count += 2;
        let asked = || async { world.upstream.ledger().len() };
        eventually("the upstream is asked", asked, |asked| *asked == count).await;
        drop(wire);
        let ended = world.upstream.ledger().wait_for_ending(count as u64, PATIENCE).await;
        assert!(matches!(ended.unwrap().ending, bench::upstream::Ending::ClientGone { .. }), "cancelled");
        assert_eq!(world.records(count).await.pop().unwrap().record.outcome, Outcome::ClientGone);
    }
}

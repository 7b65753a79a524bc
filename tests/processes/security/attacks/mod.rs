//! Every known attack on the data plane, by family: one table each, with rows of data. Each row is withstood. Each has
//! a control that shows that it is an attack. Either the predecessor's template lets it through, or the upstream takes
//! it without Sluicegate in between. Else the same request passes without the offending piece.
//!
//! The fields of a body are tested one by one beside the code; the tests here run over a real socket.

mod answers;
pub(crate) mod bodies;
mod correlations;
mod errors;
mod headers;
mod heads;
mod leaks;
mod nests;
mod paths;
mod silence;
mod sockets;
mod state;
mod tools;
mod trailers;
mod usage;

use std::time::Duration;

use harness::{
    Agent,
    agent::{Answering, chat_body},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

const CHAT: &str = "/v1/chat/completions";
/// Text that every attack smuggles. If it shows up, the attack has arrived.
const MARK: &str = "victim";

/// Control that shows that a row is an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// The attack arrives through the predecessor's nginx.
    Nginx,
    /// nginx itself stops the attack; it arrives at an upstream without a proxy.
    Direct,
    /// No server accepts the attack; without the offending piece the same request passes.
    Repaired,
}

/// Sends `bytes` as all that is said on a connection, and returns what comes back: to its end, or for as long as an
/// answer may take that does not end.
async fn told(agent: &Agent, bytes: &[u8]) -> String {
    let mut wire = agent.connect().await.unwrap();
    // One that closes while we write has answered.
    drop(wire.write_all(bytes).await);
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(Ok(length @ 1..)) = timeout(Duration::from_secs(1), wire.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the status of an answer as it came over the wire; 0 if there was none.
fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Builds a whole chat request with these lines in its head.
fn with_lines(lines: &[u8]) -> Vec<u8> {
    let body = chat_body("fake", Answering::Whole).to_string();
    let length = format!("content-length: {}\r\n\r\n{body}", body.len());
    let host = if lines.to_ascii_lowercase().starts_with(b"host:") { "" } else { "host: a\r\n" };
    let start =
        format!("POST {CHAT} HTTP/1.1\r\n{host}content-type: application/json\r\nconnection: close\r\n");
    [start.as_bytes(), lines, b"\r\n", length.as_bytes()].concat()
}

/// A table of attacks that shrinks fails the test: each family has a least number of rows.
#[test]
fn no_family_of_attacks_shrinks_unseen() {
    let families = [
        ("headers of requests", headers::count(), 116),
        ("heads that are not a request", heads::unread().len(), 12),
        ("trailers", trailers::TRAILERS.len(), 5),
        ("headers that ours would have to stand beside", crate::security::attribution::spoofs().len(), 52),
        ("heads and framing of answers", answers::attacks().len(), 69),
        ("paths", paths::PATHS.len(), 92),
        ("query", paths::QUERIES.len(), 12),
        ("fields of bodies", bodies::fields().len(), 28),
        ("media and tools as egress", bodies::egress().len(), 28),
        ("references to stored objects", bodies::stored().len(), 17),
        ("tools by name", tools::offers().len(), 14),
        ("tools behind those left out", tools::hidden().len(), 16),
        ("framing", crate::proxy::framing::attacks("{}").len(), 20),
        ("tokens", crate::proxy::shared::bad_tokens().len(), 16),
        ("correlations", correlations::attacks().len(), 65),
        ("leaks", leaks::count(), 306),
        ("usage", usage::attacks().len(), 33),
        ("errors in other shapes, and our own secrets", errors::count(), 838),
        ("places of sockets", sockets::PLANTS.len() + sockets::SECONDS.len(), 10),
        (
            "state and secrets on disk",
            state::LINKED.len() + state::EXPOSED.len() + state::OPEN_TO_CONTROL.len(),
            29,
        ),
    ];
    for (family, count, floor) in families {
        assert!(count >= floor, "{family}: {count} attacks, there were {floor}");
    }
    let all: usize = families.iter().map(|(_, count, _)| count).sum();
    assert!(all >= 800, "{all} attacks");
}

//! Every known attack on the data plane, by family: one table each, whose rows are data. Each row is withstood, and
//! each has a control by which it is seen to be an attack: the predecessor's template lets it through, or the upstream
//! takes it when nobody stands in between, or the same request without the offending piece passes.
//!
//! What a body may hold is tested field by field beside the code; here stands what is tried over a real socket.

mod answers;
pub(crate) mod bodies;
mod correlations;
mod errors;
mod headers;
mod heads;
mod leaks;
mod paths;
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
/// What every attack smuggles. Where it shows up, the attack has arrived.
const MARK: &str = "victim";

/// How a row is seen to be an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// It arrives through the predecessor's nginx.
    Nginx,
    /// nginx itself stops it; it arrives at an upstream that nobody stands in front of.
    Direct,
    /// Nobody takes it; without the offending piece the same request passes.
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

/// Status of an answer as it came over the wire; 0 if there was none.
fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// A whole chat request with these lines in its head.
fn with_lines(lines: &[u8]) -> Vec<u8> {
    let body = chat_body("fake", Answering::Whole).to_string();
    let length = format!("content-length: {}\r\n\r\n{body}", body.len());
    let host = if lines.to_ascii_lowercase().starts_with(b"host:") { "" } else { "host: a\r\n" };
    let start =
        format!("POST {CHAT} HTTP/1.1\r\n{host}content-type: application/json\r\nconnection: close\r\n");
    [start.as_bytes(), lines, b"\r\n", length.as_bytes()].concat()
}

/// Attacks per family, and the least there must be: a table that shrinks should not do so unseen.
#[test]
fn no_family_of_attacks_shrinks_unseen() {
    let families = [
        ("headers of requests", headers::count(), 116),
        ("heads that are no request", heads::unread().len(), 12),
        ("trailers", trailers::TRAILERS.len(), 5),
        ("headers that ours would have to stand beside", crate::identity::spoofs().len(), 52),
        ("heads and framing of answers", answers::attacks().len(), 69),
        ("paths", paths::PATHS.len(), 88),
        ("query", paths::QUERIES.len(), 12),
        ("fields of bodies", bodies::fields().len(), 28),
        ("media and tools as egress", bodies::egress().len(), 22),
        ("references to stored objects", bodies::stored().len(), 13),
        ("tools by name", tools::offers().len(), 8),
        ("framing", crate::framing::attacks("{}").len(), 20),
        ("tokens", crate::shared::bad_tokens().len(), 16),
        ("correlations", correlations::attacks().len(), 64),
        ("leaks", leaks::count(), 306),
        ("usage", usage::attacks().len(), 33),
        ("errors in other shapes, and our own secrets", errors::count(), 838),
        ("places of sockets", sockets::PLANTS.len() + sockets::SECONDS.len(), 10),
        ("state and secrets on disk", state::LINKED.len() + state::EXPOSED.len(), 18),
    ];
    for (family, count, floor) in families {
        assert!(count >= floor, "{family}: {count} attacks, there were {floor}");
    }
    let all: usize = families.iter().map(|(_, count, _)| count).sum();
    assert!(all >= 800, "{all} attacks");
}

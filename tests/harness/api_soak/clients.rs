//! Plays the clients of an API under load, and measures what they see.

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout_at,
};

use super::PATIENCE;
use crate::{agent::Agent, eventually::eventually_within, pace::pace};

/// Delay between two lists, and between two orders.
const LIST_DELAY: Duration = Duration::from_millis(20);
const ORDER_DELAY: Duration = Duration::from_millis(500);
/// Bytes that a slow reader takes at a time, and its delay after them.
const SLOW_PIECE: usize = 64;
const SLOW_DELAY: Duration = Duration::from_millis(250);
/// Receive buffer of a slow reader, so that the kernel does not read for it.
const SLOW_BUFFER: u32 = 4096;

/// Lists runs again and again; returns the microseconds of each list.
pub(crate) async fn list_times(api: Agent, until: Instant) -> Vec<u64> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        let listed = api.get("/api/v1/runs").await;
        times.push(micros(began.elapsed()));
        assert_eq!(listed.status, 200, "{}", listed.text());
        pace(LIST_DELAY).await;
    }
    times
}

/// Follows a run; returns the microseconds from the storing of each event after `since` to its arrival.
pub(super) async fn event_delays(api: Agent, path: String, since: SystemTime, until: Instant) -> Vec<u64> {
    let api = api.with_header("accept", "text/event-stream");
    let mut stream = api.send(http::Method::GET, &path, "".into()).await.unwrap();
    assert_eq!(stream.status, 200);
    let mut delays = Vec::new();
    let mut unread = String::new();
    while let Ok(piece) = timeout_at(until.into(), stream.next()).await {
        let arrival = SystemTime::now();
        let (piece, _) = piece.unwrap().expect("the run goes on");
        unread += std::str::from_utf8(&piece).unwrap();
        let end = unread.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = unread.drain(..end).collect();
        for event in lines.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let event: Value = serde_json::from_str(event).unwrap();
            let stored = humantime::parse_rfc3339(event["at"].as_str().unwrap()).unwrap();
            if stored > since {
                delays.push(micros(arrival.duration_since(stored).unwrap_or_default()));
            }
        }
    }
    delays
}

/// Orders a run while there is room, and waits for its end; returns the microseconds from its order to its claim.
pub(super) async fn claim_delay(api: &Agent) -> u64 {
    let ordered = api.post("/api/v1/runs", &json!({ "agentId": "test:sh", "input": "q" })).await.json();
    let path = format!("/api/v1/runs/{}", ordered["runId"].as_str().expect("it is ordered"));
    let show = || async { api.get(&path).await.json() };
    let run = eventually_within(PATIENCE, "it ends", show, |run| !run["endedAt"].is_null()).await;
    assert_eq!(run["state"], "succeeded", "{run}");
    let events = api.get(&format!("{path}/events")).await.text();
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(first["phase"], "preparing", "{first}");
    let time = |value: &Value| humantime::parse_rfc3339(value.as_str().unwrap()).unwrap();
    pace(ORDER_DELAY).await;
    micros(time(&first["at"]).duration_since(time(&run["createdAt"])).unwrap_or_default())
}

/// Opens a stream at `url`, and reads its first bytes.
pub(super) async fn open_slowly(url: String, token: String, path: String) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(SLOW_BUFFER).unwrap();
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut wire = socket.connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    wire.write_all(head.as_bytes()).await.unwrap();
    let mut piece = [0; SLOW_PIECE];
    wire.read_exact(&mut piece).await.unwrap();
    assert!(piece.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&piece));
    wire
}

/// Reads a few bytes of a stream now and then, for `span`; returns their number.
pub(super) async fn read_slowly(mut wire: TcpStream, span: Duration) -> u64 {
    let until = Instant::now() + span;
    let mut piece = [0; SLOW_PIECE];
    let mut read = 0;
    while Instant::now() < until {
        pace(SLOW_DELAY).await;
        read += wire.read_exact(&mut piece).await.unwrap() as u64;
    }
    read
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

//! Writes entries for readers outside the process: over HTTP and as lines of JSON.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Ending, Entry};

/// Longest body that is exported; a longer one is given by its length only.
const LONGEST_BODY: usize = 64 * 1024;

#[derive(Serialize)]
struct Exported<'a> {
    seq: u64,
    unix_ms: u64,
    method: &'a str,
    path: &'a str,
    headers: &'a [(String, String)],
    body: Value,
    ending: Value,
}

impl<'a> Exported<'a> {
    fn of(entry: &'a Entry) -> Self {
        let Entry { seq, unix_ms, method, path, headers, .. } = entry;
        Self {
            seq: *seq,
            unix_ms: *unix_ms,
            method,
            path,
            headers,
            body: body(&entry.body),
            ending: ending(entry),
        }
    }
}

/// Returns all entries as a JSON array.
pub(super) fn array(entries: &[Entry]) -> serde_json::Result<Bytes> {
    let exported: Vec<_> = entries.iter().map(Exported::of).collect();
    serde_json::to_vec(&exported).map(Bytes::from)
}

/// Returns one entry as a line of JSON, its newline included.
pub(super) fn line(entry: &Entry) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Exported::of(entry))?;
    line.push(b'\n');
    Ok(line)
}

fn body(body: &Bytes) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    if body.len() > LONGEST_BODY {
        return json!({ "bytes": body.len() });
    }
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

fn ending(entry: &Entry) -> Value {
    let kind = match entry.ending {
        Ending::Arriving => "arriving",
        Ending::Open => "open",
        Ending::Answered { .. } => "answered",
        Ending::ClientGone { .. } => "client_gone",
        Ending::CutByScript { .. } => "cut_by_script",
        Ending::UpstreamStopped { .. } => "upstream_stopped",
    };
    match (entry.ending.events(), entry.ending.at()) {
        (Some(events), Some(at)) => {
            let after_ms = at.duration_since(entry.arrived).as_secs_f64() * 1000.0;
            json!({ "kind": kind, "events": events, "after_ms": after_ms })
        }
        _ => json!({ "kind": kind }),
    }
}

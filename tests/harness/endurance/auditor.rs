//! Follows the journal across restarts by its cursor alone, and keeps totals of what it reads.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Method;
use platform_core::{
    control::Cursor,
    record::{JournalLine, Outcome},
};
use platform_runtime::task;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::{sync::watch, task::JoinHandle};

use crate::{control::Control, pace::pace};

/// Name of the auditor as a consumer.
const NAME: &str = "auditor";
/// Delay before a request to a proxy that was down is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(2);
/// Largest number of faults that are kept.
const MAX_FAULTS: usize = 20;

/// Follower of the journal, which reads until it is dropped.
#[derive(Debug)]
pub(crate) struct Auditor {
    books: Arc<Mutex<Books>>,
    cuts: watch::Sender<u64>,
    following: JoinHandle<()>,
}

/// Totals of the journal as the auditor read it.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Sequence number of the last line: the cursor.
    pub(crate) at: u64,
    hash: String,
    /// Id of the journal, which every proxy must continue.
    journal: String,
    /// Gaps, repeated lines, hashes that do not match the line before, calls with two records.
    pub(crate) faults: Vec<String>,
    pub(crate) calls: HashMap<String, Call>,
    pub(crate) runs: BTreeMap<String, Sums>,
    pub(crate) accounts: BTreeMap<String, Sums>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// Tokens of the largest call that was answered to its end.
    pub(crate) largest_call: u64,
    /// Connections made to follow the journal.
    pub(crate) connections: u64,
}

/// State of a call as its record reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) outcome: Outcome,
    /// If true, the upstream had begun to answer.
    pub(crate) was_answered: bool,
}

/// Sums over calls that were not refused.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) tokens: u64,
    pub(crate) calls: u64,
}

impl Auditor {
    pub(crate) async fn of(control: Control) -> Self {
        let journal = control.health().await.unwrap().journal_id;
        let books = Books { hash: "0".repeat(64), journal, ..Books::default() };
        let books = Arc::new(Mutex::new(books));
        let cuts = watch::Sender::new(0);
        let following = task::spawn("auditor", follow(control, Arc::clone(&books), cuts.subscribe()));
        Self { books, cuts, following }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        lock(&self.books)
    }

    /// Acknowledges all lines that were read, so that the proxy may remove them.
    pub(crate) async fn acknowledge(&self, control: &Control) {
        let cursor = {
            let Books { journal, at, hash, .. } = &*self.books();
            Cursor { journal: journal.clone(), seq: *at, hash: hash.clone() }
        };
        let answer =
            control.send(Method::PUT, &format!("/v1/consumers/{NAME}"), json!(cursor).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Cuts its connection, possibly in the middle of a line.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.following.abort();
    }
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(control: Control, books: Arc<Mutex<Books>>, mut cuts: watch::Receiver<u64>) {
    loop {
        let path = {
            let Books { at, journal, .. } = &*lock(&books);
            format!("/v1/journal?after={at}&journal={journal}&follow")
        };
        let Ok(mut stream) = control.try_follow(&path).await else {
            pace(RETRY_DELAY).await;
            continue;
        };
        if stream.status != 200 {
            lock(&books).fault(format!("{path} is refused: {}", stream.status));
            pace(RETRY_DELAY).await;
            continue;
        }
        lock(&books).connections += 1;
        let mut pending = Vec::new();
        loop {
            let piece = tokio::select! {
                piece = stream.next() => piece,
                _ = cuts.changed() => break,
            };
            let Ok(Some((piece, _))) = piece else { break };
            pending.extend_from_slice(&piece);
            let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let mut books = lock(&books);
            for line in pending[..whole].split_inclusive(|byte| *byte == b'\n') {
                books.enter(&line[..line.len() - 1]);
            }
            drop(books);
            pending.drain(..whole);
        }
    }
}

impl Books {
    fn fault(&mut self, fault: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    fn enter(&mut self, text: &[u8]) {
        let line: JournalLine = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(error) => return self.fault(format!("{error}: {}", String::from_utf8_lossy(text))),
        };
        if line.seq != self.at + 1 || line.prev != self.hash {
            self.fault(format!(
                "line {} with prev {} after {} with {}",
                line.seq, line.prev, self.at, self.hash
            ));
        }
        self.at = line.seq;
        self.hash = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        self.count(&line);
    }

    fn count(&mut self, JournalLine { record, seq, .. }: &JournalLine) {
        *self.outcomes.entry(record.outcome.to_string()).or_default() += record.calls;
        let id = record.litellm_call_id.to_string();
        let call = Call { outcome: record.outcome, was_answered: record.ttfb_us.is_some() };
        if self.calls.insert(id.clone(), call).is_some() {
            self.fault(format!("call {id} has a second record, line {seq}"));
        }
        let tokens = record.tokens.input + record.tokens.output;
        if record.outcome == Outcome::Complete {
            self.largest_call = self.largest_call.max(tokens);
        }
        if record.outcome == Outcome::Refused {
            return;
        }
        let run = self.runs.entry(record.run_id.to_string()).or_default();
        let account = self.accounts.entry(record.account.to_string()).or_default();
        for sums in [run, account] {
            sums.tokens += tokens;
            sums.calls += record.calls;
        }
    }
}

//! Follows the journal over every restart with nothing but a cursor, and keeps books.

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

use crate::control::Control;

/// Its name as a consumer.
const NAME: &str = "auditor";
/// Before a proxy that is down is asked again.
const AGAIN: Duration = Duration::from_millis(2);
/// Most faults to keep.
const MANY: usize = 20;

/// Follows until it is dropped.
#[derive(Debug)]
pub(crate) struct Auditor {
    books: Arc<Mutex<Books>>,
    cuts: watch::Sender<u64>,
    follows: JoinHandle<()>,
}

/// Totals of the journal as the auditor read it.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Sequence number of the last line: the cursor.
    pub(crate) at: u64,
    hash: String,
    /// Id of the journal, which every proxy is to go on with.
    journal: String,
    /// Gaps, lines that came twice, links of the chain that do not fit, calls with two records.
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
    /// The upstream had begun to answer.
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
        let follows = task::spawn("auditor", follow(control, Arc::clone(&books), cuts.subscribe()));
        Self { books, cuts, follows }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        lock(&self.books)
    }

    /// Says how far it has read, so that this may be removed.
    pub(crate) async fn acknowledge(&self, control: &Control) {
        let cursor = {
            let Books { journal, at, hash, .. } = &*self.books();
            Cursor { journal: journal.clone(), seq: *at, hash: hash.clone() }
        };
        let answer =
            control.send(Method::PUT, &format!("/v1/consumers/{NAME}"), json!(cursor).to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Its connection breaks off, wherever in a line it is.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.follows.abort();
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
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        if stream.status != 200 {
            lock(&books).fault(format!("{path} is refused: {}", stream.status));
            tokio::time::sleep(AGAIN).await;
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
        if self.faults.len() < MANY {
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

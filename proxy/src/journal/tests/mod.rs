//! Tests the journal on a real file system.

mod ahead;
mod corrections;
mod crashes;
mod in_flight;
mod lost;
mod refusals;
mod retention;

use std::{fs, ops::Deref, path::Path, sync::Arc};

use platform_core::{
    grant::Tap,
    id::{AccountId, AgentId, CallId, RunId},
    record::{
        CostSource, ExchangeRecord, Identity, JournalLine, Kind, NO_LINE, Outcome, SCHEMA_VERSION, Tokens,
        TokensSource, hash,
    },
    route::Route,
};
use platform_runtime::settings;

use super::{Committer, Durable, Error, Journal, SpaceReservation, segments};

/// A journal with one thread, which commits each mark and each line at once.
#[derive(Debug)]
struct Thread(Committer);

impl Deref for Thread {
    type Target = Journal;
    fn deref(&self) -> &Journal {
        &self.0.journal
    }
}

impl Thread {
    fn open(state: &Path, settings: settings::Journal) -> Result<Self, Error> {
        Committer::new(Arc::new(Journal::open(state, settings)?), 0).map(Self)
    }

    fn reserve_space(&self) -> Option<SpaceReservation> {
        self.0.reserve_space()
    }

    fn mark(&self, space: &mut SpaceReservation, record: &ExchangeRecord) -> Result<Durable, Error> {
        let marked = self.0.mark(space, record)?;
        self.0.end_turn();
        Ok(marked)
    }

    fn append(&self, record: &ExchangeRecord, space: Option<SpaceReservation>) -> Result<Durable, Error> {
        let appended = self.0.append(record.clone(), space, ());
        self.0.end_turn();
        Ok(appended)
    }
}

pub(crate) fn record(run: &str) -> ExchangeRecord {
    ExchangeRecord {
        ts: "2026-01-01T00:00:00.000000Z".to_owned(),
        run_id: RunId::parse(run).unwrap(),
        attempt: 0,
        account: AccountId::parse("acct").unwrap(),
        user: None,
        graph: AgentId::parse("sandbox:agent").unwrap(),
        identity: Identity::Socket,
        route: Route::ChatCompletions,
        model_asked: None,
        model_answered: None,
        finish_reason: None,
        stream: true,
        status: 200,
        outcome: Outcome::Complete,
        refusal: None,
        rule: None,
        timeout: None,
        request_bytes: 1,
        response_bytes: 2,
        ttfb_us: Some(3),
        duration_us: 4,
        tokens: Tokens::default(),
        tokens_source: TokensSource::None,
        cost_nanodollars: None,
        cost_source: CostSource::None,
        litellm_call_id: CallId::new(1, 2),
        tools: vec![],
        tool: None,
        seen: None,
        output_rate: None,
        correction: None,
        kind: Kind::Model,
        calls: 1,
        tap: Tap::Off,
    }
}

/// Opens a journal in `state` with the default settings.
fn open(state: &Path) -> Result<Thread, Error> {
    Thread::open(state, settings::Journal::default())
}

/// Opens a journal with segments of two or three lines.
fn open_small(state: &Path) -> Thread {
    let segment_size = platform_core::limit::ByteSize(1500);
    Thread::open(state, settings::Journal { segment_size, ..settings::Journal::default() }).unwrap()
}

/// Appends a record the way a call does that was sent.
fn append(journal: &Thread, record: &ExchangeRecord) -> u64 {
    let mut space = journal.reserve_space();
    if let Some(space) = &mut space {
        drop(journal.mark(space, record).unwrap());
    }
    drop(journal.append(record, space).unwrap());
    journal.last_seq()
}

/// Returns the path of the first segment.
fn first_file(state: &Path) -> std::path::PathBuf {
    state.join("journal/00000000000000000001.ndjson")
}

/// Returns all lines on the disk, from file to file.
fn lines(state: &Path) -> Vec<String> {
    let segments = segments::list(&state.join("journal")).unwrap();
    let text: String = segments.iter().map(|segment| fs::read_to_string(&segment.path).unwrap()).collect();
    text.lines().map(str::to_owned).collect()
}

/// Asserts that the lines are numbered from `first` and chained; returns how many they are.
fn assert_chained(state: &Path, first: u64) -> usize {
    let mut before = None;
    let lines = lines(state);
    for (seq, text) in (first..).zip(&lines) {
        let line: JournalLine = serde_json::from_str(text).unwrap();
        assert_eq!(line.seq, seq);
        assert_eq!(
            line.prev.as_bytes(),
            before.unwrap_or_else(|| if first == 1 {
                NO_LINE
            } else {
                line.prev.as_bytes().try_into().unwrap()
            })
        );
        before = Some(hash(text.as_bytes()));
    }
    lines.len()
}

#[test]
fn lines_stay_sequenced_and_chained_on_restart() {
    let dir = tempfile::tempdir().unwrap();
    let id = {
        let journal = open(dir.path()).unwrap();
        append(&journal, &record("r1"));
        append(&journal, &record("r2"));
        journal.id().to_owned()
    };
    let journal = open(dir.path()).unwrap();
    assert_eq!((journal.id(), journal.last_seq()), (id.as_str(), 2));
    assert_eq!(append(&journal, &record("r3")), 3);
    assert_eq!(assert_chained(dir.path(), 1), 3);
}

#[test]
fn a_torn_last_line_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    append(&open(dir.path()).unwrap(), &record("r1"));
    let path = first_file(dir.path());
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + &whole[..40]).unwrap();
    let journal = open(dir.path()).unwrap();
    assert_eq!(append(&journal, &record("r2")), 2);
    assert_eq!(lines(dir.path()).len(), 2);
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = first_file(dir.path());
    fs::create_dir(dir.path().join("journal")).unwrap();
    fs::write(&path, "precious notes\n").unwrap();
    assert!(matches!(open(dir.path()), Err(Error::Corrupt { offset: 0, .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious notes\n");
}

#[test]
fn a_line_has_the_published_fields_in_order() {
    let dir = tempfile::tempdir().unwrap();
    append(&open(dir.path()).unwrap(), &record("r1"));
    let golden = include_str!("../../../tests/golden/journal-line.json").trim_end();
    assert_eq!(lines(dir.path()), [golden]);
}

#[tokio::test]
async fn a_follower_sees_old_lines_then_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).unwrap();
    append(&journal, &record("r1"));
    append(&journal, &record("r2"));
    let mut follower = journal.follow(Some(1), None).unwrap();
    assert_eq!(follower.batch().unwrap(), format!("{}\n", lines(dir.path())[1]));
    assert!(follower.batch().unwrap().is_empty());
    append(&journal, &record("r3"));
    follower.wait_for_more().await;
    assert_eq!(follower.batch().unwrap(), format!("{}\n", lines(dir.path())[2]));
}

#[test]
fn a_journal_has_one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    assert!(matches!(open(dir.path()), Err(Error::InUse { .. })));
    drop(first);
    assert!(open(dir.path()).is_ok());
}

/// Stores of the last installations have this version.
#[test]
fn lines_of_an_earlier_version_are_read() {
    let golden = include_str!("../../../tests/golden/journal-line.json").trim_end();
    let older = include_str!("../../../tests/golden/journal-line-3.json");
    let line: JournalLine = serde_json::from_str(older).unwrap();
    let now = JournalLine { v: SCHEMA_VERSION, ..line };
    assert_eq!(serde_json::to_string(&now).unwrap(), golden);
}

/// A proxy that is older than the journal reports that, and repairs nothing.
#[test]
fn a_journal_of_a_newer_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    append(&open(dir.path()).unwrap(), &record("r1"));
    let path = first_file(dir.path());
    let newer = fs::read_to_string(&path).unwrap().replacen("{\"v\":5", "{\"v\":6", 1);
    fs::write(&path, &newer).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Newer { offset: 0, version: 6, .. }), "{error}");
    assert!(error.to_string().contains("has schema version 6, and this program reads up to 5"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[test]
fn lines_and_followers_go_on_over_files() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_small(dir.path());
    let mut live = journal.follow(None, None).unwrap();
    let mut read = String::new();
    for n in 1..=40 {
        append(&journal, &record(&format!("r{n}")));
        if n % 7 == 0 {
            read += std::str::from_utf8(&live.batch().unwrap()).unwrap();
        }
    }
    read += std::str::from_utf8(&live.batch().unwrap()).unwrap();
    let all = lines(dir.path());
    assert_eq!(read.lines().collect::<Vec<_>>(), all, "nothing is missed, nothing seen twice");
    assert_eq!(assert_chained(dir.path(), 1), 40);
    assert!(segments::list(&dir.path().join("journal")).unwrap().len() > 10);
    for after in 0..=41 {
        let text = journal.follow(Some(after), Some(journal.id())).unwrap().batch().unwrap();
        let expected = all.get(usize::try_from(after).unwrap()..).unwrap_or_default();
        assert_eq!(
            std::str::from_utf8(&text).unwrap().lines().collect::<Vec<_>>(),
            expected,
            "after {after}"
        );
    }
    assert!(matches!(journal.follow(Some(1), Some("other")), Err(Error::Changed { .. })));
    drop(journal);
    let journal = open_small(dir.path());
    assert_eq!(append(&journal, &record("r41")), 41);
    assert_eq!(assert_chained(dir.path(), 1), 41);
}

#[test]
fn a_line_is_found_by_its_number_in_a_large_file() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).unwrap();
    for n in 1..=3000 {
        append(&journal, &record(&format!("r{n}")));
    }
    assert!(fs::metadata(first_file(dir.path())).unwrap().len() > 1 << 20);
    for seq in [1, 2, 3, 50, 1499, 1500, 2999, 3000] {
        let text = journal.follow(Some(seq - 1), None).unwrap().batch().unwrap();
        let line: JournalLine =
            serde_json::from_slice(text.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        assert_eq!((line.seq, line.record.run_id.to_string()), (seq, format!("r{seq}")));
    }
}

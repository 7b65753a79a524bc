//! The journal on a real file system.

use std::fs;

use platform_core::{
    grant::Tap,
    id::{AccountId, AgentId, CallId, RunId},
    record::{
        CostSource, ExchangeRecord, Identity, JournalLine, Kind, Outcome, SCHEMA_VERSION, Tokens,
        TokensSource,
    },
    route::Route,
};

use super::{Error, Journal, NO_LINE, hash};

fn record(run: &str) -> ExchangeRecord {
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
        kind: Kind::Model,
        calls: 1,
        tap: Tap::Off,
    }
}

fn lines(dir: &std::path::Path) -> Vec<String> {
    fs::read_to_string(super::segment::path(dir)).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn lines_are_sequenced_and_chained_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let id = {
        let journal = Journal::open(dir.path()).unwrap();
        journal.append(&record("r1")).unwrap();
        journal.append(&record("r2")).unwrap();
        journal.id().to_owned()
    };
    let journal = Journal::open(dir.path()).unwrap();
    assert_eq!((journal.id(), journal.last_seq()), (id.as_str(), 2));
    assert_eq!(journal.append(&record("r3")).unwrap(), 3);
    let mut before = NO_LINE;
    for (index, text) in lines(dir.path()).iter().enumerate() {
        let line: JournalLine = serde_json::from_str(text).unwrap();
        assert_eq!((line.seq, line.prev.as_bytes()), (index as u64 + 1, &before[..]));
        before = hash(text.as_bytes());
    }
}

#[test]
fn a_torn_last_line_is_cut_off_and_the_chain_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    Journal::open(dir.path()).unwrap().append(&record("r1")).unwrap();
    let path = super::segment::path(dir.path());
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.clone() + &whole[..40]).unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    assert_eq!(journal.append(&record("r2")).unwrap(), 2);
    assert_eq!(lines(dir.path()).len(), 2);
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = super::segment::path(dir.path());
    fs::write(&path, "precious notes\n").unwrap();
    assert!(matches!(Journal::open(dir.path()), Err(Error::Corrupt { offset: 0, .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious notes\n");
}

#[test]
fn the_line_on_disk_has_the_published_fields_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    Journal::open(dir.path()).unwrap().append(&record("r1")).unwrap();
    let golden = include_str!("../../tests/golden/journal-line.json").trim_end();
    assert_eq!(lines(dir.path()), [golden]);
}

#[tokio::test]
async fn a_follower_sees_old_lines_after_its_cursor_then_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    journal.append(&record("r1")).unwrap();
    journal.append(&record("r2")).unwrap();
    let mut follower = journal.follow(1).unwrap();
    assert_eq!(follower.batch().unwrap(), format!("{}\n", lines(dir.path())[1]));
    assert!(follower.batch().unwrap().is_empty());
    journal.append(&record("r3")).unwrap();
    follower.more().await;
    assert_eq!(follower.batch().unwrap(), format!("{}\n", lines(dir.path())[2]));
}

#[test]
fn a_journal_has_one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = Journal::open(dir.path()).unwrap();
    assert!(matches!(Journal::open(dir.path()), Err(Error::InUse { .. })));
    drop(first);
    assert!(Journal::open(dir.path()).is_ok());
}

#[test]
fn lines_of_the_first_version_are_still_read() {
    let older = include_str!("../../tests/golden/journal-line-1.json").trim_end();
    let line: JournalLine = serde_json::from_str(older).unwrap();
    let now = JournalLine { v: SCHEMA_VERSION, ..line };
    assert_eq!(
        serde_json::to_string(&now).unwrap(),
        include_str!("../../tests/golden/journal-line.json").trim_end()
    );
}

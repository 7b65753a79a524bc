//! Tests corrections of records by the upstream's ledger.

use platform_core::{
    id::CallId,
    limit::ByteSize,
    money::NanoDollars,
    record::{ExchangeRecord, Figures, LedgerFigures, Tokens, TokensSource},
};
use platform_runtime::settings;

use super::{Thread, append, assert_chained, lines, open, open_small, record};
use crate::journal::{Corrected, Journal};

const SEEN: Figures = Figures { input: 10, output: 20, cost_nanodollars: NanoDollars(30) };

fn figures(input: u64, output: u64, cost: u64) -> Figures {
    Figures { input, output, cost_nanodollars: NanoDollars(cost) }
}

/// Returns the record of call `n`, which was cut: booked at ten times what was seen.
fn cut(n: u128) -> ExchangeRecord {
    ExchangeRecord {
        litellm_call_id: CallId::new(1, n),
        tokens: Tokens { input: 100, output: 200, ..Tokens::default() },
        tokens_source: TokensSource::Estimated,
        cost_nanodollars: Some(NanoDollars(300)),
        seen: Some(Box::new(SEEN)),
        ..record("r1")
    }
}

fn ledger(n: u128, Figures { input, output, cost_nanodollars }: Figures) -> LedgerFigures {
    let call_id = CallId::new(1, n);
    LedgerFigures {
        call_id,
        input: Some(input),
        output: Some(output),
        cost_nanodollars: Some(cost_nanodollars),
    }
}

/// Returns what counts for the account and for the run `r1`.
fn counted(journal: &Journal) -> [Figures; 2] {
    let totals = journal.usage_totals(|_, _| false).unwrap();
    let run = totals.by_run.values().next().unwrap().usage;
    [totals.by_account.into_values().next().unwrap(), run]
        .map(|usage| figures(usage.tokens.input, usage.tokens.output, usage.cost_nanodollars.0))
}

fn is_written(corrected: &Corrected) -> bool {
    matches!(corrected, Corrected::Written(_))
}

#[test]
fn a_correction_outlives_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    append(&journal, &record("r1"));
    append(&journal, &cut(1));
    assert_eq!(counted(&journal), [figures(100, 200, 300); 2], "the control");
    let told = ledger(1, figures(50, 60, 70));
    assert!(is_written(&journal.correct(&told).unwrap()));
    assert!(matches!(journal.correct(&told).unwrap(), Corrected::Unchanged), "once");
    assert_eq!((counted(&journal), lines(state.path()).len()), ([figures(50, 60, 70); 2], 3));
    drop(journal);
    // Killed: the lines are read again. Then with a checkpoint.
    for _restart in 0..2 {
        let journal = open(state.path()).unwrap();
        assert_eq!(counted(&journal), [figures(50, 60, 70); 2]);
        assert!(matches!(journal.correct(&told).unwrap(), Corrected::Unchanged), "once, whatever restarts");
        journal.make_checkpoint(&|_, _| false).unwrap();
    }
    let journal = open(state.path()).unwrap();
    assert!(is_written(&journal.correct(&ledger(1, figures(90, 90, 90))).unwrap()), "another row has come");
    assert_eq!(counted(&journal), [figures(90, 90, 90); 2]);
    assert_eq!(assert_chained(state.path(), 1), 4);
}

#[test]
fn nothing_counts_less_than_was_seen() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    append(&journal, &cut(1));
    assert!(is_written(&journal.correct(&ledger(1, Figures::default())).unwrap()));
    assert_eq!(counted(&journal), [SEEN; 2]);
    // What the ledger does not know stays as it was booked.
    let unknown =
        LedgerFigures { input: None, output: None, cost_nanodollars: None, ..ledger(1, Figures::default()) };
    assert!(is_written(&journal.correct(&unknown).unwrap()));
    assert_eq!(counted(&journal), [figures(100, 200, 300); 2]);
}

#[test]
fn only_estimated_calls_are_corrected() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    for (n, tokens_source) in [(1, TokensSource::Exact), (2, TokensSource::None), (3, TokensSource::Partial)]
    {
        append(&journal, &ExchangeRecord { tokens_source, ..cut(n) });
    }
    for n in [1, 2, 4] {
        assert!(matches!(journal.correct(&ledger(n, SEEN)).unwrap(), Corrected::NotOpen), "{n}");
    }
    assert!(is_written(&journal.correct(&ledger(3, SEEN)).unwrap()), "the control");
}

/// The account keeps what was corrected; a later attempt of the run has its own budget.
#[test]
fn a_correction_is_of_its_attempt() {
    let state = tempfile::tempdir().unwrap();
    let journal = open(state.path()).unwrap();
    append(&journal, &cut(1));
    append(&journal, &ExchangeRecord { attempt: 1, ..cut(2) });
    assert!(is_written(&journal.correct(&ledger(1, SEEN)).unwrap()));
    assert_eq!(counted(&journal), [figures(110, 220, 330), figures(100, 200, 300)]);
    assert!(is_written(&journal.correct(&ledger(2, SEEN)).unwrap()), "the control");
    assert_eq!(counted(&journal), [figures(20, 40, 60), SEEN]);
}

#[test]
fn a_call_whose_line_is_gone_is_not_corrected() {
    let state = tempfile::tempdir().unwrap();
    let settings = settings::Journal {
        segment_size: ByteSize(1500),
        disk_budget: ByteSize(4000),
        ..settings::Journal::default()
    };
    let journal = Thread::open(state.path(), settings).unwrap();
    for n in 1..=20 {
        append(&journal, &cut(n));
    }
    let summed = journal.make_checkpoint(&|_, _| false).unwrap();
    journal.remove_old(summed, std::time::SystemTime::now()).unwrap();
    assert!(journal.oldest().unwrap() > 1);
    let before = counted(&journal);
    assert!(matches!(journal.correct(&ledger(1, SEEN)).unwrap(), Corrected::NotOpen));
    assert_eq!(counted(&journal), before);
    assert!(is_written(&journal.correct(&ledger(20, SEEN)).unwrap()), "the control");
    drop(journal);
    assert!(matches!(open_small(state.path()).correct(&ledger(1, SEEN)).unwrap(), Corrected::NotOpen));
}

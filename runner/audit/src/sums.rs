//! Sums records up by run, account or model.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    time::UNIX_EPOCH,
};

use platform_core::{control::InexactCalls, money::NanoDollars, record::Tokens};

use super::{Entry, histogram::Histogram};

/// Property by which records are grouped. The comments on the variants are help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The run that called
    Run,
    /// The account that pays
    Account,
    /// The model that was asked for
    Model,
}

/// Figure by which sums are sorted, the largest first. The comments on the variants are help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// The tokens of prompts and answers
    Tokens,
    /// The cost of the calls
    Cost,
    /// The failed calls among those that were not refused
    Errors,
    /// The slowest hundredth of the calls
    Latency,
    /// The calls that were not refused
    Calls,
}

/// Seconds during which a call counts as recent.
const RECENT_SECONDS: u64 = 60;

/// Sums over records. One record may stand for many refused calls, and counts as that many.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Calls that were not refused.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Failed calls among those that were not refused.
    pub errors: u64,
    /// Tokens of all records, those of refused calls included.
    pub tokens: Tokens,
    /// Cost of all records. A record without a known cost adds nothing.
    pub cost: NanoDollars,
    /// Calls with inexact figures.
    pub inexact: InexactCalls,
    /// Microseconds until the first byte of the upstream's answer, for each record that has them.
    pub first: Histogram,
    /// Microseconds until the end, for calls that were not refused.
    pub whole: Histogram,
    /// Calls, including refused ones, by the second in which they began.
    recent: VecDeque<(u64, u64)>,
}

/// Sums for each run, account or model, by its name.
#[derive(Debug)]
pub struct Groups {
    by: By,
    sums: HashMap<Box<str>, Sums>,
}

impl By {
    /// All groupings, in the order in which they are declared.
    pub const ALL: [Self; 3] = [Self::Run, Self::Account, Self::Model];

    /// Returns the word for one of the groups.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Account => "account",
            Self::Model => "model",
        }
    }

    /// Returns the name of the group that `entry` belongs to.
    pub fn group_of<'e>(self, entry: &'e Entry<'_>) -> &'e str {
        match self {
            Self::Run => entry.run_id(),
            Self::Account => entry.account(),
            Self::Model => entry.model(),
        }
    }
}

impl Groups {
    /// Creates empty sums, grouped by `by`.
    pub fn new(by: By) -> Self {
        Self { by, sums: HashMap::new() }
    }

    /// Adds a record to the sums of its run, account or model.
    pub fn add(&mut self, entry: &Entry<'_>) {
        let name = self.by.group_of(entry);
        match self.sums.get_mut(name) {
            Some(sums) => sums.add(entry),
            None => self.sums.entry(name.into()).or_default().add(entry),
        }
    }

    /// Returns the sums, the largest by `sort` first. Equal ones are sorted by name.
    pub fn sorted(&self, sort: Sort) -> Vec<(&str, &Sums)> {
        let mut all: Vec<_> = self.sums.iter().map(|(name, sums)| (&**name, sums)).collect();
        all.sort_by_cached_key(|(name, sums)| (Reverse(sums.sort_value(sort)), *name));
        all
    }

    /// Returns the property by which the records are grouped.
    pub const fn by(&self) -> By {
        self.by
    }
}

impl Sums {
    /// Adds a record for all calls that it stands for.
    pub fn add(&mut self, entry: &Entry<'_>) {
        if let Some(correction) = &entry.correction {
            correction.apply(&mut self.tokens, &mut self.cost);
            return;
        }
        if entry.outcome == platform_core::record::Outcome::Refused {
            self.refused = self.refused.saturating_add(entry.calls);
        } else {
            self.calls = self.calls.saturating_add(entry.calls);
            self.errors = self.errors.saturating_add(if entry.is_error() { entry.calls } else { 0 });
            self.whole.add(entry.duration_us);
        }
        entry.ttfb_us.into_iter().for_each(|ttfb| self.first.add(ttfb));
        self.tokens += entry.tokens;
        self.cost = self.cost + entry.cost_nanodollars.unwrap_or_default();
        self.inexact += InexactCalls::of(entry.calls, entry.tokens_source, entry.cost_nanodollars);
        self.count_recent(entry);
    }

    /// Returns the tokens of prompts and answers.
    pub const fn all_tokens(&self) -> u64 {
        self.tokens.input.saturating_add(self.tokens.output)
    }

    /// Returns the number of calls that began in the minute before `now`, in seconds since 1970.
    pub fn per_minute(&self, now: u64) -> u64 {
        self.recent
            .iter()
            .filter(|(second, _)| second + RECENT_SECONDS > now)
            .fold(0, |sum, (_, calls)| u64::saturating_add(sum, *calls))
    }

    fn count_recent(&mut self, entry: &Entry<'_>) {
        let began = humantime::parse_rfc3339(entry.ts()).ok();
        let since_epoch = began.and_then(|began| began.duration_since(UNIX_EPOCH).ok());
        let Some(second) = since_epoch.map(|since| since.as_secs()) else { return };
        while self.recent.front().is_some_and(|(old, _)| old + RECENT_SECONDS <= second) {
            self.recent.pop_front();
        }
        match self.recent.iter_mut().rev().find(|(counted, _)| *counted == second) {
            Some((_, calls)) => *calls = calls.saturating_add(entry.calls),
            None => self.recent.push_back((second, entry.calls)),
        }
    }

    fn sort_value(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Tokens => self.all_tokens(),
            Sort::Cost => self.cost.0,
            Sort::Errors => self.errors,
            Sort::Latency => self.whole.percentile(99).unwrap_or(0),
            Sort::Calls => self.calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(run: &str, outcome: &str, (calls, tokens): (u64, u64)) -> String {
        format!(
            r#"{{"v":3,"seq":1,"ts":"2026-11-21T08:30:0{calls}.000000Z","run_id":"{run}","account":"a","model_asked":"m",
            "model_answered":null,"status":200,"outcome":"{outcome}","refusal":null,"ttfb_us":null,"duration_us":5,
            "tokens":{{"input":{tokens},"output":1,"cached":0,"reasoning":0}},"tokens_source":"exact","kind":"model","cost_nanodollars":7,"calls":{calls}}}"#
        )
    }

    #[test]
    fn a_line_counts_for_all_its_calls() {
        let lines = [
            line("r1", "refused", (9, 0)),
            line("r2", "complete", (1, 10)),
            line("r2", "timed_out", (1, 20)),
        ];
        let mut groups = [By::Run, By::Account].map(Groups::new);
        for line in &lines {
            let entry = Entry::parse(line.as_bytes()).unwrap();
            groups.iter_mut().for_each(|groups| groups.add(&entry));
        }
        let rows = |groups: &Groups| -> Vec<_> {
            let row = |(name, sums): (&str, &Sums)| {
                (name.to_owned(), sums.calls, sums.refused, sums.errors, sums.all_tokens())
            };
            groups.sorted(Sort::Calls).into_iter().map(row).collect()
        };
        assert_eq!(rows(&groups[0]), [("r2".to_owned(), 2, 0, 1, 32), ("r1".to_owned(), 0, 9, 0, 1)]);
        assert_eq!(rows(&groups[1]), [("a".to_owned(), 2, 9, 1, 33)]);
        let (_, sums) = groups[1].sorted(Sort::Cost)[0];
        let start = 1_795_249_800;
        assert_eq!(
            (sums.cost, sums.per_minute(start + 30), sums.per_minute(start + 68)),
            (NanoDollars(21), 11, 9)
        );
    }
}

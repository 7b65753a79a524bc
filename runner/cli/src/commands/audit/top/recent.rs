//! Keeps the latest lines of the journal, to show the last calls of a run, an account or a model.

use std::collections::VecDeque;

use runner_audit::{By, Entry};

/// Most lines that are kept: about two megabytes.
const MAX_LINES: usize = 2000;

/// Latest lines of the journal.
#[derive(Debug, Default)]
pub(super) struct RecentLines(VecDeque<Box<[u8]>>);

/// Latest lines, seen as calls of runs, of accounts or of models.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecentCalls<'r> {
    lines: &'r RecentLines,
    by: By,
}

impl RecentLines {
    pub(super) fn add(&mut self, line: &[u8]) {
        if self.0.len() == MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.into());
    }

    /// Returns the lines as calls of the groups of `by`.
    pub(super) const fn by(&self, by: By) -> RecentCalls<'_> {
        RecentCalls { lines: self, by }
    }
}

impl<'r> RecentCalls<'r> {
    /// Returns the last `count` lines of the group `name`, the newest first.
    pub(super) fn last_of(self, name: &str, count: usize) -> Vec<&'r [u8]> {
        let is_of = |line: &[u8]| Entry::parse(line).is_ok_and(|entry| self.by.group_of(&entry) == name);
        self.lines.0.iter().rev().map(|line| &**line).filter(|line| is_of(line)).take(count).collect()
    }
}

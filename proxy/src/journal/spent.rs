//! What the journal says was spent, read once when the proxy starts, before anybody can call.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use platform_core::{
    control::Usage,
    id::{AccountId, RunId},
    money::NanoDollars,
    record::{Outcome, Tokens},
};
use serde::Deserialize;

/// What was spent by each account, and by each run that may call again.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    pub(crate) by_account: HashMap<AccountId, Usage>,
    pub(crate) by_run: HashMap<RunId, Usage>,
}

/// The fields of a line that tell what was spent.
#[derive(Deserialize)]
struct Line {
    run_id: RunId,
    account: AccountId,
    outcome: Outcome,
    tokens: Tokens,
    cost_nanodollars: Option<NanoDollars>,
}

/// Sums up the file at `path`. Runs of which `is_closed` are left out.
pub(super) fn read(path: &Path, is_closed: impl Fn(&RunId) -> bool) -> io::Result<SoFar> {
    let mut so_far = SoFar::default();
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut text = Vec::new();
    while file.read_until(b'\n', &mut text)? > 0 {
        let line: Line = serde_json::from_slice(&text)?;
        let cost = line.cost_nanodollars.unwrap_or_default();
        let add = |usage: &mut Usage| usage.add(line.outcome, &line.tokens, cost);
        add(so_far.by_account.entry(line.account).or_default());
        if !is_closed(&line.run_id) {
            add(so_far.by_run.entry(line.run_id).or_default());
        }
        text.clear();
    }
    Ok(so_far)
}

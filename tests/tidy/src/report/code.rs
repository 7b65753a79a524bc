//! code measures product code: files, functions, loops of modules, names and constants.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Section, percent};
use crate::{
    Error,
    comments::{self, Kind},
    habits, modules, names,
    size::{self, percentile},
    sources::Repository,
};

/// Measures the files and functions.
pub(super) fn size(repository: &Repository) -> Result<Section, Error> {
    let mut lines: Vec<usize> = repository.product().map(|file| file.text.lines().count()).collect();
    lines.sort_unstable();
    let total: usize = lines.iter().sum();
    let at_most = |most: usize| lines.iter().filter(|lines| **lines <= most).count();
    let in_long: usize = lines.iter().filter(|lines| **lines > 1000).sum();
    let functions = size::count(repository.product())?.functions;
    let mut lengths: Vec<usize> = functions.iter().map(|function| function.lines).collect();
    lengths.sort_unstable();
    let longer = |than: usize| lengths.iter().filter(|length| **length > than).count();
    let rows = vec![
        row("lines / files", json!({ "lines": total, "files": lines.len() })),
        row("files of at most 300 lines, %", percent(at_most(300), lines.len())),
        row("files of at most 500 lines, %", percent(at_most(500), lines.len())),
        row("lines in files of more than 1,000, %", percent(in_long, total)),
        row("lines of a file", spread(&lines)),
        row("functions", Value::from(functions.len())),
        row("lines of a function", spread(&lengths)),
        row("functions of more than 50 / 100 lines", json!({ "50": longer(50), "100": longer(100) })),
    ];
    Ok(Section { title: "Size", rows })
}

/// Measures what functions take and call.
pub(super) fn shape(repository: &Repository) -> Result<Section, Error> {
    let counts = size::count(repository.product())?;
    let many = |least: usize| counts.functions.iter().filter(|each| each.parameters >= least).count();
    let flags: usize = counts.functions.iter().map(|function| function.flags).sum();
    let mut tuples = 0;
    let mut pairs = 0;
    let mut documentation = 0;
    let mut plain = 0;
    let mut lines = 0;
    for file in repository.product() {
        let found = habits::find(file)?;
        tuples += found.tuple_parameters.len();
        pairs += found.paired_lets.len();
        lines += file.text.lines().count();
        for line in comments::lines(&file.text) {
            *(if line.kind == Kind::Plain { &mut plain } else { &mut documentation }) += 1;
        }
    }
    let rows = vec![
        row("functions of at least 6 / 8 parameters", json!({ "6": many(6), "8": many(8) })),
        row("functions with a tuple parameter", Value::from(tuples)),
        row("`let (a, b) = (x, y);`", Value::from(pairs)),
        row("calls of `drop(…)`", Value::from(counts.drops)),
        row("`unwrap` / `expect`", json!({ "unwrap": counts.unwraps, "expect": counts.expects })),
        row("bool parameters", Value::from(flags)),
        row("documentation, % of lines", percent(documentation, lines)),
        row("plain comments, % of lines", percent(plain, lines)),
    ];
    Ok(Section { title: "Shape", rows })
}

/// Measures each crate's modules and their loops.
pub(super) fn loops(repository: &Repository) -> Result<Section, Error> {
    let mut rows = Vec::new();
    for own in repository.crates() {
        let files: Vec<_> = modules::tree(repository, own).collect();
        if files.is_empty() {
            continue;
        }
        let top = modules::top_level(repository, own)?;
        let largest = modules::by_file(repository, own)?.loops().first().map_or(0, |group| group.len());
        let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
        let value = json!({
            "files": files.len(),
            "lines": lines,
            "top-level modules": top.modules().count(),
            "largest loop of files": largest,
            "top-level modules in a loop": top.looped().into_iter().collect::<Vec<_>>(),
        });
        rows.push(row(&own.dir, value));
    }
    Ok(Section { title: "Modules and loops", rows })
}

/// Lists the type names with the most meanings.
pub(super) fn names(repository: &Repository) -> Result<Section, Error> {
    let meanings = names::types(repository.product())?;
    let counts = meanings.into_iter().map(|(name, places)| (name, places.len()));
    Ok(Section { title: "Type names with many meanings", rows: most_first(counts, names::MEANINGS + 1) })
}

/// Counts the constants with names that say too little.
pub(super) fn constants(repository: &Repository) -> Result<Section, Error> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in repository.product() {
        for constant in habits::find(file)?.vague_constants {
            *counts.entry(constant.what).or_default() += 1;
        }
    }
    Ok(Section { title: "Vague constants", rows: most_first(counts.into_iter(), 1) })
}

fn most_first(counts: impl Iterator<Item = (String, usize)>, least: usize) -> Vec<(String, Value)> {
    let mut counts: Vec<_> = counts.filter(|(_, count)| *count >= least).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().map(|(name, count)| (name, Value::from(count))).collect()
}

/// Returns how sorted values are spread.
pub(super) fn spread(sorted: &[usize]) -> Value {
    json!({
        "median": percentile(sorted, 50),
        "p90": percentile(sorted, 90),
        "p99": percentile(sorted, 99),
        "max": sorted.last().copied().unwrap_or_default(),
    })
}

/// Returns a named measurement.
pub(super) fn row(name: &str, value: Value) -> (String, Value) {
    (name.to_owned(), value)
}

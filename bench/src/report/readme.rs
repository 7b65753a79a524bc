//! Writes the benchmark's part of a README, between `<!-- bench:begin -->` and `<!-- bench:end -->`.

use std::{fs, io, path::Path};

use super::{Record, Row, headline};
use crate::peer;

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// Writes plot and figures of `record`, kept in `dir`, into the README at `path`, which `dir` is relative to.
///
/// # Errors
/// If the file cannot be read or written, or has no marks for them.
pub fn write(path: &Path, record: &Record, dir: &Path) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    let written = replace(&text, &section(record, dir)).ok_or_else(|| {
        io::Error::other(format!("{}: no {BEGIN} … {END} to write the figures between", path.display()))
    })?;
    fs::write(path, written)
}

fn replace(text: &str, section: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{section}{END}{after}"))
}

fn section(record: &Record, dir: &Path) -> String {
    let machine = &record.machine;
    let mut text =
        format!("![CPU time, latency and memory beside nginx and HAProxy]({}/plot.svg)\n\n", dir.display());
    text += &format!(
        "`make bench` on {} ({} cores, {}), commit `{}`: [all tables]({dir}/tables.md), [raw numbers]({dir}/raw.json).\n\n",
        machine.processor,
        machine.cores,
        machine.kernel,
        machine.commit,
        dir = dir.display(),
    );
    text + &overview(&record.rows)
}

/// Returns the headlines, one line per peer.
fn overview(rows: &[Row]) -> String {
    let columns: Vec<_> =
        headline::ALL.iter().filter(|headline| headline.figures(rows).next().is_some()).collect();
    let titles: Vec<_> = columns.iter().map(|headline| headline.title).collect();
    let mut text = format!("| peer | {} |\n|---|{}\n", titles.join(" | "), "--:|".repeat(titles.len()));
    let known = peer::ALL.iter().chain(&peer::ON_REQUEST).map(|peer| peer.name);
    for peer in known.filter(|name| rows.iter().any(|row| row.peer == *name)) {
        text += &format!("| {peer} |");
        for headline in &columns {
            match headline.figures(rows).find(|(name, _)| *name == peer) {
                Some((_, value)) => text += &format!(" {value:.1} |"),
                None => text += " – |",
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(replace(&text, "new\n").unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert_eq!(replace("no marks", "new"), None);
    }
}

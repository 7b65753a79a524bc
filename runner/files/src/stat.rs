//! Formats the figures of differences as `git diff --stat` does.

use std::fmt::Write as _;

use super::{diff::DiffFigures, path::RelativePath};

/// Columns of the whole text.
const WIDTH: usize = 80;
/// Most columns of a name.
const MAX_NAME_COLUMNS: usize = 50;

/// File with the figures of its difference.
#[derive(Debug, Clone)]
pub struct FileFigures {
    /// The file.
    pub path: RelativePath,
    /// Figures of its difference.
    pub figures: DiffFigures,
}

/// Returns one line for each file, and one with the sums.
#[must_use]
pub fn stat_text(files: &[FileFigures]) -> String {
    let names: Vec<_> = files.iter().map(|file| shortened(&file.path.git_quoted(""))).collect();
    let name_columns = names.iter().map(String::len).max().unwrap_or_default();
    let most = files.iter().map(|file| file.figures.lines()).max().unwrap_or_default();
    let number_columns = most.to_string().len();
    let graph_columns = WIDTH.saturating_sub(name_columns + number_columns + 5).max(10) as u64;
    let mut text = String::new();
    for (file, name) in files.iter().zip(names) {
        let figures = match &file.figures {
            DiffFigures::Lines { insertions, deletions } => {
                let scaled = |count: u64| scale(count, most, graph_columns);
                let graph = "+".repeat(scaled(*insertions)) + &"-".repeat(scaled(*deletions));
                let count = insertions + deletions;
                format!("{count:>number_columns$} {graph}").trim_end().to_owned()
            }
            DiffFigures::Binary { old_size, new_size } => format!("Bin {old_size} -> {new_size} bytes"),
            DiffFigures::Uncompared(why) => format!("not compared: {why}"),
        };
        push_line(&mut text, format_args!(" {name:<name_columns$} | {figures}"));
    }
    text + &sums(files)
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A String takes all.
    if writeln!(text, "{line}").is_err() {
        text.push('\n');
    }
}

fn sums(files: &[FileFigures]) -> String {
    let sum = |count: fn(&DiffFigures) -> u64| files.iter().map(|file| count(&file.figures)).sum::<u64>();
    let [insertions, deletions] = [sum(DiffFigures::insertions), sum(DiffFigures::deletions)];
    let counted = |count: u64, noun: &str, sign: &str| match count {
        0 => String::new(),
        1 => format!(", 1 {noun}({sign})"),
        count => format!(", {count} {noun}s({sign})"),
    };
    let noun = if files.len() == 1 { "file" } else { "files" };
    let changed = format!(" {} {noun} changed", files.len());
    changed + &counted(insertions, "insertion", "+") + &counted(deletions, "deletion", "-") + "\n"
}

/// Returns the columns of `count`, where `most` fills all of them; at least one for any count.
fn scale(count: u64, most: u64, columns: u64) -> usize {
    let scaled = if most <= columns || count == 0 { count } else { 1 + count * (columns - 1) / most };
    usize::try_from(scaled).unwrap_or_default()
}

/// Returns the end of a name that is too long. A quoted name is ASCII.
fn shortened(name: &str) -> String {
    match name.len().checked_sub(MAX_NAME_COLUMNS) {
        None | Some(0) => name.to_owned(),
        Some(_) => format!("...{}", &name[name.len() - (MAX_NAME_COLUMNS - 3)..]),
    }
}

impl DiffFigures {
    /// Returns the number of lines that are new.
    #[must_use]
    pub const fn insertions(&self) -> u64 {
        match self {
            Self::Lines { insertions, .. } => *insertions,
            Self::Binary { .. } | Self::Uncompared(_) => 0,
        }
    }

    /// Returns the number of lines that are gone.
    #[must_use]
    pub const fn deletions(&self) -> u64 {
        match self {
            Self::Lines { deletions, .. } => *deletions,
            Self::Binary { .. } | Self::Uncompared(_) => 0,
        }
    }

    const fn lines(&self) -> u64 {
        self.insertions() + self.deletions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, figures: DiffFigures) -> FileFigures {
        FileFigures { path: RelativePath::parse(path).unwrap(), figures }
    }

    #[test]
    fn figures_read_as_gits() {
        let text = stat_text(&[
            file("a.rs", DiffFigures::Lines { insertions: 2, deletions: 1 }),
            file("new\nline", DiffFigures::Binary { old_size: 0, new_size: 7 }),
            file("mode", DiffFigures::Lines { insertions: 0, deletions: 0 }),
        ]);
        let expected = " a.rs        | 3 ++-\n \"new\\nline\" | Bin 0 -> 7 bytes\n mode        | 0\n 3 files changed, 2 insertions(+), 1 deletion(-)\n";
        assert_eq!(text, expected);
        let large = stat_text(&[file("a", DiffFigures::Lines { insertions: 5000, deletions: 1 })]);
        assert!(large.lines().all(|line| line.len() <= WIDTH), "{large}");
        assert!(large.contains("+-"), "even one line is seen: {large}");
    }
}

//! Formats tables for a terminal.

use std::fmt;

use platform_runtime::terminal;

/// Rows of text under a heading. Columns are as wide as their longest cell.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    /// Adds a row. Sequences that would drive the terminal are removed.
    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| terminal::safe(&cell).replace(['\n', '\t'], " ")));
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; N] = std::array::from_fn(width);
        for row in &self.rows {
            let cells: Vec<_> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_cells_cannot_break_out() {
        let mut table = Table::new(["ID", "NAME"]);
        table.row(["a".to_owned(), "long name".to_owned()]);
        table.row(["longer".to_owned(), "x\ny\x1b[31m".to_owned()]);
        assert_eq!(table.to_string(), "ID      NAME\na       long name\nlonger  x y\n");
    }
}

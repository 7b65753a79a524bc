//! Prints text of an agent without letting it control the terminal.
//!
//! Escape sequences can retitle a window, fill the clipboard or hide text. Bidirectional controls can change how a line
//! reads (CVE-2021-42574). Both are removed, visible text stays.

use std::borrow::Cow;

/// Treatment of an agent's text before it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Control, escape and bidirectional characters are removed.
    Safe,
    /// Bytes pass unchanged: for pipes that need them, at the user's own risk.
    Raw,
}

/// Filter that makes streamed text safe. An escape sequence may begin in one piece and end in another.
#[derive(Debug)]
pub struct Sanitizer {
    output: Output,
    state: State,
}

/// Position of the text in an escape sequence (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence, until a byte of `@` to `~`.
    ControlSequence,
    /// In a string (title, clipboard, device control), until BEL or ESC `\`.
    String,
    /// In a string, after ESC.
    StringEscape,
}

impl Sanitizer {
    /// Creates a filter at the beginning of a text.
    #[must_use]
    pub const fn new(output: Output) -> Self {
        Self { output, state: State::Text }
    }

    /// Returns the part of `piece` that may be printed.
    pub fn clean<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        let harmless = self.state == State::Text && piece.chars().all(is_harmless);
        if self.output == Output::Raw || harmless {
            return Cow::Borrowed(piece);
        }
        Cow::Owned(piece.chars().filter(|c| self.passes(*c)).collect())
    }

    fn passes(&mut self, c: char) -> bool {
        let (next, passes) = match (self.state, c) {
            (State::Text, '\x1b') => (State::Escape, false),
            (State::Text, '\u{9b}') => (State::ControlSequence, false),
            (State::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => (State::String, false),
            (State::Text, _) => (State::Text, is_harmless(c)),
            (State::Escape, '[') => (State::ControlSequence, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::String, false),
            // ESC, intermediates, final byte; anything else was no escape sequence and ends it.
            (State::Escape, ' '..='/' | '\x1b') => (State::Escape, false),
            (State::Escape, _) => (State::Text, false),
            (State::ControlSequence, '@'..='~') => (State::Text, false),
            (State::ControlSequence, ' '..='?') => (State::ControlSequence, false),
            // A line feed inside a sequence: the sequence was broken off, do not swallow the rest.
            (State::ControlSequence, _) => (State::Text, is_harmless(c)),
            (State::String, '\x07' | '\u{9c}') => (State::Text, false),
            (State::String, '\x1b') => (State::StringEscape, false),
            (State::String, '\n') => (State::Text, true),
            (State::String, _) => (State::String, false),
            (State::StringEscape, '\\') => (State::Text, false),
            (State::StringEscape, _) => (State::String, false),
        };
        self.state = next;
        passes
    }
}

/// Returns the part of a whole `text` that may be printed.
#[must_use]
pub fn safe(text: &str) -> Cow<'_, str> {
    Sanitizer::new(Output::Safe).clean(text)
}

/// Returns `json` with every character that could control a terminal escaped: a parser reads the same JSON.
#[must_use]
pub fn safe_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmless(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

const fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // C0, DEL, C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => false,
        // Bidirectional marks, embeddings, overrides and isolates; line and paragraph separators.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        // Invisible: tags, interlinear annotation, zero-width no-break space.
        '\u{e0000}'..='\u{e007f}' | '\u{fff9}'..='\u{fffb}' | '\u{feff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_is_removed_and_text_kept() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("Grüße, 你好 👋🏽", "Grüße, 你好 👋🏽"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2J\x1b[Hcleared", "cleared"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]52;c;ZXZpbA==\x1b\\after", "after"),
            ("\x1bP+q544e\x1b\\after", "after"),
            ("\x1bcreset", "reset"),
            ("\x1b(Bcharset", "charset"),
            ("\u{9b}31mc1", "c1"),
            ("over\rwritten\x08\x07", "overwritten"),
            ("admin\u{202e}nimda\u{2066}", "adminnimda"),
            ("tag\u{e0041}\u{feff}", "tag"),
            ("\x1b[31\nnext", "\nnext"),
            ("\x1b]0;unfinished\nnext", "\nnext"),
        ];
        for (hostile, shown) in cases {
            assert_eq!(safe(hostile), shown, "{hostile:?}");
        }
    }

    #[test]
    fn a_sequence_may_be_split_anywhere() {
        let hostile = "a\x1b[31mb\x1b]0;title\x1b\\c\u{202e}d";
        for at in (0..=hostile.len()).filter(|at| hostile.is_char_boundary(*at)) {
            let mut sanitizer = Sanitizer::new(Output::Safe);
            let first = sanitizer.clean(&hostile[..at]).into_owned();
            assert_eq!(first + &sanitizer.clean(&hostile[at..]), "abcd", "split at {at}");
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\":\"x\u{9b}31m\u{202e}\u{e0041}ä\u{7f}\"}";
        let safe = safe_json(json);
        assert_eq!(safe, "{\"a\":\"x\\u009b31m\\u202e\\udb40\\udc41ä\\u007f\"}");
        let parsed = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(parsed(&safe), parsed(json));
    }

    #[test]
    fn raw_output_is_untouched() {
        assert_eq!(Sanitizer::new(Output::Raw).clean("\x1b[31mred"), "\x1b[31mred");
    }
}

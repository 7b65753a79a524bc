//! Prints text of an agent without letting it control the terminal.
//!
//! Escape sequences can retitle a window, fill the clipboard or hide text. Bidirectional controls can change how a line
//! reads (CVE-2021-42574). Both are removed, visible text stays. A text about which a person decides has marks in the
//! places of what is not seen.

use std::{borrow::Cow, iter};

use platform_core::invisible::{Invisible, is_invisible, kind_of};

/// Most spaces in a row that are shown as they are: more could push text out of sight.
const MAX_SPACES: usize = 80;

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
            // ESC, intermediates, final byte; anything else was not an escape sequence and ends it.
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

/// Returns `json` with every character escaped that could control a terminal or is not seen: a parser reads the same JSON.
#[must_use]
pub fn safe_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmless(c) && !is_invisible(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Returns `text` on one line with a mark in the place of all that a reader does not see or that acts, such as
/// `⟨3000× U+00A0⟩`: who decides about it sees that it is there.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut count = 1;
        while chars.next_if_eq(&c).is_some() {
            count += 1;
        }
        if c.is_control() || is_invisible(c) || (c == ' ' && count > MAX_SPACES) {
            let times = if count > 1 { format!("{count}× ") } else { String::new() };
            shown += &format!("⟨{times}U+{:04X}⟩", u32::from(c));
        } else {
            shown.extend(iter::repeat_n(c, count));
        }
    }
    shown
}

/// Returns whether `c` may reach a terminal as it is: blanks, and what emoji and some scripts need, stay.
const fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // C0, DEL, C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => false,
        _ => !matches!(kind_of(c), Some(Invisible::Direction | Invisible::Hidden)),
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
            ("a\u{200b}\u{2060}\u{2065}\u{206a}\u{ad}\u{34f}\u{3164}\u{115f}b", "ab"),
            (
                "1\u{a0}000\u{3000}👩\u{200d}💻 ❤\u{fe0f} ⠿\u{2800}",
                "1\u{a0}000\u{3000}👩\u{200d}💻 ❤\u{fe0f} ⠿\u{2800}",
            ),
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
        let json = "{\"a\":\"x\u{9b}31m\u{202e}\u{e0041}ä\u{7f}\u{a0}\"}";
        let safe = safe_json(json);
        assert_eq!(safe, "{\"a\":\"x\\u009b31m\\u202e\\udb40\\udc41ä\\u007f\\u00a0\"}");
        let parsed = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(parsed(&safe), parsed(json));
    }

    #[test]
    fn who_decides_sees_what_is_not_seen() {
        let nbsp = "\u{a0}".repeat(3000);
        for (hostile, shown) in [
            ("Grüße, 你好 {\"a\":  1}", "Grüße, 你好 {\"a\":  1}"),
            (&format!("a{nbsp}b"), "a⟨3000× U+00A0⟩b"),
            ("a\u{202e}b\u{200b}\u{200b}\u{2060}", "a⟨U+202E⟩b⟨2× U+200B⟩⟨U+2060⟩"),
            ("\u{ad}\u{206a}\u{3164}\u{34f}\u{2065}", "⟨U+00AD⟩⟨U+206A⟩⟨U+3164⟩⟨U+034F⟩⟨U+2065⟩"),
            ("❤\u{fe0f}\u{e0080}\u{e01f0}", "❤⟨U+FE0F⟩⟨U+E0080⟩⟨U+E01F0⟩"),
            ("\x1b[2Ja\n\n\u{9b}b", "⟨U+001B⟩[2Ja⟨2× U+000A⟩⟨U+009B⟩b"),
            (&format!("a{}b", " ".repeat(81)), "a⟨81× U+0020⟩b"),
            (&" ".repeat(80), &" ".repeat(80)),
        ] {
            assert_eq!(visible(hostile), shown, "{hostile:?}");
        }
    }

    #[test]
    fn raw_output_is_untouched() {
        assert_eq!(Sanitizer::new(Output::Raw).clean("\x1b[31mred"), "\x1b[31mred");
    }
}

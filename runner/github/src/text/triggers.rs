//! triggers finds in a Markdown text what GitHub and its robots act on, as they may read it: as it is, and as shown.
//!
//! It shares no code with what it judges. Where readers differ, it finds more than they do.

use std::collections::BTreeSet;

use Trigger::{Alert, Footnote, Html, Image};

/// Something that GitHub or a robot acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trigger {
    Mention,
    Reference,
    Closing,
    Html,
    Image,
    Command,
    Unseen,
    FrontMatter,
    SkippedChecks,
    Alert,
    Footnote,
}

/// Entities that stand for characters with an effect, by their names.
const NAMED: [(&str, char); 6] =
    [("commat", '@'), ("num", '#'), ("sol", '/'), ("lt", '<'), ("lbrack", '['), ("excl", '!')];

const CLOSING: [&str; 9] =
    ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];

/// Returns the triggers in `text`.
pub(super) fn triggers(text: &str) -> BTreeSet<Trigger> {
    let shown = shown(text);
    let mut found = BTreeSet::new();
    for view in [text, &shown] {
        let chars: Vec<char> = view.chars().collect();
        let all = (0..chars.len()).filter_map(|at| at_char(&chars, at));
        // Escaped markup does not count; words are read as they are shown.
        let is_markup = |trigger: &Trigger| matches!(trigger, Html | Image | Alert | Footnote);
        found.extend(all.filter(|trigger| view == text || !is_markup(trigger)));
        if is_closing(view) {
            found.insert(Trigger::Closing);
        }
        let lower = view.to_lowercase();
        if ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]"]
            .iter()
            .any(|d| lower.contains(d))
        {
            found.insert(Trigger::SkippedChecks);
        }
    }
    let is_command = |line: &str| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        line.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    if text.split(['\n', '\r', '\u{2028}']).any(is_command) {
        found.insert(Trigger::Command);
    }
    let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
    if ["---", "+++"].contains(&first) {
        found.insert(Trigger::FrontMatter);
    }
    found
}

fn at_char(chars: &[char], at: usize) -> Option<Trigger> {
    let next = |distance: usize| chars.get(at + distance).copied().unwrap_or(' ');
    let is_digit = |distance: usize| next(distance).is_ascii_digit();
    match chars[at] {
        '@' if next(1).is_ascii_alphanumeric() => Some(Trigger::Mention),
        '#' if is_digit(1) => Some(Trigger::Reference),
        'g' | 'G' if next(1).eq_ignore_ascii_case(&'h') && next(2) == '-' && is_digit(3) => {
            let before = at.checked_sub(1).map(|before| chars[before]);
            before.is_none_or(|c| !c.is_ascii_alphanumeric()).then_some(Trigger::Reference)
        }
        '/' if is_web_reference(&chars[at..]) => Some(Trigger::Reference),
        '<' if next(1).is_ascii_alphabetic() || ['/', '!', '?'].contains(&next(1)) => Some(Html),
        '!' if next(1) == '[' => Some(Image),
        '[' if next(1) == '!' => Some(Alert),
        '[' if next(1) == '^' => Some(Footnote),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            Some(Trigger::Unseen)
        }
        c if c.is_control() && c != '\n' && c != '\t' => Some(Trigger::Unseen),
        _ => None,
    }
}

/// Returns whether the path of an issue or a pull request begins here: `/issues/1`.
fn is_web_reference(path: &[char]) -> bool {
    let path: String = path.iter().take(20).collect::<String>().to_lowercase();
    ["/issues/", "/pull/", "/pulls/", "/discussions/"].iter().any(|dir| {
        path.strip_prefix(dir).is_some_and(|rest| {
            rest.trim_start_matches('/').starts_with(|c: char| c.is_ascii_digit() || c == '%')
        })
    })
}

/// Returns whether a keyword stands before a reference, with at most a colon and blanks between them.
fn is_closing(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == ':').filter(|w| !w.is_empty()).collect();
    let is_keyword = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        CLOSING.contains(&word.as_str())
    };
    let is_reference = |word: &str| {
        let chars: Vec<char> = word.chars().collect();
        (0..chars.len()).any(|at| at_char(&chars, at) == Some(Trigger::Reference))
    };
    // The colon of an address ends a word, too.
    words
        .iter()
        .enumerate()
        .any(|(at, word)| is_keyword(word) && words[at + 1..].iter().take(2).any(|word| is_reference(word)))
}

/// Returns what a reader sees: without unseen characters, escapes and entities.
fn shown(text: &str) -> String {
    let is_seen =
        |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let text: String = text.chars().filter(is_seen).collect();
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let escaped = after.chars().next().filter(char::is_ascii_punctuation);
        rest = match (c, escaped, entity(after)) {
            ('\\', Some(escaped), _) => {
                shown.push(escaped);
                &after[1..]
            }
            ('&', _, Some((decoded, length))) => {
                shown.push(decoded);
                &after[length..]
            }
            _ => {
                shown.push(c);
                after
            }
        };
    }
    shown
}

/// Returns the character that an entity stands for, and the length of the entity without its ampersand.
fn entity(after: &str) -> Option<(char, usize)> {
    let name = &after[..after.find(';').filter(|end| *end < 12)?];
    let length = name.len() + 1;
    let decoded = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => char::from_u32(u32::from_str_radix(hex, 16).ok()?)?,
            None => char::from_u32(number.parse().ok()?)?,
        },
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((decoded, length))
}

//! disarm takes the effects out of an agent's text, and leaves its words.
//!
//! GitHub and its robots act on words: they notify who is mentioned, link and close issues, fetch images, take commands.
//! A space is put into each such word. It is seen, and it works alike in prose, in code and in HTML. It also works in the
//! source, which a squash merge makes the message of a commit. An entity would not do: GitHub decodes it before it looks
//! for mentions. A code span would not do: in the message of a commit it has no effect. Words that only show something, such
//! as links to pages and hashes of commits, stay. The message of a commit is not Markdown: there markup has no effect.

use super::plain::plain;

/// Characters that robots may take for `@`.
const AT: [char; 3] = ['@', '\u{ff20}', '\u{fe6b}'];
/// Characters that robots may take for `#`.
const HASH: [char; 3] = ['#', '\u{ff03}', '\u{fe5f}'];
/// Directories of the web pages that GitHub takes for references.
const REFERENCED: [&str; 4] = ["issues", "pull", "pulls", "discussions"];
/// Directives in a commit's message that skip its checks, without their brackets.
const DIRECTIVES: [&str; 5] = ["skip ci", "ci skip", "no ci", "skip actions", "actions skip"];
/// Most characters of an entity: `&CounterClockwiseContourIntegral;` is the longest.
const MAX_ENTITY: usize = 40;

/// Beginning and end of the word by which a commit skips its checks.
const SKIP_CHECKS: [&str; 2] = ["skip", "checks"];

/// Kind of a text, by which it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Text of a pull request or comment.
    Markdown,
    /// Message of a commit, or the name of its author.
    Commit,
}

/// Returns `text` without effects. A second call changes nothing.
#[must_use]
pub fn disarm(text: &str, kind: TextKind) -> String {
    let text = plain(text);
    let mut disarmed = String::with_capacity(text.len() + text.len() / 16);
    let mut line_start = true;
    for (at, c) in text.char_indices() {
        let before = &text[..at];
        let after = &text[at + c.len_utf8()..];
        if line_start && kind == TextKind::Markdown && needs_escape(before, c, after) {
            disarmed.push('\\');
        }
        disarmed.push(c);
        let acts = match kind {
            TextKind::Markdown => acts_in_any_text(before, c, after) || is_markup(c, after),
            // What stands before the sign is shown here, so an address of mail can be told from a mention.
            TextKind::Commit if c == '@' && before.ends_with(|last: char| last.is_ascii_alphanumeric()) => {
                false
            }
            TextKind::Commit => acts_in_any_text(before, c, after),
        };
        if acts {
            disarmed.push(' ');
        }
        line_start = c == '\n' || (line_start && (c.is_whitespace() || c == '>'));
    }
    disarmed
}

/// Returns whether `c` begins something only as the first character of a line: a command, a heading that the space behind
/// a sign would make, or the fence of front matter.
fn needs_escape(before: &str, c: char, after: &str) -> bool {
    match c {
        '/' => after.starts_with(|next: char| next.is_ascii_alphabetic()),
        '#' => after.starts_with(|next: char| next.is_ascii_digit()),
        '-' | '+' if before.trim().is_empty() => {
            let line = after.lines().next().unwrap_or_default().trim_end();
            line == if c == '-' { "--" } else { "++" }
        }
        _ => false,
    }
}

/// Returns whether GitHub or a robot acts on `c` between `before` and `after`, in Markdown and in the message of a commit.
fn acts_in_any_text(before: &str, c: char, after: &str) -> bool {
    let next = after.chars().next().unwrap_or('\n');
    match c {
        // An address of mail is not a mention, but what stands before the sign may not be shown.
        c if AT.contains(&c) => next.is_ascii_alphanumeric(),
        c if HASH.contains(&c) => next.is_ascii_digit(),
        '-' => (next.is_ascii_digit() && ends_with_gh(before)) || joins_skip_checks(before, after),
        '/' => begins_number(after) && is_in_referenced(before),
        '[' => is_directive(after),
        _ => false,
    }
}

/// Returns whether `c` before `after` begins markup that shows something else than its words.
fn is_markup(c: char, after: &str) -> bool {
    let next = after.chars().next().unwrap_or('\n');
    match c {
        '<' => next.is_ascii_alphabetic() || "/!?".contains(next),
        '!' => next == '[',
        '&' => is_entity(after),
        // An alert looks like a warning of GitHub's own. A footnote is shown below all other text.
        '[' => next == '!' || next == '^',
        _ => false,
    }
}

/// Returns whether a hyphen between the two texts makes them the trailer that skips the checks of a commit.
fn joins_skip_checks(before: &str, after: &str) -> bool {
    let [first, second] = SKIP_CHECKS;
    let start = before.len().checked_sub(first.len()).and_then(|start| before.get(start..));
    let end = after.get(..second.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(first))
        && end.is_some_and(|end| end.eq_ignore_ascii_case(second))
}

/// Returns whether a text ends with the word `GH`, of which the hyphen may be escaped.
fn ends_with_gh(before: &str) -> bool {
    let before = before.trim_end_matches('\\').as_bytes();
    let Some((word, rest)) = before.split_last_chunk::<2>().map(|(rest, word)| (word, rest)) else {
        return false;
    };
    word.eq_ignore_ascii_case(b"gh") && !rest.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns whether a text begins with a number. Its first character may be encoded or escaped.
fn begins_number(after: &str) -> bool {
    after.trim_start_matches('\\').starts_with(|c: char| c.is_ascii_digit() || c == '%')
}

/// Returns whether a text ends with one of the directories; slashes may be doubled or escaped.
fn is_in_referenced(before: &str) -> bool {
    let before = before.trim_end_matches(['/', '\\']);
    REFERENCED.iter().any(|dir| {
        let start = before.len().checked_sub(dir.len());
        let found = start.and_then(|start| Some((before.get(..start)?, before.get(start..)?)));
        found.is_some_and(|(rest, word)| word.eq_ignore_ascii_case(dir) && rest.ends_with('/'))
    })
}

/// Returns whether `after` makes an ampersand before it an entity, which stands for another character.
fn is_entity(after: &str) -> bool {
    let mut name = after.chars().take(MAX_ENTITY);
    let first = name.next().unwrap_or('\n');
    let end = name.find(|c| !c.is_ascii_alphanumeric());
    (first == '#' || first.is_ascii_alphabetic()) && end == Some(';')
}

/// Returns whether `after` makes a bracket before it a directive.
fn is_directive(after: &str) -> bool {
    DIRECTIVES.iter().any(|directive| {
        after.get(..directive.len()).is_some_and(|start| start.eq_ignore_ascii_case(directive))
    })
}

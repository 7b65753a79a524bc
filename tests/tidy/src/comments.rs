//! comments finds the comments of Rust sources, and knows strings and characters from them.

/// The kind of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `//!`: of the file or the enclosing item.
    Module,
    /// `///`: of the item that follows.
    Item,
    /// `//` or `/* */`: no documentation.
    Plain,
}

/// A line of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Line, counted from 1.
    pub number: usize,
    /// Its kind.
    pub kind: Kind,
    /// The words, without slashes and the space after them.
    pub text: String,
}

/// Comment lines of one kind that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Line where it begins.
    pub line: usize,
    /// Its kind.
    pub kind: Kind,
    /// Its lines, joined.
    pub text: String,
}

/// Returns every comment line of a Rust source.
#[must_use]
pub fn lines(source: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut scan = Scan { source, at: 0 };
    while let Some(comment) = scan.next_comment() {
        let number = 1 + source[..comment.start].matches('\n').count();
        for (offset, line) in source[comment.start..comment.end].lines().enumerate() {
            found.push(Line { number: number + offset, kind: kind(line), text: words(line).to_owned() });
        }
    }
    found
}

/// Returns the documentation of a Rust source: adjacent lines of one kind are one block.
#[must_use]
pub fn documentation(source: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut next = 0;
    for line in lines(source).into_iter().filter(|line| line.kind != Kind::Plain) {
        match blocks.last_mut().filter(|last| last.kind == line.kind && next == line.number) {
            Some(last) => {
                last.text.push('\n');
                last.text.push_str(&line.text);
            }
            None => blocks.push(Block { line: line.number, kind: line.kind, text: line.text }),
        }
        next = line.number + 1;
    }
    blocks
}

fn kind(line: &str) -> Kind {
    let line = line.trim_start();
    if line.starts_with("//!") {
        Kind::Module
    } else if line.starts_with("///") && !line.starts_with("////") {
        Kind::Item
    } else {
        Kind::Plain
    }
}

fn words(line: &str) -> &str {
    let line = line.trim().trim_end_matches("*/");
    let bare = line.trim_start_matches(['/', '*']);
    let bare = bare.strip_prefix('!').unwrap_or(bare);
    bare.strip_prefix(' ').unwrap_or(bare)
}

/// Bytes of a comment in its source.
struct Span {
    start: usize,
    end: usize,
}

/// A walk over a source, from token to token as far as comments need it.
struct Scan<'s> {
    source: &'s str,
    at: usize,
}

impl Scan<'_> {
    fn next_comment(&mut self) -> Option<Span> {
        while self.at < self.source.len() {
            let rest = &self.source[self.at..];
            let start = self.at;
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                return Some(Span { start, end: self.at });
            }
            if rest.starts_with("/*") {
                self.at += block_comment(rest);
                return Some(Span { start, end: self.at });
            }
            self.at += other(rest, self.source[..start].chars().next_back());
        }
        None
    }
}

/// Returns the length of a block comment, which may hold others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += first_len(&rest[at..]);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the length of the string, character or other piece at the start of `rest`.
fn other(rest: &str, before: Option<char>) -> usize {
    let begins_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let marked = rest.trim_start_matches(['b', 'c']);
    let is_raw = begins_word && rest.len() - marked.len() < 2 && marked.starts_with('r');
    if let Some(length) = marked.get(1..).filter(|_| is_raw).and_then(raw) {
        return rest.len() - marked.len() + 1 + length;
    }
    first_len(rest)
}

fn first_len(rest: &str) -> usize {
    rest.chars().next().map_or(1, char::len_utf8)
}

/// Returns the length of a text that begins and ends with `quote`.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character, or of the quote that begins a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => quoted(rest, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// Returns the length of a raw string behind its `r`, if it is one and not a raw name.
fn raw(rest: &str) -> Option<usize> {
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let inside = rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &rest[..hashes]);
    Some(hashes + 1 + inside.find(&end).map_or(inside.len(), |at| at + end.len()))
}

//! Checks form and bounds of a text, in one loop.

use std::{cmp::Ordering, mem};

use super::{Bounds, Error, Problem, text::code_points};

/// First characters of the names that serde_json reserves. Its `Value` takes what stands beside such a name for something
/// else, which is then parsed without a bound.
const RESERVED: &str = "$serde_json::private::";

/// Checks that `text` is one JSON value within `bounds`.
pub(super) fn check(text: &str, bounds: Bounds) -> Result<(), Error> {
    if text.len() > bounds.bytes.min(u32::MAX as usize) {
        return Err(Error::without_place(Problem::Bytes(bounds.bytes)));
    }
    let mut check = Check { text, at: 0, values: 0, open: Vec::new(), names: Vec::new(), bounds };
    check.run().map_err(|problem| Error::at(text.as_bytes(), check.at, problem))
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of an empty array.
    FirstItem,
    Name,
    /// A name, or the end of an empty object.
    FirstName,
    /// A comma or an end.
    Separator,
}

/// An array or object that is open.
#[derive(Clone, Copy)]
enum Open {
    Array,
    /// Object, with the number of names that were kept before its own.
    Object(usize),
}

struct Check<'t> {
    text: &'t str,
    at: usize,
    values: usize,
    open: Vec<Open>,
    /// Places of the names of all open objects, behind their quotes.
    names: Vec<u32>,
    bounds: Bounds,
}

impl Check<'_> {
    fn run(&mut self) -> Result<(), Problem> {
        let mut next = Next::Value;
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else {
                let is_whole = next == Next::Separator && self.open.is_empty();
                return if is_whole { Ok(()) } else { Err(Problem::End) };
            };
            next = match (next, byte) {
                (Next::FirstItem, b']') | (Next::FirstName, b'}') | (Next::Separator, b']' | b'}') => {
                    self.close(byte)?
                }
                (Next::Separator, b',') => self.separate()?,
                (Next::Separator, _) => return Err(self.expected_separator()),
                (Next::Name | Next::FirstName, b'"') => self.name()?,
                (Next::Name | Next::FirstName, _) => return Err(Problem::Expected("the name of a member")),
                (Next::Value | Next::FirstItem, _) => self.value(byte)?,
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn expected_separator(&self) -> Problem {
        Problem::Expected(match self.open.last() {
            None => "the end of the text",
            Some(Open::Array) => "`,` or `]`",
            Some(Open::Object(_)) => "`,` or `}`",
        })
    }

    fn separate(&mut self) -> Result<Next, Problem> {
        let next = match self.open.last() {
            None => return Err(self.expected_separator()),
            Some(Open::Array) => Next::Value,
            Some(Open::Object(_)) => Next::Name,
        };
        self.at += 1;
        Ok(next)
    }

    fn value(&mut self, first: u8) -> Result<Next, Problem> {
        self.values += 1;
        if self.values > self.bounds.values {
            return Err(Problem::Values(self.bounds.values));
        }
        match first {
            b'{' => return self.open(Open::Object(self.names.len()), Next::FirstName),
            b'[' => return self.open(Open::Array, Next::FirstItem),
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => return Err(Problem::Expected("a value")),
        }
        Ok(Next::Separator)
    }

    fn open(&mut self, what: Open, next: Next) -> Result<Next, Problem> {
        if self.open.len() >= self.bounds.depth {
            return Err(Problem::Depth(self.bounds.depth));
        }
        self.open.push(what);
        self.at += 1;
        Ok(next)
    }

    fn close(&mut self, byte: u8) -> Result<Next, Problem> {
        match (self.open.last().copied(), byte) {
            (Some(Open::Array), b']') => {}
            (Some(Open::Object(kept)), b'}') => self.check_names(kept)?,
            _ => return Err(self.expected_separator()),
        }
        self.open.pop();
        self.at += 1;
        Ok(Next::Separator)
    }

    /// Checks that the names behind the first `kept` differ, and forgets them.
    fn check_names(&mut self, kept: usize) -> Result<(), Problem> {
        let text = self.text;
        let mut names = mem::take(&mut self.names);
        let own = &mut names[kept..];
        own.sort_unstable_by(|one, other| compare(content(text, *one), content(text, *other)));
        let twice = own
            .array_windows()
            .find(|[one, other]| compare(content(text, *one), content(text, *other)) == Ordering::Equal);
        if let Some([_, name]) = twice {
            self.at = *name as usize;
            return Err(Problem::Twice(shown(content(text, *name))));
        }
        names.truncate(kept);
        self.names = names;
        Ok(())
    }

    fn name(&mut self) -> Result<Next, Problem> {
        let start = self.at + 1;
        self.string()?;
        let name = &self.text[start..self.at - 1];
        if code_points(name).take(RESERVED.len()).eq(RESERVED.chars().map(u32::from)) {
            return Err(Problem::Reserved);
        }
        let start = u32::try_from(start).map_err(|_too_long| Problem::Bytes(self.bounds.bytes))?;
        self.names.push(start);
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(if self.peek().is_none() { Problem::End } else { Problem::Expected("`:`") });
        }
        self.at += 1;
        Ok(Next::Value)
    }

    fn word(&mut self, word: &'static str) -> Result<(), Problem> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(if word.as_bytes().starts_with(rest) { Problem::End } else { Problem::Expected("a value") })
    }

    fn string(&mut self) -> Result<(), Problem> {
        self.at += 1;
        loop {
            match self.peek().ok_or(Problem::End)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..0x20 => return Err(Problem::Expected("an escaped control character")),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), Problem> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1).ok_or(Problem::End)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = bytes.get(self.at + 2..self.at + 6).ok_or(Problem::End)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Problem::Expected("four hexadecimal digits"));
                }
                self.at += 6;
            }
            _ => return Err(Problem::Expected("an escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Problem> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Problem> {
        match self.peek() {
            None => return Err(Problem::End),
            Some(b'0'..=b'9') => {}
            Some(_) => return Err(Problem::Expected("a digit")),
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }
}

/// Returns the content of the string that begins at `start`, behind its quote.
fn content(text: &str, start: u32) -> &str {
    let start = start as usize;
    let mut end = start;
    loop {
        match text.as_bytes().get(end) {
            Some(b'\\') => end += 2,
            Some(b'"') | None => return &text[start..end],
            Some(_) => end += 1,
        }
    }
}

/// Compares two names as they read, not as they are written.
fn compare(one: &str, other: &str) -> Ordering {
    if one.contains('\\') || other.contains('\\') {
        code_points(one).cmp(code_points(other))
    } else {
        one.cmp(other)
    }
}

/// Returns a name for an error.
fn shown(name: &str) -> String {
    const MOST: usize = 64;
    let characters =
        code_points(name).map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
    characters.take(MOST).flat_map(char::escape_default).collect()
}

//! Checks form and bounds of a text, in one loop.

use super::{Bounds, Error, ErrorKind};

/// Checks that `text` is one JSON value within `bounds`.
pub(super) fn check(text: &str, bounds: Bounds) -> Result<(), Error> {
    if text.len() > bounds.bytes {
        return Err(Error::without_place(ErrorKind::Bytes(bounds.bytes)));
    }
    let mut check = TextCheck { text, at: 0, values: 0, open: Vec::new(), bounds };
    check.run().map_err(|problem| Error::at(text.as_bytes(), check.at, problem))
}

/// Piece of a text that may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
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
    Object,
}

struct TextCheck<'t> {
    text: &'t str,
    at: usize,
    values: usize,
    open: Vec<Open>,
    bounds: Bounds,
}

impl TextCheck<'_> {
    fn run(&mut self) -> Result<(), ErrorKind> {
        let mut next = Allowed::Value;
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else {
                let is_whole = next == Allowed::Separator && self.open.is_empty();
                return if is_whole { Ok(()) } else { Err(ErrorKind::End) };
            };
            next = match (next, byte) {
                (Allowed::FirstItem, b']')
                | (Allowed::FirstName, b'}')
                | (Allowed::Separator, b']' | b'}') => self.close(byte)?,
                (Allowed::Separator, b',') => self.separate()?,
                (Allowed::Separator, _) => return Err(self.expected_separator()),
                (Allowed::Name | Allowed::FirstName, b'"') => self.name()?,
                (Allowed::Name | Allowed::FirstName, _) => {
                    return Err(ErrorKind::Expected("the name of a member"));
                }
                (Allowed::Value | Allowed::FirstItem, _) => self.value(byte)?,
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

    fn expected_separator(&self) -> ErrorKind {
        ErrorKind::Expected(match self.open.last() {
            None => "the end of the text",
            Some(Open::Array) => "`,` or `]`",
            Some(Open::Object) => "`,` or `}`",
        })
    }

    fn separate(&mut self) -> Result<Allowed, ErrorKind> {
        let next = match self.open.last() {
            None => return Err(self.expected_separator()),
            Some(Open::Array) => Allowed::Value,
            Some(Open::Object) => Allowed::Name,
        };
        self.at += 1;
        Ok(next)
    }

    fn value(&mut self, first: u8) -> Result<Allowed, ErrorKind> {
        self.values += 1;
        if self.values > self.bounds.values {
            return Err(ErrorKind::Values(self.bounds.values));
        }
        match first {
            b'{' => return self.open(Open::Object, Allowed::FirstName),
            b'[' => return self.open(Open::Array, Allowed::FirstItem),
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => return Err(ErrorKind::Expected("a value")),
        }
        Ok(Allowed::Separator)
    }

    fn open(&mut self, what: Open, next: Allowed) -> Result<Allowed, ErrorKind> {
        if self.open.len() >= self.bounds.depth {
            return Err(ErrorKind::Depth(self.bounds.depth));
        }
        self.open.push(what);
        self.at += 1;
        Ok(next)
    }

    fn close(&mut self, byte: u8) -> Result<Allowed, ErrorKind> {
        match (self.open.last().copied(), byte) {
            (Some(Open::Array), b']') | (Some(Open::Object), b'}') => {}
            _ => return Err(self.expected_separator()),
        }
        self.open.pop();
        self.at += 1;
        Ok(Allowed::Separator)
    }

    fn name(&mut self) -> Result<Allowed, ErrorKind> {
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(if self.peek().is_none() { ErrorKind::End } else { ErrorKind::Expected("`:`") });
        }
        self.at += 1;
        Ok(Allowed::Value)
    }

    fn word(&mut self, word: &'static str) -> Result<(), ErrorKind> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(if word.as_bytes().starts_with(rest) { ErrorKind::End } else { ErrorKind::Expected("a value") })
    }

    fn string(&mut self) -> Result<(), ErrorKind> {
        self.at += 1;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            self.at += plain.unwrap_or(rest.len());
            match self.peek().ok_or(ErrorKind::End)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                _ => return Err(ErrorKind::Expected("an escaped control character")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ErrorKind> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1).ok_or(ErrorKind::End)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = bytes.get(self.at + 2..self.at + 6).ok_or(ErrorKind::End)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(ErrorKind::Expected("four hexadecimal digits"));
                }
                self.at += 6;
            }
            _ => return Err(ErrorKind::Expected("an escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ErrorKind> {
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

    fn digits(&mut self) -> Result<(), ErrorKind> {
        match self.peek() {
            None => return Err(ErrorKind::End),
            Some(b'0'..=b'9') => {}
            Some(_) => return Err(ErrorKind::Expected("a digit")),
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }
}

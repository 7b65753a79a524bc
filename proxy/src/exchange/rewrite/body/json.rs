//! Reads a JSON document with a cursor: exactly the grammar of `serde_json`, at the speed of vector instructions where
//! strings are long. It knows no fields; the caller decides which values matter.

use super::{
    scan,
    text::{JsonText, escape_length},
};
use crate::{policy::SyntaxFault, usage::estimate::Letters};

/// Containers that may be open at once, as with `serde_json`.
const MAX_DEPTH: u8 = 127;

/// Position of the reader in the document.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
    /// Letters in the strings that were read.
    letters: Letters,
}

/// A member's name and where its opening quote is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) text: JsonText<'a>,
    pub(super) at: usize,
}

/// A value. Scalars have been read; of an array or object only its opening bracket.
#[derive(Debug, Clone, Copy)]
pub(super) enum JsonValue<'a> {
    Null,
    True,
    False,
    Number(&'a [u8]),
    Text(JsonText<'a>),
    Array,
    Object,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0, letters: Letters::default() }
    }

    /// Returns which letters occur in the strings that were read.
    pub(super) const fn letters(&self) -> Letters {
        self.letters
    }

    /// Returns the position of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves to the next token and shows its first byte.
    pub(super) fn next_token(&mut self) -> Option<u8> {
        self.skip_space();
        self.peek()
    }

    /// Returns whether the next value is exactly `text`, as it is spelled.
    pub(super) fn next_is(&mut self, text: &[u8]) -> bool {
        self.skip_space();
        self.bytes[self.at..].starts_with(text)
    }

    /// Reads to the end, where only white space may be.
    pub(super) fn end(&mut self) -> Result<(), SyntaxFault> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault("something follows the object")) }
    }

    /// Reads a scalar, or opens a container.
    pub(super) fn value(&mut self) -> Result<JsonValue<'a>, SyntaxFault> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => Ok(JsonValue::Text(self.string()?)),
            Some(b'{') => self.open(JsonValue::Object),
            Some(b'[') => self.open(JsonValue::Array),
            Some(b't') => self.word(b"true", JsonValue::True),
            Some(b'f') => self.word(b"false", JsonValue::False),
            Some(b'n') => self.word(b"null", JsonValue::Null),
            Some(b'-' | b'0'..=b'9') => Ok(JsonValue::Number(self.number()?)),
            _ => Err(self.fault("a value is missing")),
        }
    }

    /// Reads the first member's name after `{`, and its colon; `None` closes the object.
    pub(super) fn first_member(&mut self) -> Result<Option<Name<'a>>, SyntaxFault> {
        self.skip_space();
        if self.peek() == Some(b'}') { Ok(self.close()) } else { self.name().map(Some) }
    }

    /// Reads the next member's name after a value.
    pub(super) fn next_member(&mut self) -> Result<Option<Name<'a>>, SyntaxFault> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                self.name().map(Some)
            }
            Some(b'}') => Ok(self.close()),
            _ => Err(self.fault("a comma or the end of the object is missing")),
        }
    }

    /// Checks for an element after `[`; `None` closes the array.
    pub(super) fn first_element(&mut self) -> Result<Option<()>, SyntaxFault> {
        self.skip_space();
        Ok(if self.peek() == Some(b']') { self.close() } else { Some(()) })
    }

    /// Checks for another element after an element.
    pub(super) fn next_element(&mut self) -> Result<Option<()>, SyntaxFault> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(Some(()))
            }
            Some(b']') => Ok(self.close()),
            _ => Err(self.fault("a comma or the end of the array is missing")),
        }
    }

    /// Reads a value whatever it is. Not recursive: which of the open containers are objects is a stack of
    /// bits, deep enough because `MAX_DEPTH` is below 128.
    pub(super) fn skip(&mut self) -> Result<(), SyntaxFault> {
        let outside = self.depth;
        let mut objects: u128 = 0;
        loop {
            let mut more = match self.value()? {
                JsonValue::Object => {
                    objects = objects << 1 | 1;
                    self.first_member()?.map(drop)
                }
                JsonValue::Array => {
                    objects <<= 1;
                    self.first_element()?
                }
                _ if self.depth == outside => return Ok(()),
                _ => self.more(objects)?,
            };
            while more.is_none() {
                objects >>= 1;
                if self.depth == outside {
                    return Ok(());
                }
                more = self.more(objects)?;
            }
        }
    }

    fn more(&mut self, objects: u128) -> Result<Option<()>, SyntaxFault> {
        if objects & 1 == 1 { Ok(self.next_member()?.map(drop)) } else { self.next_element() }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn fault(&self, what: &'static str) -> SyntaxFault {
        SyntaxFault { at: self.at, what }
    }

    fn open(&mut self, container: JsonValue<'a>) -> Result<JsonValue<'a>, SyntaxFault> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault("the nesting is too deep"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(container)
    }

    fn close<T>(&mut self) -> Option<T> {
        self.depth -= 1;
        self.at += 1;
        None
    }

    fn word(&mut self, word: &[u8], value: JsonValue<'a>) -> Result<JsonValue<'a>, SyntaxFault> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.fault("a value is missing"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn name(&mut self) -> Result<Name<'a>, SyntaxFault> {
        let at = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.fault("a member's name is missing"));
        }
        let text = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.fault("a colon is missing"));
        }
        self.at += 1;
        Ok(Name { text, at })
    }

    /// Reads a string; the cursor is at its opening quote.
    fn string(&mut self) -> Result<JsonText<'a>, SyntaxFault> {
        let start = self.at + 1;
        let mut end = start;
        let mut escaped = false;
        let mut union = 0;
        loop {
            let run = scan::plain(&self.bytes[end..]);
            end += run.length;
            union |= run.union;
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let length = escape_length(&self.bytes[end..]);
                    end += length.ok_or(SyntaxFault { at: end, what: "an escape is not valid" })?;
                    escaped = true;
                }
                Some(_) => return Err(SyntaxFault { at: end, what: "a string holds a control character" }),
                None => return Err(self.fault("a string does not end")),
            }
        }
        let raw = &self.bytes[start..end];
        self.letters.beyond_ascii |= scan::beyond_ascii(union);
        self.letters.escaped |= escaped;
        if scan::beyond_ascii(union) && simdutf8::basic::from_utf8(raw).is_err() {
            return Err(self.fault("a string is not UTF-8"));
        }
        self.at = end + 1;
        Ok(JsonText { raw, escaped })
    }

    fn number(&mut self) -> Result<&'a [u8], SyntaxFault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let zero = self.peek() == Some(b'0');
        let whole = self.digits()?;
        if zero && whole > 1 {
            return Err(self.fault("a number starts with a zero"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let raw = &self.bytes[start..self.at];
        // Only such a number can exceed a double, which Python would pass on as `Infinity`.
        if (exponent || whole > 300) && !is_finite(raw) {
            return Err(self.fault("a number is out of range"));
        }
        Ok(raw)
    }

    /// Reads at least one digit.
    fn digits(&mut self) -> Result<usize, SyntaxFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.fault("a digit is missing")) } else { Ok(self.at - start) }
    }
}

fn is_finite(number: &[u8]) -> bool {
    let number = str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
    number.is_some_and(f64::is_finite)
}
